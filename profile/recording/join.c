/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"

enum { UNMATCHED = UINT32_MAX };

/*
 * The parts of two functions that must be equal: the whole name; the name without the pid of a
 * process; the last two parts of the path; the last part.
 */
enum precision { WHOLE_NAME, WHOLE_PATH, FOLDER_AND_FILE, FILE_ALONE };

/* Functions that are not matched yet, in the order of their keys. */
struct side {
	const struct prb_tree *tree;
	uint32_t *order;
	size_t count;
};

struct matcher {
	struct side before, after;
	uint32_t *match; /* for each function of `before`, its match in `after`, or UNMATCHED */
	bool *taken;	 /* functions of `after` that are matched */
};

static void matcher_deinit(struct matcher *m)
{
	free(m->before.order);
	free(m->after.order);
	free(m->match);
	free(m->taken);
}

static const char *path_end(const char *path, enum precision precision)
{
	const char *at = path ? path + strlen(path) : "";

	if (!path || precision <= WHOLE_PATH)
		return path ? path : at;
	for (unsigned slashes = precision == FILE_ALONE ? 1 : 2; at > path; at--)
		if (at[-1] == '/' && !--slashes)
			break;
	return at;
}

/* "python3 train.py" of "4242 python3 train.py"; other notes begin with a bracket. */
static const char *name_of(const struct prb_tree_function *f, enum precision precision)
{
	size_t digits = f->kind == PRB_FUNCTION_NOTE ? strspn(f->name, "0123456789") : 0;

	return precision != WHOLE_NAME && digits && f->name[digits] == ' ' ? f->name + digits + 1
									   : f->name;
}

static int compare_keys(const struct prb_tree_function *a, const struct prb_tree_function *b,
			enum precision precision)
{
	int order = (a->kind > b->kind) - (a->kind < b->kind);

	if (!order)
		order = strcmp(name_of(a, precision), name_of(b, precision));
	if (!order)
		order = strcmp(path_end(a->file, precision), path_end(b->file, precision));
	return order ? order
		     : strcmp(path_end(a->module, precision), path_end(b->module, precision));
}

struct sorting {
	const struct prb_tree *tree;
	enum precision precision;
};

static int compare_functions(const void *x, const void *y, void *context)
{
	const struct sorting *sorting = context;
	const uint32_t *i = x, *k = y;
	const struct prb_tree_function *a = &sorting->tree->functions.items[*i];
	const struct prb_tree_function *b = &sorting->tree->functions.items[*k];
	int order = compare_keys(a, b, sorting->precision);

	if (!order)
		order = (a->first_line > b->first_line) - (a->first_line < b->first_line);
	return order ? order : (*i > *k) - (*i < *k);
}

static const struct prb_tree_function *at(const struct side *side, size_t i)
{
	return &side->tree->functions.items[side->order[i]];
}

/* How many functions from @p i on have the same key. */
static size_t group(const struct side *side, size_t i, enum precision precision)
{
	size_t end = i + 1;

	while (end < side->count && !compare_keys(at(side, i), at(side, end), precision))
		end++;
	return end - i;
}

static void pair(struct matcher *m, size_t before, size_t after)
{
	m->match[m->before.order[before]] = m->after.order[after];
	m->taken[m->after.order[after]] = true;
}

/* Of functions with one key those that begin at the same line, then the others in their order. */
static void match_group(struct matcher *m, size_t i, size_t count, size_t j, size_t other_count)
{
	size_t k = j;

	for (size_t a = i; a < i + count; a++)
		for (size_t b = j; b < j + other_count; b++)
			if (!m->taken[m->after.order[b]] &&
			    at(&m->before, a)->first_line == at(&m->after, b)->first_line) {
				pair(m, a, b);
				break;
			}
	for (size_t a = i; a < i + count; a++) {
		if (m->match[m->before.order[a]] != UNMATCHED)
			continue;
		while (k < j + other_count && m->taken[m->after.order[k]])
			k++;
		if (k == j + other_count)
			return;
		pair(m, a, k);
	}
}

