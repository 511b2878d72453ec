/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/torch/torch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands/memory/report/memory.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/torch/growth.h"
#include "command/interrupt.h"
#include "command/naming.h"
#include "command/output.h"
#include "command/term.h"
#include "control/config.h"
#include "profile/sampler/sampler.h"
#include "target/spec/command_line.h"
#include "target/spec/target_spec.h"
#include "values/census/torch_steps.h"

static const double default_seconds = 10;
static const int default_rate = 100;

/** A module as of the reading of the model; owns all strings. */
struct module {
	uint64_t address;
	char *path, *class;
	uint32_t order;
};

/** The counter of steps. */
struct counter {
	struct prb_python *py;
	uint64_t optimizer; /**< address of the optimizer; 0: none */
	uint64_t first, last;
};

struct torch {
	const struct prb_performance_settings *settings;
	struct prb_target *target;
	struct prb_memory memory; /**< its pythons are needed while steps are counted */
	PRB_VEC(struct module) modules;
	bool interrupted; /**< ended by Ctrl-C, not by the last step */
	struct counter counter;
	struct prb_torch_growth growth;
	int64_t next_look; /**< ns, time of the next check of steps */
};

static void torch_deinit(struct torch *t)
{
	struct module *module;

	prb_vec_each (module, &t->modules) {
		free(module->path);
		free(module->class);
	}
	prb_vec_free(&t->modules);
	prb_torch_growth_deinit(&t->growth);
	prb_memory_deinit(&t->memory);
	prb_target_destroy(t->target);
}

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static bool is_known(const struct torch *t, uint64_t address)
{
	const struct module *module;

	prb_vec_each (module, &t->modules)
		if (module->address == address)
			return true;
	return false;
}

static struct prb_error *note_module(struct torch *t, const struct prb_torch_module *m)
{
	struct module *module = is_known(t, m->address) ? NULL : prb_vec_push(&t->modules);

	if (!module)
		return is_known(t, m->address) ? NULL : prb_error_nomem();
	module->address = m->address;
	module->order = m->order + PRB_STEP_PARTS;
	PRB_TRY(prb_str_copy(m->path, &module->path));
	return prb_str_copy(m->class ? last_part(m->class) : "?", &module->class);
}

/** Finds the first optimizer that counts its steps. */
static struct prb_error *find_counter(struct torch *t, const struct prb_memory_interpreter *i)
{
	if (t->counter.optimizer)
		return NULL;
	t->counter.py = i->py;
	return prb_torch_counter(i->census, i->py, t->target->mem, &t->counter.optimizer);
}

static struct prb_error *read_model(struct torch *t, bool again)
{
	const struct prb_memory_settings settings = {};
	struct prb_memory_interpreter *i;

	PRB_TRY(prb_memory_read(t->target, &settings, &t->memory));
	if (t->memory.no_python)
		return prb_steal(&t->memory.no_python);
	prb_vec_each (i, &t->memory.interpreters) {
		prb_auto_torch_modules struct prb_torch_modules modules = {};
		const struct prb_torch_module *module;

		if (i->error)
			return prb_steal(&i->error);
		PRB_TRY(prb_torch_modules_read(i->census, &modules));
		prb_vec_each (module, &modules.list)
			PRB_TRY(note_module(t, module));
		PRB_TRY(find_counter(t, i));
		if (t->memory.interpreters.count == 1 && !again)
			prb_torch_growth_begin(&t->growth, t->target, &i->census);
		/* Only the names are needed from now on, and the census may be large. */
		prb_census_destroy(prb_steal(&i->census));
	}
	return NULL;
}

/** Reads the modules again: those made meanwhile get names if they still exist. */
static struct prb_error *read_again(struct torch *t)
{
	struct torch again = {.target = t->target, .counter = {.optimizer = 1}};
	struct module *module;
	struct prb_error *err = read_model(&again, true);

	/* On an error the process may have ended: keep the old names. */
	if (!err)
		prb_vec_each (module, &again.modules) {
			struct module *added =
				is_known(t, module->address) ? NULL : prb_vec_push(&t->modules);

			if (!added)
				continue;
			*added = *module;
			added->order = (uint32_t)t->modules.count - 1 + PRB_STEP_PARTS;
			module->path = module->class = NULL;
		}
	again.target = NULL;
	torch_deinit(&again);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

/** Refuses a number of steps without a counter: nothing else would end the sampling. */
static struct prb_error *check_counter(const struct torch *t)
{
	if (!t->settings->torch.steps || t->settings->record.duration > 0 || t->counter.optimizer)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
					       "--steps cannot end: no optimizer there counts its "
					       "steps (plain SGD never does, others from their "
					       "first step on)"),
			      "--duration ends after a time; with --exact the agent counts steps");
}

