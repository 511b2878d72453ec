/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/by_module.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/str.h"
#include "profile/recording/workers.h"

enum { UNMADE = UINT32_MAX };

/* One stack of the old recording. */
struct made {
	uint32_t stack; /* of the new one; UNMADE */
	enum prb_step_part part;
	bool unknown;	    /* a method that runs modules, of what is none */
	bool module;	    /* a module is in it */
	bool works;	    /* a module, or a node of autograd */
	bool stepping;	    /* an optimizer's step() is in it */
	uint64_t optimizer; /* which one */
};

struct maker {
	const struct prb_recording *from;
	struct prb_recording *to;
	const struct prb_module_name *names;
	size_t count;
	struct prb_by_module_options options;
	struct made *made; /* of each stack, and then of each as one of autograd's threads */
	bool *is_worker;   /* of each thread */
	bool *is_closure;  /* of each function */
	struct prb_number_map steps; /* that were seen to begin, by optimizer */
	struct prb_workers workers;
	PRB_VEC(uint32_t) frames; /* of the stack that is being made, innermost first */
};

static bool has(const char *text, const char *part)
{
	return text && strstr(text, part);
}

static int compare(const void *a, const void *b)
{
	const struct prb_module_name *one = a, *other = b;

	return one->address < other->address ? -1 : one->address > other->address;
}

static const struct prb_module_name *find(const struct maker *m, uint64_t address)
{
	return m->count ? bsearch(&(struct prb_module_name){.address = address}, m->names, m->count,
				  sizeof(*m->names), compare)
			: NULL;
}

static const struct prb_tree_function *function_of(const struct maker *m, uint32_t frame)
{
	const struct prb_tree *tree = m->from->tree;

	return &tree->functions.items[tree->frames.items[frame].function];
}

static struct prb_error *push(struct maker *m, const struct prb_tree_function *function,
			      int32_t line, uint32_t *stack)
{
	uint32_t number, frame;

	PRB_TRY(prb_tree_function(m->to->tree, function, &number));
	PRB_TRY(prb_tree_frame(m->to->tree, number, line, &frame));
	return prb_tree_call(m->to->tree, *stack, frame, stack);
}

/* Subjects of functions that run no module have told what they can. */
static struct prb_error *push_call(struct maker *m, uint32_t frame, uint32_t *stack)
{
	struct prb_tree_function function = *function_of(m, frame);

	function.subject = 0;
	return push(m, &function, m->from->tree->frames.items[frame].line, stack);
}

static struct prb_error *push_module(struct maker *m, const struct prb_module_name *name,
				     uint32_t *stack)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%s: %s", name->path, name->class);
	if (text.failed)
		return prb_error_nomem();
	return push(m,
		    &(struct prb_tree_function){.kind = PRB_FUNCTION_PYTHON,
						.name = prb_str_text(&text),
						.subject = name->address},
		    0, stack);
}

/* Methods that call a module's forward are a part of it. */
static bool is_machinery(const struct prb_tree_function *f)
{
	return f->kind == PRB_FUNCTION_PYTHON && has(f->file, "/torch/nn/modules/module.py");
}

/* The frames of a stack, and how many of the outermost ones lead to the innermost module. */
static struct prb_error *list_frames(struct maker *m, uint32_t stack, size_t *modules)
{
	*modules = 0;
	m->frames.count = 0;
	for (; stack; stack = m->from->tree->stacks.items[stack].parent) {
		uint32_t *frame = prb_vec_push(&m->frames);

		if (!frame)
			return prb_error_nomem();
		*frame = m->from->tree->stacks.items[stack].frame;
	}
	for (size_t i = 0; i < m->frames.count && !*modules; i++)
		if (find(m, function_of(m, m->frames.items[i])->subject))
			*modules = m->frames.count - i;
	return NULL;
}

static enum prb_step_frame kind_of(const struct maker *m, uint32_t frame)
{
	const struct prb_tree_function *f = function_of(m, frame);

	if (f->subject && find(m, f->subject))
		return PRB_STEP_FRAME_MODULE;
	return m->is_closure[m->from->tree->frames.items[frame].function] ? PRB_STEP_FRAME_CLOSURE
									  : PRB_STEP_FRAME_PLAIN;
}