static void collect(struct side *side, const struct matcher *m, bool is_before)
{
	side->count = 0;
	for (uint32_t i = 0; i < side->tree->functions.count; i++)
		if (is_before ? m->match[i] == UNMATCHED : !m->taken[i])
			side->order[side->count++] = i;
}

static void sort(struct side *side, enum precision precision)
{
	struct sorting sorting = {side->tree, precision};

	if (side->count)
		qsort_r(side->order, side->count, sizeof(*side->order), compare_functions,
			&sorting);
}

/* Where only the ends of paths agree, there must be as many on each side. */
static void match(struct matcher *m, enum precision precision)
{
	enum { MOST_ALIKE = 1000 }; /* a hostile file may have many; they cost the square */
	size_t i = 0, j = 0;

	collect(&m->before, m, true);
	collect(&m->after, m, false);
	sort(&m->before, precision);
	sort(&m->after, precision);
	while (i < m->before.count && j < m->after.count) {
		int order = compare_keys(at(&m->before, i), at(&m->after, j), precision);
		size_t count = order > 0 ? 0 : group(&m->before, i, precision);
		size_t others = order < 0 ? 0 : group(&m->after, j, precision);

		if (!order && count <= MOST_ALIKE && others <= MOST_ALIKE &&
		    (precision <= WHOLE_PATH || count == others))
			match_group(m, i, count, j, others);
		i += count;
		j += others;
	}
}

static struct prb_error *match_functions(const struct prb_recording *before,
					 const struct prb_recording *after, struct matcher *m)
{
	size_t count = before->tree->functions.count, others = after->tree->functions.count;

	m->before = (struct side){before->tree, calloc(count + 1, sizeof(uint32_t)), 0};
	m->after = (struct side){after->tree, calloc(others + 1, sizeof(uint32_t)), 0};
	m->match = calloc(count + 1, sizeof(*m->match));
	m->taken = calloc(others + 1, sizeof(*m->taken));
	if (!m->before.order || !m->after.order || !m->match || !m->taken)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++)
		m->match[i] = UNMATCHED;
	match(m, WHOLE_NAME);
	match(m, WHOLE_PATH);
	match(m, FOLDER_AND_FILE);
	match(m, FILE_ALONE);
	return NULL;
}

/* Numbers in the tree of both, of functions, frames and stacks of one of them. */
struct numbers {
	uint32_t *functions, *frames, *stacks;
};

static void numbers_deinit(struct numbers *n)
{
	free(n->functions);
	free(n->frames);
	free(n->stacks);
}
#define auto_numbers __attribute__((cleanup(numbers_deinit)))

static struct prb_error *numbers_init(struct numbers *n, const struct prb_tree *tree)
{
	n->functions = calloc(tree->functions.count + 1, sizeof(*n->functions));
	n->frames = calloc(tree->frames.count + 1, sizeof(*n->frames));
	n->stacks = calloc(tree->stacks.count + 1, sizeof(*n->stacks));
	return n->functions && n->frames && n->stacks ? NULL : prb_error_nomem();
}

/* The line of `after` that corresponds to a line of `before`. */
static int32_t moved(const struct prb_tree_function *from, const struct prb_tree_function *to,
		     int32_t line)
{
	int64_t there = (int64_t)line + to->first_line - from->first_line;

	if (line <= 0 || from->first_line <= 0 || to->first_line <= 0 ||
	    from->kind != PRB_FUNCTION_PYTHON)
		return line;
	return there > 0 && there <= INT32_MAX ? (int32_t)there : line;
}

/* Adds the tree @p from, of which functions that are known have their numbers already. */
static struct prb_error *add_calls(struct prb_tree *tree, const struct prb_tree *from,
				   struct numbers *n)
{
	for (size_t i = 0; i < from->frames.count; i++) {
		const struct prb_tree_frame *frame = &from->frames.items[i];
		uint32_t function = n->functions[frame->function];
		int32_t line = moved(&from->functions.items[frame->function],
				     &tree->functions.items[function], frame->line);

		PRB_TRY(prb_tree_frame(tree, function, line, &n->frames[i]));
	}
	for (size_t i = 1; i < from->stacks.count; i++) {
		const struct prb_tree_stack *stack = &from->stacks.items[i];

		PRB_TRY(prb_tree_call(tree, n->stacks[stack->parent], n->frames[stack->frame],
				      &n->stacks[i]));
	}
	return NULL;
}