static bool count_steps(struct torch *t)
{
	prb_auto_error struct prb_error *err = NULL;
	uint64_t steps;

	if (!t->counter.optimizer)
		return false;
	err = prb_torch_steps(t->counter.py, t->target->mem, t->counter.optimizer, &steps);
	if (!err)
		t->counter.last = steps;
	return !err;
}

/** True after Ctrl-C, or after the last wanted step. */
static bool is_over(void *context)
{
	enum { LOOK_NS = 20 * 1000 * 1000 };
	struct torch *t = context;
	int64_t now;

	t->interrupted |= prb_interrupted();
	prb_torch_growth_look(&t->growth, t->target);
	if (t->interrupted)
		return true;
	now = t->settings->torch.steps ? prb_clock_ns() : 0;
	if (!t->settings->torch.steps || now < t->next_look)
		return false;
	t->next_look = now + LOOK_NS;
	return count_steps(t) &&
	       t->counter.last >= t->counter.first + (uint64_t)t->settings->torch.steps;
}

/** Of those, C++ exchanges the gradients within backward, which frames of Python do not show. */
static bool is_distributed(const struct torch *t)
{
	static const char *const classes[] = {"DistributedDataParallel", "FullyShardedDataParallel",
					      "FSDP"};
	const struct module *module;

	prb_vec_each (module, &t->modules)
		for (size_t i = 0; i < PRB_ARRAY_SIZE(classes); i++)
			if (!strncmp(module->class, classes[i], strlen(classes[i])))
				return true;
	return false;
}

static struct prb_error *record(struct torch *t, struct prb_recording **ret)
{
	const struct prb_performance_settings *s = t->settings;
	prb_auto_free char *command = NULL;
	struct prb_profile_options options = {
		.seconds = s->record.duration > 0 ? s->record.duration
			   : s->torch.steps	  ? 0
						  : default_seconds,
		.rate = s->record.rate ? s->record.rate : default_rate,
		.tid = s->record.tid,
		.native = s->record.cc || is_distributed(t),
		.modules = true,
		.cancelled = is_over,
		.give_up_names = prb_naming_gives_up,
		.context = t,
	};
	struct prb_error *err;

	PRB_TRY(prb_performance_command_line(t->target, &command));
	options.command = command;
	if (prb_term_is(stderr))
		fprintf(stderr, "sampling %d; Ctrl-C ends it and shows what there is\n",
			(int)t->target->pid);
	prb_interrupt_catch_ends();
	if (count_steps(t))
		t->counter.first = t->counter.last;
	err = prb_profile_record(t->target, &options, ret);
	if (!t->interrupted && !err && (*ret)->end == PRB_PROFILE_INTERRUPTED)
		(*ret)->end = PRB_PROFILE_DONE;
	prb_interrupt_release();
	prb_naming_tell(*ret);
	count_steps(t);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct module *one = a, *other = b;

	return one->address < other->address ? -1 : one->address > other->address;
}

/** Names sorted by address, for the transformation. */
static struct prb_error *list_names(struct torch *t, struct prb_module_name **names,
				    uint32_t **orders)
{
	size_t count = t->modules.count;

	if (count)
		qsort(t->modules.items, count, sizeof(*t->modules.items), compare);
	*names = calloc(count + 1, sizeof(**names));
	*orders = calloc(count + 1, sizeof(**orders));
	if (!*names || !*orders)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++) {
		const struct module *module = &t->modules.items[i];

		(*names)[i] =
			(struct prb_module_name){module->address, module->path, module->class};
		(*orders)[i] = module->order;
	}
	return NULL;
}

static struct prb_error *write_file(const struct prb_performance_settings *s,
				    const struct prb_recording *recording,
				    const struct prb_module_name *names, size_t count,
				    const struct prb_profile_choice *choice,
				    const struct prb_profile_format *format)
{
	struct prb_by_module by;
	struct prb_error *err;

	PRB_TRY(prb_by_module(recording, names, count,
			      &(struct prb_by_module_options){.calls = true, .nodes = s->record.cc},
			      &by));
	err = prb_performance_write(by.recording, choice, &s->out, format);
	prb_recording_destroy(by.recording);
	return err;
}

static long steps_since(void *context)
{
	struct torch *t = context;
	uint64_t before = t->counter.last;

	return count_steps(t) ? (long)(t->counter.last - before) : -1;
}

static struct prb_error *find_growth(struct torch *t)
{
	const struct prb_memory_interpreter *i = t->memory.interpreters.items;

	return t->growth.before
		       ? prb_torch_growth_find(&t->growth, t->target, i->py, i->state.address)
		       : NULL;
}

static struct prb_error *choose(const struct prb_performance_settings *s,
				struct prb_profile_choice *ret)
{
	*ret = (struct prb_profile_choice){.weight = PRB_WEIGHT_WALL};
	return s->show.mode ? prb_weight_parse(s->show.mode, &ret->weight) : NULL;
}

