/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One look at all processes after the other. */
#include "cli/commands/overview/overview.h"
#include "cluster/looks/end.h"

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
#include "target/proc/instance.h"
#include "target/proc/text.h"
#include "judge/gil.h"
#include "judge/limits.h"
#include "target/spec/target_spec.h"
#include "target/proc/pids.h"
#include "target/proc/user.h"

enum {
	FRAMES = 32,	       /* innermost: that of the program is among them */
	MOST_LOOKS = 5,	       /* at one process in a pass */
	FILES_OF_ONE = 8,      /* descriptors that a process which is watched may need */
	FILES_FOR_OTHERS = 64, /* descriptors for all else */
};

/**
 * Processes that did not run are read again after READ_AGAIN seconds, or later if there are many,
 * as reading and judging may each use QUIET_SHARE of a processor; but after MOST_AGAIN seconds at
 * last.
 */
static const double READ_AGAIN = 30, QUIET_SHARE = 0.003, MOST_AGAIN = 90;

/** Walks of all objects (judge/holder.h) take this share of a processor; so much may be saved up.
 */
static const double WALKS_SHARE = 0.05, WALKS_CREDIT = 1;

/**
 * Rules that read a process again after a moment may wait for so long: in a pass all together for
 * MOST_PATIENCE, or ONCE_PATIENCE in the only one, and for the same process not before
 * PATIENT_AGAIN seconds have passed.
 */
static const double PATIENCE = 0.25, MOST_PATIENCE = 0.5, ONCE_PATIENCE = 1, PATIENT_AGAIN = 10;

/** So often its rings are looked for, which needs its whole map. */
static const double SEARCH_AGAIN = 30;

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

/** Repeated work on processes that did not run. */
struct turns {
	double interval; /* seconds between two for the same process */
	double cost;	 /* processor seconds of the latest turn of every row, in sum */
	double left;	 /* how many more are made in this pass */
};

struct prb_overview {
	bool all;
	bool lists;				 /* threads are not read in this pass */
	PRB_VEC(struct known) known;		 /* by pid; of all */
	PRB_VEC(struct prb_overview_row *) rows; /* as shown */
	PRB_VEC(struct group) groups;
	struct prb_python_judge judge;
	double seconds, now, before;
	unsigned files, passes;
	size_t most_open, open; /* targets that may stay open, and do */
	struct turns reading, judging;
	struct prb_walks walks;
	struct prb_engines engines;
	double patience; /* seconds that are left for rules that wait in this pass */
};

/** Limits the turns of a pass, so that they are spread evenly over an interval. */
static void begin_turns(const struct prb_overview *o, struct turns *turns, double least)
{
	turns->interval = PRB_MIN(PRB_MAX(least, turns->cost / QUIET_SHARE), MOST_AGAIN);
	turns->left = turns->interval > 0
			      ? 1 + (double)o->rows.count * (o->now - o->before) / turns->interval
			      : (double)o->rows.count;
	turns->cost = 0;
}

/** True if a row that had its last turn at @p last has one now. */
static bool take_turn(const struct prb_overview *o, struct turns *turns, double last)
{
	if (o->now < last + turns->interval || turns->left < 1)
		return false;
	turns->left--;
	return true;
}

static double processor_seconds(void)
{
	return (double)prb_clock_thread_ns() / 1e9;
}

