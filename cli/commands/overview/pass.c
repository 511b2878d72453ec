/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One look at all processes after the other. */
#include "cli/commands/overview/overview.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "command/descriptors.h"
#include "dump/idle.h"
#include "target/proc/cgroup.h"
#include "target/proc/text.h"
#include "rings/last_step.h"
#include "target/spec/target_spec.h"
#include "target/proc/pids.h"
#include "target/proc/user.h"

enum {
	FRAMES = 32,	       /* innermost: that of the program is among them */
	MOST_LOOKS = 5,	       /* at one process in a pass */
	FULL_EVERY = 15,       /* passes; then a process is read though it did not run */
	FILES_OF_ONE = 8,      /* descriptors that a process which is watched may need */
	FILES_FOR_OTHERS = 64, /* descriptors for all else */
};

/** A process that is no Python may become one by loading a library: so often it is judged anew. */
static const double JUDGE_AGAIN = 30;

/** A pid that was looked at. */
struct known {
	pid_t pid;
	struct prb_pulse pulse;
	double judged;		      /* whether it is Python */
	struct prb_overview_row *row; /* NULL: it is not */
};

/* Groups of processes share a limit, which is read once in a pass. */
struct group {
	const char *text; /* a row's */
	int64_t limit, used;
};

struct prb_overview {
	bool all;
	PRB_VEC(struct known) known;		 /* by pid; of all */
	PRB_VEC(struct prb_overview_row *) rows; /* as shown */
	PRB_VEC(struct group) groups;
	struct prb_python_judge judge;
	double seconds, now, before;
	unsigned passes, files;
	size_t most_open, open; /* targets that may stay open, and do */
};

static void close_target(struct prb_overview *o, struct prb_overview_row *row)
{
	prb_dump_found_deinit(&row->found);
	row->found = (struct prb_dump_found){};
	if (row->target)
		o->open--;
	prb_target_destroy(prb_steal(&row->target));
	row->looks = 0;
}

static void forget_threads(struct prb_overview_row *row)
{
	prb_dump_destroy(prb_steal(&row->dump));
	prb_case_deinit(&row->rules);
	row->rules = (struct prb_case){};
	prb_overview_row_clear(row);
}

static void row_destroy(struct prb_overview *o, struct prb_overview_row *row)
{
	if (!row)
		return;
	close_target(o, row);
	forget_threads(row);
	prb_python_process_deinit(&row->info);
	free(row->file);
	free(row->error);
	free(row->version);
	free(row->groups);
	free(row->words);
	free(row->user);
	prb_vec_free(&row->trend);
	prb_str_deinit(&row->command);
	free(row);
}

static struct prb_overview_row *row_create(void)
{
	struct prb_overview_row *row = calloc(1, sizeof(*row));

	if (row) {
		row->info.rank = row->info.local_rank = -1;
		row->swap = row->limit = row->limit_used = row->step = -1;
		row->cpu_percent = row->main.idle_seconds = -1;
	}
	return row;
}

/** Why nothing is known of its threads; takes over @p err, which may be NULL. */
static struct prb_error *note_error(struct prb_overview *o, struct prb_overview_row *row,
				    struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	free(row->error);
	row->error = strdup(err->message);
	prb_error_destroy(err);
	forget_threads(row);
	close_target(o, row);
	return row->error ? NULL : prb_error_nomem();
}

static struct prb_error *open_target(struct prb_overview *o, struct prb_overview_row *row)
{
	if (row->target)
		return NULL;
	PRB_TRY(prb_target_open_process(row->info.process.pid, &row->target));
	o->open++;
	return NULL;
}

static struct prb_error *make_dump(struct prb_overview_row *row)
{
	const struct prb_dump_options options = {
		.max_frames = FRAMES, .no_values = true, .no_command = true};

	prb_dump_destroy(prb_steal(&row->dump));
	row->is_new = true;
	row->rules.read_seconds = prb_clock_seconds();
	return prb_dump_create_with(row->target, &options, &row->found, &row->dump);
}

/** Reads its threads; a program that was replaced meanwhile is opened anew, once. */
static struct prb_error *read_process(struct prb_overview *o, struct prb_overview_row *row)
{
	bool was_open = row->target;
	struct prb_error *err = open_target(o, row);

	if (!err)
		err = make_dump(row);
	if (err && was_open && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		close_target(o, row);
		err = open_target(o, row);
		if (!err)
			err = make_dump(row);
	}
	return err;
}

static struct prb_error *read_texts(struct prb_overview_row *row)
{
	free(prb_steal(&row->error));
	free(prb_steal(&row->version));
	if (row->dump->python_version)
		PRB_TRY(prb_str_copy(row->dump->python_version, &row->version));
	return NULL;
}