/** A recording, and what it says of the modules. Starts as {}. */
struct made {
	struct prb_recording *recording;
	struct prb_module_name *names;
	uint32_t *orders;
	struct prb_by_module by;
	struct prb_torch_ranks ranks;
	struct prb_torch_tree tree;
};

static void made_deinit(struct made *made)
{
	prb_torch_tree_deinit(&made->tree);
	prb_torch_ranks_deinit(&made->ranks);
	prb_recording_destroy(made->by.recording);
	prb_recording_destroy(made->recording);
	free(made->names);
	free(made->orders);
}

static struct prb_error *find_modules(struct torch *t, struct made *made)
{
	const struct prb_by_module_options options = {.nodes = t->settings->record.cc};
	struct prb_error *err;

	PRB_TRY(list_names(t, &made->names, &made->orders));
	err = prb_by_module(made->recording, made->names, t->modules.count, &options, &made->by);
	if (err ? err->code != PRB_ERROR_NOT_FOUND : !made->by.unknown)
		return err;
	prb_error_destroy(err);
	prb_recording_destroy(prb_steal(&made->by.recording));
	free(prb_steal(&made->names));
	free(prb_steal(&made->orders));
	PRB_TRY(read_again(t));
	PRB_TRY(list_names(t, &made->names, &made->orders));
	return prb_by_module(made->recording, made->names, t->modules.count, &options, &made->by);
}

static struct prb_error *judge(struct torch *t, const struct prb_profile_choice *choice,
			       struct made *made)
{
	struct prb_torch_tree *tree = &made->tree;

	PRB_TRY(prb_torch_tree_make(&made->by, made->names, made->orders, t->modules.count, choice,
				    tree));
	if (t->counter.last > t->counter.first) {
		tree->steps = t->counter.last - t->counter.first;
		tree->steps_exact = true;
	}
	tree->ranks = &made->ranks;
	PRB_TRY(prb_torch_ranks_look(t->target->pid, steps_since, t, &made->ranks));
	PRB_TRY(find_growth(t));
	return prb_torch_judge(made->recording, t->target, &made->ranks, &t->growth, tree);
}

static struct prb_error *show(struct torch *t, const struct prb_profile_choice *choice,
			      struct made *made)
{
	prb_auto_str struct prb_str text = {};

	PRB_TRY(judge(t, choice, made));
	PRB_TRY((t->settings->out.json ? prb_torch_tree_json : prb_torch_tree_text)(
		made->by.recording, &made->tree, choice, &text));
	PRB_TRY(prb_output_lines(&text, t->settings->out.json));
	return prb_output_flush();
}

static struct prb_error *record_and_show(struct torch *t, const struct prb_profile_format *format)
{
	__attribute__((cleanup(made_deinit))) struct made made = {};
	struct prb_profile_choice choice;

	PRB_TRY(choose(t->settings, &choice));
	PRB_TRY(read_model(t, false));
	PRB_TRY(check_counter(t));
	PRB_TRY(record(t, &made.recording));
	PRB_TRY(find_modules(t, &made));
	if (format)
		PRB_TRY(write_file(t->settings, made.recording, made.names, t->modules.count,
				   &choice, format));
	return format && !t->settings->out.json ? NULL : show(t, &choice, &made);
}

static struct prb_error *record_and_judge(struct torch *t, struct prb_torch_verdicts *ret)
{
	__attribute__((cleanup(made_deinit))) struct made made = {};
	const struct prb_profile_choice choice = {.weight = PRB_WEIGHT_WALL};
	struct prb_error *err;

	PRB_TRY(read_model(t, false));
	PRB_TRY(record(t, &made.recording));
	err = find_modules(t, &made);
	/* No module ran. */
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	PRB_TRY(judge(t, &choice, &made));
	*ret = made.tree.verdicts;
	made.tree.verdicts = (struct prb_torch_verdicts){};
	return NULL;
}

struct prb_error *prb_torch_verdicts_take(const struct prb_cli *cli, const char *target,
					  double seconds, struct prb_torch_verdicts *ret)
{
	const struct prb_performance_settings settings = {.record.duration = seconds};
	struct torch t = {.settings = &settings};
	struct prb_error *err;

	PRB_TRY(prb_spec_open_in(target, &cli->places, &t.target));
	err = t.target->live && prb_target_has_torch(t.target) ? record_and_judge(&t, ret) : NULL;
	torch_deinit(&t);
	return err;
}

struct prb_error *prb_performance_torch(const struct prb_cli *cli,
					const struct prb_performance_settings *s,
					const struct prb_profile_format *format)
{
	struct torch t = {.settings = s};
	struct prb_error *err;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &t.target));
	err = t.target->live ? record_and_show(&t, format)
			     : prb_error_create(PRB_ERROR_UNSUPPORTED,
						"--torch needs a process that runs; this is a %s",
						prb_target_kind_name(t.target->kind));
	err = prb_command_line_name(t.target, err);
	torch_deinit(&t);
	return err;
}