static void find_part(const struct maker *m, struct made *ret)
{
	struct prb_step_walk walk = PRB_STEP_WALK;

	ret->unknown = false;
	for (size_t i = m->frames.count; i-- > 0;) {
		const struct prb_tree_function *f = function_of(m, m->frames.items[i]);
		enum prb_step_frame kind = kind_of(m, m->frames.items[i]);

		ret->unknown |= walk.part == PRB_STEP_OTHER && kind != PRB_STEP_FRAME_MODULE &&
				f->subject && is_machinery(f);
		if (prb_step_is_optimizer(f) && f->subject)
			ret->optimizer = f->subject;
		prb_step_walk(&walk, f, kind);
	}
	ret->part = walk.part;
	ret->stepping = walk.stepping;
}

/* A function that an optimizer calls is a closure if a module or backward was seen in it. */
static struct prb_error *find_closures(struct maker *m, uint32_t stack)
{
	struct prb_step_walk walk = PRB_STEP_WALK;
	size_t modules;
	uint32_t candidate = UINT32_MAX;

	PRB_TRY(list_frames(m, stack, &modules));
	for (size_t i = m->frames.count; i-- > 0;) {
		uint32_t frame = m->frames.items[i];
		bool inside = walk.part == PRB_STEP_OPTIMIZER;

		if (candidate == UINT32_MAX &&
		    prb_step_may_be_closure(&walk, function_of(m, frame)))
			candidate = m->from->tree->frames.items[frame].function;
		prb_step_walk(&walk, function_of(m, frame), kind_of(m, frame));
		if (!inside || candidate == UINT32_MAX ||
		    (walk.part != PRB_STEP_FORWARD && walk.part != PRB_STEP_BACKWARD &&
		     walk.part != PRB_STEP_EVALUATION))
			continue;
		m->is_closure[candidate] = true;
		return NULL;
	}
	return NULL;
}

/* The end of "AddmmBackward0" in "torch::autograd::generated::AddmmBackward0::apply(…)"; NULL. */
static const char *end_of_node(const struct prb_tree_function *f)
{
	static const char prefix[] = "torch::autograd::", suffix[] = "::apply(";

	return f->kind == PRB_FUNCTION_NATIVE && !strncmp(f->name, prefix, sizeof(prefix) - 1)
		       ? strstr(f->name, suffix)
		       : NULL;
}

static struct prb_error *push_node(struct maker *m, const struct prb_tree_function *f,
				   uint32_t *stack, bool *pushed)
{
	prb_auto_str struct prb_str text = {};
	const char *end = end_of_node(f), *begin;

	if (!end)
		return NULL;
	for (begin = end; begin[-1] != ':'; begin--)
		;
	prb_str_append(&text, begin, (size_t)(end - begin));
	if (text.failed)
		return prb_error_nomem();
	*pushed = true;
	return push(m,
		    &(struct prb_tree_function){.kind = PRB_FUNCTION_NATIVE,
						.name = prb_str_text(&text)},
		    0, stack);
}

static struct prb_error *make(struct maker *m, uint32_t stack, bool worker, struct made *ret)
{
	uint64_t last = 0;
	size_t modules;
	bool follow = false, node = !m->options.nodes;

	PRB_TRY(list_frames(m, stack, &modules));
	find_part(m, ret);
	if (worker)
		ret->part = PRB_STEP_BACKWARD;
	ret->stack = 0;
	PRB_TRY(push(m,
		     &(struct prb_tree_function){.kind = PRB_FUNCTION_NOTE,
						 .name = prb_step_part_name(ret->part)},
		     0, &ret->stack));
	for (size_t i = m->frames.count; i-- > 0;) {
		uint32_t frame = m->frames.items[i];
		const struct prb_tree_function *f = function_of(m, frame);
		const struct prb_module_name *name = f->subject ? find(m, f->subject) : NULL;

		ret->module |= name != NULL;
		ret->works |= name || end_of_node(f);
		if (name && f->subject != last) {
			last = f->subject;
			PRB_TRY(push_module(m, name, &ret->stack));
		}
		if (ret->part == PRB_STEP_BACKWARD && !node)
			PRB_TRY(push_node(m, f, &ret->stack, &node));
		/* Before the first module, the program's own functions say nothing. */
		follow = i + 1 <= m->frames.count - modules;
		if (m->options.calls && !name && !is_machinery(f) &&
		    (modules ? follow : ret->part != PRB_STEP_FORWARD))
			PRB_TRY(push_call(m, frame, &ret->stack));
	}
	return NULL;
}