static void close_target(struct prb_overview *o, struct prb_overview_row *row)
{
	prb_dump_found_deinit(&row->found);
	row->found = (struct prb_dump_found){};
	if (row->target)
		o->open--;
	prb_target_destroy(prb_steal(&row->target));
	row->searched = 0;
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
	prb_overview_waits_forget(row);
	prb_python_process_deinit(&row->info);
	free(row->file);
	free(row->error);
	free(row->version);
	free(row->groups);
	free(row->words);
	free(row->user);
	prb_vec_free(&row->trend);
	prb_str_deinit(&row->command);
	prb_str_deinit(&row->end);
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

static struct prb_error *look(struct prb_overview *o, struct prb_overview_row *row)
{
	if (row->info.refusal)
		return NULL;
	double began = processor_seconds();
	bool seldom = !(row->searched > 0) || o->now > row->searched + SEARCH_AGAIN;
	struct prb_error *err = read_process(o, row);

	if (!err)
		err = prb_overview_read_texts(row);
	if (!err)
		err = prb_overview_read_facts(row, seldom ? &o->engines : NULL);
	if (seldom)
		row->searched = o->now;
	row->read = o->now;
	row->read_cost = processor_seconds() - began;
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
			prb_overview_waits_forget(k->row);
		}
		PRB_TRY(judge(o, k));
	}
	if (k->row && ran)
		k->row->ran_at = o->now;
	if (k->row) {
		bool due = !o->lists &&
			   (ran || !(k->row->read > 0) || take_turn(o, &o->reading, k->row->read));

		if (due)
			PRB_TRY(look(o, k->row));
		count(o, k, pulse, another, due);
	}
	k->pulse = *pulse;
	return NULL;
}

/** Now and then all of it, for what the kernel took of its memory. @p k: NULL for a new one. */
static bool read_pulse(const struct prb_overview *o, pid_t pid, const struct known *k,
		       struct prb_pulse *ret)
{
	enum { WHOLE = 8 }; /* passes */

	return k && ((unsigned)pid + o->passes) % WHOLE ? prb_pulse_again(pid, &k->pulse, ret)
							: prb_pulse_read(pid, ret);
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
		struct known *place, *k;

		for (; at < old.count && old.items[at].pid < pids.list.items[i]; at++)
			row_destroy(o, old.items[at].row);
		k = at < old.count && old.items[at].pid == pids.list.items[i] ? &old.items[at]
									      : NULL;
		if (!read_pulse(o, pids.list.items[i], k, &pulse))
			continue;
		place = prb_vec_push(&o->known);
		if (!place) {
			err = prb_error_nomem();
			break;
		}
		if (k)
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
		if (read_pulse(o, k->pid, k, &pulse) &&
		    (!k->judged || pulse.start_ticks == k->pulse.start_ticks)) {
			PRB_TRY(visit(o, k, &pulse));
			continue;
		}
		k->row->ended = true;
		prb_end_put(&k->row->end, k->pid, k->pulse.start_ticks);
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

		if (!row->dump || !row->is_new)
			continue;
		row->rules.read_seconds =
			prb_judge_read_seconds(row->target, row->rules.read_seconds);
		if (!err)
			err = prb_overview_waits_note(row);
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

/** True if its sleep has passed a limit of the rules since it was judged last. */
static bool has_passed_a_limit(const struct prb_overview *o, const struct prb_overview_row *row)
{
	static const enum prb_limit limits[] = {PRB_LIMIT_WAIT, PRB_LIMIT_LONG, PRB_LIMIT_STILL,
						PRB_LIMIT_JOB, PRB_LIMIT_PEER};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(limits); i++) {
		double at = row->ran_at + prb_limit(limits[i]);

		if (row->judged_at <= at && o->now > at)
			return true;
	}
	return false;
}

/** False for a process that did not run and has no finding, until its turn comes. */
static bool is_to_be_judged(struct prb_overview *o, const struct prb_overview_row *row)
{
	/* A finding says how long it lasts. */
	return row->is_new || row->ended || !row->judged || row->findings.list.count ||
	       row->rules.again || has_passed_a_limit(o, row) ||
	       take_turn(o, &o->judging, row->judged_at);
}

/** True if a rule that waits has found something: without patience it would be forgotten. */
static bool needs_patience(const struct prb_overview_row *row)
{
	for (const struct prb_rule *const *rule = prb_rules; *rule; rule++)
		if ((*rule)->waits && prb_findings_have(&row->findings, (*rule)->name))
			return true;
	return false;
}