static struct prb_error *read_groups(struct prb_overview_row *row)
{
	prb_auto_str struct prb_str groups = {};

	prb_error_destroy(prb_target_read_file(row->target, &groups, "cgroup"));
	free(row->groups);
	row->groups = strdup(prb_str_text(&groups));
	return row->groups ? NULL : prb_error_nomem();
}

/** Looks for rings only now and then, since that needs the whole map. */
static struct prb_error *read_step(struct prb_overview_row *row, bool seldom)
{
	if (row->step < 0 && !seldom)
		return NULL;
	struct prb_last_step last;
	struct prb_error *err = prb_last_step(row->target, INT64_MAX, &last);

	row->step = last.number;
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

/** A command line that the process has changed since. */
static struct prb_error *read_command(struct prb_overview_row *row)
{
	prb_auto_str struct prb_str text = {};
	struct prb_process now;
	struct prb_error *err = prb_target_read_file(row->target, &text, "cmdline");

	if (!err && text.length == row->command.length &&
	    !memcmp(prb_str_text(&text), prb_str_text(&row->command), text.length))
		return NULL;
	prb_str_deinit(&row->command);
	row->command = text;
	text = (struct prb_str){};
	if (!err)
		err = prb_process_describe(row->info.process.pid, &now);
	if (err) {
		if (err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
		return NULL;
	}
	prb_process_deinit(&row->info.process);
	row->info.process = now;
	return NULL;
}

static struct prb_error *look(struct prb_overview *o, struct prb_overview_row *row)
{
	if (row->info.refusal)
		return NULL;
	struct prb_error *err = read_process(o, row);

	if (!err)
		err = read_texts(row);
	bool seldom = row->looks++ % FULL_EVERY == 0;

	if (!err && seldom)
		err = read_groups(row);
	if (!err)
		err = read_step(row, seldom);
	if (!err)
		err = read_command(row);
	row->read = o->now;
	return note_error(o, row, err);
}

static int64_t swap_of(struct prb_overview_row *row)
{
	prb_auto_str struct prb_str text = {};
	const char *field;

	prb_error_destroy(prb_target_read_file(row->target, &text, "status"));
	field = prb_text_field(prb_str_text(&text), "VmSwap");
	return field ? strtoll(field, NULL, 10) * 1024 : -1;
}

static void read_limit(struct prb_overview *o, struct prb_overview_row *row)
{
	struct group *group;

	prb_vec_each (group, &o->groups)
		if (!strcmp(group->text, row->groups)) {
			row->limit = group->limit;
			row->limit_used = group->used;
			return;
		}
	prb_cgroup_memory(row->groups, &row->limit, &row->limit_used);
	group = prb_vec_push(&o->groups);
	if (group)
		*group = (struct group){row->groups, row->limit, row->limit_used};
}

/** Updates what is read in each pass, also for a process that did not run. */
static void count(struct prb_overview *o, struct known *k, const struct prb_pulse *pulse,
		  bool another, bool looked)
{
	struct prb_overview_row *row = k->row;
	double passed = o->now - o->before;

	row->cpu_percent = another || !(o->before > 0) || pulse->ran < k->pulse.ran || passed <= 0
				   ? -1
				   : (double)(pulse->ran - k->pulse.ran) / passed / 1e7;
	row->pulse = *pulse;
	if (another)
		row->trend.count = 0;
	prb_overview_trend_note(row, o->now);
	if (row->target && looked)
		row->swap = swap_of(row);
}

/** Describes a named process that is no Python, going by its files. */
static struct prb_error *describe(struct prb_overview_row *row, pid_t pid)
{
	struct prb_process process;
	struct prb_error *err = prb_process_describe(pid, &process);

	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS) || err)
		return err;
	prb_process_deinit(&row->info.process);
	row->info.process = process;
	return NULL;
}

static struct prb_error *judge(struct prb_overview *o, struct known *k)
{
	struct prb_python_processes found = {};
	bool named = k->row && k->row->named;

	if (!named) {
		row_destroy(o, k->row);
		k->row = NULL;
	}
	k->judged = o->now;
	PRB_TRY(prb_process_judge(&o->judge, k->pid, &found));
	if (!found.list.count)
		return named ? describe(k->row, k->pid) : NULL;
	if (!k->row)
		k->row = row_create();
	if (!k->row) {
		prb_python_processes_deinit(&found);
		return prb_error_nomem();
	}
	prb_python_process_deinit(&k->row->info);
	k->row->info = found.list.items[0];
	prb_vec_free(&found.list);
	return NULL;
}