static struct prb_error *made_of(struct maker *m, const struct prb_run *run, struct made **ret)
{
	bool worker = m->is_worker[run->thread];

	*ret = &m->made[run->stack + (worker ? m->from->tree->stacks.count : 0)];
	return (*ret)->stack == UNMADE ? make(m, run->stack, worker, *ret) : NULL;
}

static struct prb_error *add_workers(struct maker *m)
{
	const struct prb_run *run;
	struct made *made;

	for (size_t i = 0; i < m->from->threads.count; i++)
		m->is_worker[i] = prb_worker_is(&m->from->threads.items[i]);
	prb_vec_each (run, &m->from->runs) {
		struct prb_run *copy;

		if (!m->is_worker[run->thread] || run->wall <= 0)
			continue;
		PRB_TRY(made_of(m, run, &made));
		/* It waits for something to do. */
		if (!made->works)
			continue;
		copy = prb_vec_push(&m->workers.runs);
		if (!copy)
			return prb_error_nomem();
		*copy = *run;
		copy->stack = made->stack;
	}
	prb_workers_sort(&m->workers);
	return NULL;
}

/* True if a thread in this part runs the steps. */
static bool is_of_steps(const struct maker *m, const struct prb_run *run, enum prb_step_part part,
			bool waits)
{
	/* Waiting for data is also what data loading's own threads do. */
	if (waits)
		return part == PRB_STEP_COMMUNICATION ||
		       (part == PRB_STEP_DATA &&
			m->from->threads.items[run->thread].tid == m->from->pid);
	return part == PRB_STEP_FORWARD || part == PRB_STEP_BACKWARD ||
	       part == PRB_STEP_OPTIMIZER || part == PRB_STEP_EVALUATION ||
	       part == PRB_STEP_COMPILING;
}

/* Chooses the threads that ran a part of a step, or with @waits the threads that waited in one. */
static struct prb_error *choose_threads(struct maker *m, bool waits, bool *chosen, bool *any)
{
	const struct prb_run *run;
	struct made *made;

	*any = false;
	prb_vec_each (run, &m->from->runs) {
		if (m->is_worker[run->thread])
			continue;
		PRB_TRY(made_of(m, run, &made));
		if (!is_of_steps(m, run, made->part, waits))
			continue;
		chosen[run->thread] = true;
		*any = true;
	}
	return NULL;
}

static struct prb_error *copy_threads(struct maker *m, const bool *chosen, uint32_t *numbers)
{
	for (size_t i = 0; i < m->from->threads.count; i++) {
		const struct prb_profile_thread *thread = &m->from->threads.items[i];

		if (!chosen[i])
			continue;
		numbers[i] = (uint32_t)m->to->threads.count;
		PRB_TRY(prb_recording_copy_thread(m->to, thread, 0));
	}
	return NULL;
}

static struct prb_error *copy_run(struct maker *m, const struct prb_run *run,
				  const struct made *made)
{
	struct prb_run *copy;

	if (made->part == PRB_STEP_BACKWARD && !made->module && m->workers.runs.count &&
	    run->wall > 0)
		return prb_workers_split(&m->workers, run, m->to);
	copy = prb_vec_push(&m->to->runs);
	if (!copy)
		return prb_error_nomem();
	*copy = *run;
	return NULL;
}

/* Between two samples in the same step() there may have been a whole step. */
static struct prb_error *count_step(struct maker *m, const struct made *last,
				    const struct made *made, uint64_t *steps)
{
	size_t count = 0;

	if (!made->stepping || (last && last->stepping && last->optimizer == made->optimizer))
		return NULL;
	(void)prb_number_map_get(&m->steps, made->optimizer, &count);
	count++;
	*steps = PRB_MAX(*steps, count);
	return prb_number_map_put(&m->steps, made->optimizer, count) ? NULL : prb_error_nomem();
}