static double patience_for(const struct prb_overview *o, struct prb_overview_row *row)
{
	bool due = !(row->patient_at > 0) || o->now > row->patient_at + PATIENT_AGAIN;

	if (row->ended || (!needs_patience(row) && (!due || o->patience <= 0)))
		return 0;
	row->patient_at = o->now;
	return PATIENCE;
}

static struct prb_error *judge_row(struct prb_overview *o, struct prb_overview_row *row,
				   struct prb_glances *glances)
{
	double began = processor_seconds(), spent = row->rules.spent;

	if (row->groups && !row->ended)
		read_limit(o, row);
	PRB_TRY(prb_case_note_gil(&row->rules, row->is_new ? row->dump : NULL, o->now));
	/* What takes patience stays as it is until there is some again. */
	if (!is_to_be_judged(o, row) || (!row->ended && needs_patience(row) && o->patience <= 0))
		return NULL;
	row->rules.at_once = true;
	row->rules.patience = patience_for(o, row);
	if (row->dump && row->is_new)
		PRB_TRY(prb_overview_judge(row));
	if (!row->words)
		PRB_TRY(name(row));
	/* What grows shows in two of them: a single look makes none. */
	PRB_TRY(prb_overview_trouble(row, o->now, o->before > 0 ? &o->walks : NULL, glances));
	o->patience -= row->rules.spent - spent;
	o->walks.took += row->rules.spent - spent;
	row->is_new = false;
	row->judged_at = o->now;
	row->judge_cost = processor_seconds() - began;
	return NULL;
}

/** Of all that were read in this pass, since the clocks are read once. */
static struct prb_error *judge_all(struct prb_overview *o)
{
	prb_auto_glances struct prb_glances glances = {};
	struct prb_error *err = note_times(o);

	o->groups.count = 0;
	for (size_t i = 0; i < o->rows.count && !err; i++) {
		struct prb_overview_row *row = o->rows.items[i];

		err = judge_row(o, row, &glances);
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

static void note_costs(struct prb_overview *o)
{
	for (size_t i = 0; i < o->rows.count; i++) {
		o->reading.cost += o->rows.items[i]->read_cost;
		o->judging.cost += o->rows.items[i]->judge_cost;
	}
}

struct prb_error *prb_overview_list(struct prb_overview *o)
{
	o->now = prb_clock_seconds();
	o->lists = true;
	PRB_TRY(o->all ? visit_all(o) : visit_named(o));
	o->lists = false;
	return collect_rows(o);
}

struct prb_error *prb_overview_pass(struct prb_overview *o)
{
	bool again = true;

	o->now = prb_clock_seconds();
	o->passes++;
	begin_turns(o, &o->reading, READ_AGAIN);
	begin_turns(o, &o->judging, 0);
	o->walks.left = PRB_MIN(o->walks.left + WALKS_SHARE * (o->now - o->before), WALKS_CREDIT);
	o->walks.took = 0;
	o->patience = o->before > 0 ? MOST_PATIENCE : ONCE_PATIENCE;
	PRB_TRY(o->all ? visit_all(o) : visit_named(o));
	PRB_TRY(collect_rows(o));
	PRB_TRY(judge_all(o));
	for (unsigned n = 0; again && n < MOST_LOOKS; n++) {
		PRB_TRY(look_again(o, &again));
		if (again)
			PRB_TRY(judge_all(o));
	}
	note_costs(o);
	o->before = o->now;
	/* Walks and waits have limits of their own, and are no reason to look less often. */
	o->seconds = prb_clock_seconds() - o->now - o->walks.took;
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
		err = prb_overview_read_texts(row);
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
	k->row->info.process.start_ticks = prb_instance_start(k->pid);
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
	err = prb_engines_load(getenv("PROBING_ENGINES"), &o->engines);
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

	if (!o)
		return;
	prb_vec_each (k, &o->known)
		row_destroy(o, k->row);
	prb_vec_free(&o->known);
	prb_vec_free(&o->rows);
	prb_vec_free(&o->groups);
	prb_engines_deinit(&o->engines);
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