/** One process that exists. @p k is as the pass before left it, or has its pid only. */
static struct prb_error *visit(struct prb_overview *o, struct known *k,
			       const struct prb_pulse *pulse)
{
	bool another = !k->judged || pulse->start_ticks != k->pulse.start_ticks ||
		       pulse->device != k->pulse.device || pulse->inode != k->pulse.inode;
	bool ran = another || pulse->ran != k->pulse.ran;

	if (another || (!k->row && ran && o->now > k->judged + JUDGE_AGAIN)) {
		if (k->row) {
			close_target(o, k->row);
			forget_threads(k->row);
		}
		PRB_TRY(judge(o, k));
	}
	if (k->row) {
		bool due = ran || (o->passes + (unsigned)k->pid) % FULL_EVERY == 0;

		if (due)
			PRB_TRY(look(o, k->row));
		count(o, k, pulse, another, due);
	}
	k->pulse = *pulse;
	return NULL;
}

/** Visits all current processes; those that have ended are forgotten. */
static struct prb_error *visit_all(struct prb_overview *o)
{
	__attribute__((cleanup(prb_pids_deinit))) struct prb_pids pids = {};
	__typeof__(o->known) old = o->known;
	struct prb_error *err = prb_pids_of_all(&pids);
	size_t at = 0;

	if (err)
		return err;
	o->known = (__typeof__(o->known)){};
	for (size_t i = 0; i < pids.list.count && !err; i++) {
		struct prb_pulse pulse;
		struct known *place;

		for (; at < old.count && old.items[at].pid < pids.list.items[i]; at++)
			row_destroy(o, old.items[at].row);
		if (!prb_pulse_read(pids.list.items[i], &pulse))
			continue;
		place = prb_vec_push(&o->known);
		if (!place) {
			err = prb_error_nomem();
			break;
		}
		if (at < old.count && old.items[at].pid == pids.list.items[i])
			*place = old.items[at++];
		place->pid = pids.list.items[i];
		err = visit(o, place, &pulse);
	}
	for (; at < old.count; at++)
		row_destroy(o, old.items[at].row);
	prb_vec_free(&old);
	return err;
}

/** Visits the named processes, which stay in the list. */
static struct prb_error *visit_named(struct prb_overview *o)
{
	struct known *k;

	prb_vec_each (k, &o->known) {
		struct prb_pulse pulse;

		if (k->row->file || k->row->ended)
			continue;
		/* Its pid may be another process's by now. */
		if (prb_pulse_read(k->pid, &pulse) &&
		    (!k->judged || pulse.start_ticks == k->pulse.start_ticks)) {
			PRB_TRY(visit(o, k, &pulse));
			continue;
		}
		k->row->ended = true;
		close_target(o, k->row);
	}
	return NULL;
}

static struct prb_error *collect_rows(struct prb_overview *o)
{
	struct known *k;

	o->rows.count = 0;
	prb_vec_each (k, &o->known) {
		struct prb_overview_row **place = k->row ? prb_vec_push(&o->rows) : NULL;

		if (k->row && !place)
			return prb_error_nomem();
		if (place)
			*place = k->row;
	}
	return NULL;
}

/** How long threads have slept, and their reading took. */
static struct prb_error *note_times(struct prb_overview *o)
{
	struct prb_idle *idle;
	struct prb_error *err = NULL;

	PRB_TRY(prb_idle_create(&idle));
	for (size_t i = 0; i < o->rows.count && !err; i++) {
		struct prb_overview_row *row = o->rows.items[i];

		if (row->dump && row->is_new)
			err = prb_judge_note_idle(idle, row->target, row->dump,
						  PRB_OVERVIEW_OFFERS);
	}
	prb_idle_finish(idle);
	for (size_t i = 0; i < o->rows.count; i++) {
		struct prb_overview_row *row = o->rows.items[i];

		if (row->dump && row->is_new)
			row->rules.read_seconds =
				prb_judge_read_seconds(row->target, row->rules.read_seconds);
	}
	return err;
}

/** Of its user, and of itself for command lines. */
static struct prb_error *name(struct prb_overview_row *row)
{
	prb_auto_str struct prb_str user = {};

	row->words = row->file ? strdup(row->file) : prb_format("%d", (int)row->info.process.pid);
	if (!row->words || row->file)
		return row->words ? NULL : prb_error_nomem();
	if (!prb_user_name(row->info.process.uid, &user))
		prb_str_printf(&user, "%u", (unsigned)row->info.process.uid);
	return prb_str_copy(prb_str_text(&user), &row->user);
}

/** Of all that were read in this pass, since the clocks are read once. */
static struct prb_error *judge_all(struct prb_overview *o)
{
	prb_auto_glances struct prb_glances glances = {};
	struct prb_error *err = note_times(o);