static struct prb_error *copy_runs(struct maker *m, const bool *chosen, const uint32_t *numbers,
				   struct prb_by_module *ret)
{
	prb_auto_free struct made **last = calloc(m->from->threads.count + 1, sizeof(*last));
	const struct prb_run *run;

	if (!last)
		return prb_error_nomem();
	prb_vec_each (run, &m->from->runs) {
		struct prb_run copy = *run;
		struct made *made;

		if (!chosen[run->thread])
			continue;
		PRB_TRY(made_of(m, run, &made));
		copy.thread = numbers[run->thread];
		copy.stack = made->stack;
		/* Causes of waits do not concern modules. */
		copy.wait = 0;
		copy.wait_kind = PRB_WAIT_NONE;
		PRB_TRY(copy_run(m, &copy, made));
		ret->unknown += made->unknown ? run->wall : 0;
		PRB_TRY(count_step(m, last[run->thread], made, &ret->steps));
		last[run->thread] = made;
	}
	return NULL;
}

static struct prb_error *copy_about(struct maker *m)
{
	const struct prb_recording *from = m->from;
	struct prb_recording *to = m->to;

	to->pid = from->pid;
	to->started = from->started;
	to->begun = from->begun;
	to->duration = from->duration;
	to->rate = from->rate;
	to->native = from->native;
	to->tid = from->tid;
	to->end = from->end;
	to->process_cpu = from->process_cpu;
	to->cost = from->cost;
	PRB_TRY(prb_str_copy(from->command, &to->command));
	return prb_str_copy(from->python, &to->python);
}

static struct prb_error *transform(struct maker *m, struct prb_by_module *ret)
{
	prb_auto_free bool *chosen = calloc(m->from->threads.count + 1, sizeof(*chosen));
	prb_auto_free uint32_t *numbers = calloc(m->from->threads.count + 1, sizeof(*numbers));
	bool any;

	m->made = calloc(2 * m->from->tree->stacks.count + 1, sizeof(*m->made));
	m->is_worker = calloc(m->from->threads.count + 1, sizeof(*m->is_worker));
	m->is_closure = calloc(m->from->tree->functions.count + 1, sizeof(*m->is_closure));
	if (!chosen || !numbers || !m->made || !m->is_worker || !m->is_closure)
		return prb_error_nomem();
	for (uint32_t i = 1; i < m->from->tree->stacks.count; i++)
		PRB_TRY(find_closures(m, i));
	for (size_t i = 0; i < 2 * m->from->tree->stacks.count; i++)
		m->made[i].stack = UNMADE;
	PRB_TRY(add_workers(m));
	PRB_TRY(choose_threads(m, false, chosen, &any));
	if (!any)
		PRB_TRY(choose_threads(m, true, chosen, &any));
	if (!any)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND,
					 "no module of torch ran while it was recorded"),
			"'probing TARGET perf' shows what ran instead");
	PRB_TRY(copy_about(m));
	PRB_TRY(copy_threads(m, chosen, numbers));
	return copy_runs(m, chosen, numbers, ret);
}

struct prb_error *prb_by_module(const struct prb_recording *recording,
				const struct prb_module_name *names, size_t count,
				const struct prb_by_module_options *options,
				struct prb_by_module *ret)
{
	prb_auto_recording struct prb_recording *to = NULL;
	struct maker m = {.from = recording, .names = names, .count = count, .options = *options};
	struct prb_error *err;

	*ret = (struct prb_by_module){};
	PRB_TRY(prb_recording_create(&to));
	m.to = to;
	err = transform(&m, ret);
	free(m.made);
	free(m.is_worker);
	free(m.is_closure);
	prb_number_map_deinit(&m.steps);
	prb_workers_deinit(&m.workers);
	prb_vec_free(&m.frames);
	PRB_TRY(err);
	ret->recording = prb_steal(&to);
	return NULL;
}