static struct prb_error *add_threads(struct prb_recording *r, const struct prb_recording *from)
{
	const struct prb_profile_thread *thread;

	prb_vec_each (thread, &from->threads)
		PRB_TRY(prb_recording_copy_thread(r, thread, 0));
	return NULL;
}

static struct prb_error *add_runs(struct prb_recording *r, const struct prb_recording *from,
				  const struct numbers *n, size_t threads)
{
	const struct prb_run *run;

	prb_vec_each (run, &from->runs) {
		struct prb_run *slot = prb_vec_push(&r->runs);

		if (!slot)
			return prb_error_nomem();
		*slot = *run;
		slot->thread += (uint32_t)threads;
		slot->stack = n->stacks[run->stack];
		slot->wait = 0; /* its kind says enough */
	}
	return NULL;
}

static struct prb_error *add_facts(struct prb_recording *r, const struct prb_recording *from)
{
	const struct prb_profile_window *window;

	r->pid = from->pid;
	r->started = from->started;
	r->duration = from->duration;
	r->around = from->around;
	r->rate = from->rate;
	r->native = from->native;
	r->tid = from->tid;
	r->end = from->end;
	r->process_cpu = from->process_cpu;
	r->cost = from->cost;
	PRB_TRY(prb_str_copy(from->command, &r->command));
	PRB_TRY(prb_str_copy(from->python, &r->python));
	PRB_TRY(prb_str_copy(from->condition, &r->condition));
	prb_vec_each (window, &from->windows) {
		struct prb_profile_window *slot = prb_vec_push(&r->windows);

		if (!slot)
			return prb_error_nomem();
		*slot = *window;
	}
	return NULL;
}

static struct prb_error *add_after(struct prb_recording *r, const struct prb_recording *after,
				   struct numbers *n)
{
	const struct prb_tree *from = after->tree;

	PRB_TRY(numbers_init(n, from));
	for (size_t i = 0; i < from->functions.count; i++)
		PRB_TRY(prb_tree_function(r->tree, &from->functions.items[i], &n->functions[i]));
	return add_calls(r->tree, from, n);
}

static struct prb_error *add_before(struct prb_recording *r, const struct prb_recording *before,
				    const uint32_t *match, const struct numbers *after,
				    struct numbers *n)
{
	const struct prb_tree *from = before->tree;

	PRB_TRY(numbers_init(n, from));
	for (size_t i = 0; i < from->functions.count; i++) {
		if (match[i] != UNMATCHED)
			n->functions[i] = after->functions[match[i]];
		else
			PRB_TRY(prb_tree_function(r->tree, &from->functions.items[i],
						  &n->functions[i]));
	}
	return add_calls(r->tree, from, n);
}

static struct prb_error *join(struct prb_recording *r, const struct prb_recording *before,
			      const struct prb_recording *after)
{
	__attribute__((cleanup(matcher_deinit))) struct matcher m = {};
	auto_numbers struct numbers old_numbers = {}, new_numbers = {};

	PRB_TRY(prb_recording_create(&r->before));
	PRB_TRY(add_facts(r->before, before));
	PRB_TRY(add_facts(r, after));
	PRB_TRY(match_functions(before, after, &m));
	PRB_TRY(add_after(r, after, &new_numbers));
	PRB_TRY(add_before(r, before, m.match, &new_numbers, &old_numbers));
	r->before_threads = before->threads.count;
	PRB_TRY(add_threads(r, before));
	PRB_TRY(add_threads(r, after));
	PRB_TRY(add_runs(r, before, &old_numbers, 0));
	PRB_TRY(add_runs(r, after, &new_numbers, r->before_threads));
	return prb_recording_copy_lines(r, after);
}

struct prb_error *prb_recording_join(const struct prb_recording *before,
				     const struct prb_recording *after, struct prb_recording **ret)
{
	prb_auto_recording struct prb_recording *r = NULL;

	PRB_TRY(prb_recording_create(&r));
	PRB_TRY(join(r, before, after));
	*ret = prb_steal(&r);
	return NULL;
}