	o->groups.count = 0;
	for (size_t i = 0; i < o->rows.count && !err; i++) {
		struct prb_overview_row *row = o->rows.items[i];

		if (row->groups && !row->ended)
			read_limit(o, row);
		if (row->dump && row->is_new)
			err = prb_overview_judge(row);
		row->is_new = false;
		if (!err && !row->words)
			err = name(row);
		if (!err)
			err = prb_overview_trouble(row, o->now, &glances);
		if (!row->file && o->open > o->most_open)
			close_target(o, row);
	}
	return err;
}

/** Reads those again of which a rule would say more then; *ret is false if there are none. */
static struct prb_error *look_again(struct prb_overview *o, bool *ret)
{
	static const struct timespec MOMENT = {.tv_nsec = 10000000};

	*ret = false;
	for (size_t i = 0; i < o->rows.count; i++) {
		struct prb_overview_row *row = o->rows.items[i];

		if (!row->rules.again || row->file || row->ended)
			continue;
		if (!*ret)
			nanosleep(&MOMENT, NULL);
		*ret = true;
		PRB_TRY(look(o, row));
	}
	return NULL;
}

struct prb_error *prb_overview_pass(struct prb_overview *o)
{
	bool again = true;

	o->now = prb_clock_seconds();
	o->passes++;
	PRB_TRY(o->all ? visit_all(o) : visit_named(o));
	PRB_TRY(collect_rows(o));
	PRB_TRY(judge_all(o));
	for (unsigned n = 0; again && n < MOST_LOOKS; n++) {
		PRB_TRY(look_again(o, &again));
		if (again)
			PRB_TRY(judge_all(o));
	}
	o->before = o->now;
	o->seconds = prb_clock_seconds() - o->now;
	return NULL;
}

/** A file is read once. */
static struct prb_error *read_file(struct prb_overview *o, struct prb_overview_row *row,
				   const char *name)
{
	PRB_TRY(prb_str_copy(name, &row->file));
	row->number = ++o->files;
	row->read = prb_clock_seconds();

	struct prb_error *err = prb_target_check_memory(row->target);
	if (!err)
		err = make_dump(row);
	if (!err)
		err = read_texts(row);
	return note_error(o, row, err);
}

static struct prb_error *add_named(struct prb_overview *o, const char *name,
				   const struct prb_core_places *places)
{
	prb_auto_target struct prb_target *target = NULL;
	struct known *k;

	PRB_TRY(prb_spec_open_in(name, places, &target));
	k = prb_vec_push(&o->known);
	if (k)
		k->row = row_create();
	if (!k || !k->row) {
		if (k)
			o->known.count--;
		return prb_error_nomem();
	}
	k->row->named = true;
	k->row->target = prb_steal(&target);
	o->open++;
	if (!k->row->target->live)
		return read_file(o, k->row, name);
	k->pid = k->row->info.process.pid = k->row->target->pid;
	return NULL;
}

/** Each process that stays open needs some descriptors. */
static void take_descriptors(struct prb_overview *o)
{
	struct rlimit limit = {};

	prb_descriptors_raise();
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	o->most_open = limit.rlim_cur > FILES_FOR_OTHERS
			       ? PRB_MIN((limit.rlim_cur - FILES_FOR_OTHERS) / FILES_OF_ONE, 4096)
			       : 0;
}

struct prb_error *prb_overview_create(const struct prb_texts *targets,
				      const struct prb_core_places *places,
				      struct prb_overview **ret)
{
	struct prb_overview *o = calloc(1, sizeof(*o));
	struct prb_error *err = NULL;

	if (!o)
		return prb_error_nomem();
	o->all = !targets->count;
	take_descriptors(o);
	for (size_t i = 0; i < targets->count && !err; i++)
		err = add_named(o, targets->items[i], places);
	if (err)
		prb_overview_destroy(o);
	else
		*ret = o;
	return err;
}

void prb_overview_destroy(struct prb_overview *o)
{
	struct known *k;

	prb_vec_each (k, &o->known)
		row_destroy(o, k->row);
	prb_vec_free(&o->known);
	prb_vec_free(&o->rows);
	prb_vec_free(&o->groups);
	prb_python_judge_deinit(&o->judge);
	free(o);
}

double prb_overview_time(const struct prb_overview *o)
{
	return o->now;
}

double prb_overview_seconds(const struct prb_overview *o)
{
	return o->seconds;
}

size_t prb_overview_count(const struct prb_overview *o)
{
	return o->rows.count;
}

const struct prb_overview_row *prb_overview_row(const struct prb_overview *o, size_t index)
{
	return o->rows.items[index];
}

struct prb_overview_row *prb_overview_row_of(const struct prb_overview *o, pid_t pid)
{
	struct prb_overview_row *const *row;

	prb_vec_each (row, &o->rows)
		if (!(*row)->file && !(*row)->ended && (*row)->info.process.pid == pid)
			return *row;
	return NULL;
}
