/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/vigil.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "cluster/looks/look.h"
#include "cluster/looks/progress.h"
#include "target/proc/process.h"
#include "target/proc/subprocesses.h"
#include "target/proc/text.h"
#include "target/target.h"

/* Seconds; a job may rest for so many times its usual rest. While a rank still moves, as one that
 * evaluates or saves for the others, the others may wait longer. */
static const double HANG = 60, TIMES_USUAL = 5, WHILE_ONE_MOVES = 5;

/* Shares of a processor: of a child that works, and of a rank that computes all the time. */
static const double WORKS = 0.05, SPINS = 0.8;

/* Shares of looks: when others wait for a rank, and when it waits as little as nobody does. */
static const double OTHERS_WAIT = 0.5, HARDLY_WAITS = 0.2;

enum { WORK_BYTES = 64 << 10 /* that a rank reads or writes from look to look, and so works */ };

/** What was seen of a rank at the last look. */
struct prb_vigil_rank {
	double since;	   /* when it moved last; 0: it was not seen yet */
	uint64_t stack;	   /* hash of where it is; 0: unknown */
	uint64_t ran;	   /* nanoseconds of its main thread */
	bool worked;	   /* the next two were read: it is at one place, and waits for no rank */
	uint64_t children; /* nanoseconds of its descendants */
	uint64_t bytes;	   /* that it has read and written */
	bool waits, spins, moved, gone;
	size_t waiting; /* looks of the window at which it waited */
};

struct prb_error *prb_vigil_init(const struct prb_job *job, double hang, struct prb_vigil *ret)
{
	*ret = (struct prb_vigil){.job = job, .hang = hang > 0 ? hang : HANG};
	ret->watches = calloc(job->ranks.count + 1, sizeof(*ret->watches));
	ret->ranks = calloc(job->ranks.count + 1, sizeof(*ret->ranks));
	return ret->watches && ret->ranks ? NULL : prb_error_nomem();
}

void prb_vigil_deinit(struct prb_vigil *vigil)
{
	for (size_t i = 0; vigil->watches && i < vigil->job->ranks.count; i++)
		prb_watch_deinit(&vigil->watches[i]);
	free(prb_steal(&vigil->watches));
	free(prb_steal(&vigil->ranks));
}

/** True for functions in which the ranks of a job meet for the first time. */
static bool is_start(const char *collective)
{
	return collective && (!strcmp(collective, "init_process_group") ||
			      !strcmp(collective, "init_device_mesh"));
}

/** A hash of the Python frames from the collective on outwards, and of their integers. */
static uint64_t hash_stack(const struct prb_seen *seen)
{
	const struct prb_dump_frame *frame;
	uint64_t hash = prb_progress_hash(seen);
	bool outside = !seen->called;

	prb_vec_each (frame, &seen->main->frames) {
		outside |= frame == seen->called;
		if (!outside || frame->kind != PRB_FRAME_PYTHON)
			continue;
		hash = prb_progress_mix(hash, frame->ip ^ (uint64_t)(uint32_t)frame->line << 32);
		for (const char *at = frame->func; at && *at; at++)
			hash = prb_progress_mix(hash, (unsigned char)*at);
	}
	return hash ? hash : 1;
}

static struct prb_error *read_stack(struct prb_watch *watch, const struct prb_rank *rank,
				    struct prb_vigil_rank *now)
{
	static const struct prb_repr_options none = {
		.max_depth = 1, .max_items = 1, .max_text = 8, .max_total = 60};
	const struct prb_dump_options options = {.mode = PRB_DUMP_NONBLOCKING,
						 .main_only = true,
						 .locals = true,
						 .values = &none,
						 .no_waits = true,
						 .no_command = true};
	__attribute__((cleanup(prb_seen_deinit))) struct prb_seen seen = {.rank = rank};

	if (!watch->target)
		PRB_TRY(prb_target_open_process(rank->pid, &watch->target));
	PRB_TRY(prb_dump_create_with(watch->target, &options, &watch->found, &seen.dump));
	if (!seen.dump->threads.count)
		return NULL;
	prb_seen_find(&seen);
	now->waits = seen.collective && !is_start(seen.collective);
	now->stack = hash_stack(&seen);
	return NULL;
}

static uint64_t read_ran(pid_t pid)
{
	prb_auto_str struct prb_str text = {};

	return prb_proc_read(pid, "schedstat", &text) ? strtoull(prb_str_text(&text), NULL, 10) : 0;
}

static uint64_t read_bytes(pid_t pid)
{
	prb_auto_str struct prb_str text = {};
	int64_t read = 0, written = 0;

	if (!prb_proc_read(pid, "io", &text) ||
	    !prb_text_last_number(prb_str_text(&text), "rchar", &read) ||
	    !prb_text_last_number(prb_str_text(&text), "wchar", &written))
		return 0;
	return (uint64_t)read + (uint64_t)written;
}

/** Processor time of all descendants. */
static struct prb_error *read_children(pid_t pid, uint64_t *ret)
{
	struct prb_subprocesses children = {};
	const struct prb_process *child;
	struct prb_error *err = prb_subprocesses_find(pid, &children);

	*ret = 0;
	prb_vec_each (child, &children.list) {
		struct prb_pulse pulse;

		if (prb_pulse_read(child->pid, &pulse))
			*ret += pulse.ran;
	}
	prb_subprocesses_deinit(&children);
	return prb_error_tolerate(err, NULL);
}

/** True if a rank that is at one place has a child that computes, or reads or writes files. */
static struct prb_error *works(const struct prb_vigil_rank *before, pid_t pid, double seconds,
			       struct prb_vigil_rank *now, bool *ret)
{
	double children;

	now->worked = true;
	now->bytes = read_bytes(pid);
	PRB_TRY(read_children(pid, &now->children));
	children = (double)(now->children - PRB_MIN(before->children, now->children)) / 1e9;
	*ret = !before->worked || children > WORKS * seconds ||
	       now->bytes > before->bytes + WORK_BYTES;
	return NULL;
}

/** Whether a rank moved between two looks, @p seconds apart. */
static struct prb_error *compare(const struct prb_vigil_rank *before, pid_t pid, double seconds,
				 struct prb_vigil_rank *now)
{
	now->ran = read_ran(pid);
	now->spins = (double)(now->ran - PRB_MIN(before->ran, now->ran)) / 1e9 > SPINS * seconds;
	now->moved = !before->since || !now->stack || now->stack != before->stack;
	now->worked = false;
	return now->moved || now->waits || now->spins
		       ? NULL
		       : works(before, pid, seconds, now, &now->moved);
}

static struct prb_error *look_at(struct prb_vigil *v, size_t i, double at)
{
	const struct prb_rank *rank = &v->job->ranks.items[i];
	struct prb_vigil_rank *before = &v->ranks[i], now = *before;
	prb_auto_error struct prb_error *err =
		rank->pid ? read_stack(&v->watches[i], rank, &now) : NULL;

	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	now.gone = !rank->pid || (err && err->code == PRB_ERROR_NO_PROCESS);
	if (now.gone || err) {
		prb_watch_deinit(&v->watches[i]);
		now.waits = now.moved = now.spins = false;
		*before = now;
		return NULL;
	}
	PRB_TRY(compare(before, rank->pid, at - v->last, &now));
	if (now.moved && before->waits)
		v->rests[v->rest_count++ % PRB_VIGIL_RESTS] = at - before->since;
	if (now.moved)
		now.since = at;
	now.waiting += now.waits;
	*before = now;
	return NULL;
}

struct prb_error *prb_vigil_look(struct prb_vigil *v, bool *gone)
{
	const double at = prb_clock_seconds();

	*gone = true;
	for (size_t i = 0; i < v->job->ranks.count; i++) {
		PRB_TRY(look_at(v, i, at));
		*gone &= v->ranks[i].gone;
	}
	v->last = at;
	v->looks++;
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

double prb_vigil_limit(const struct prb_vigil *v)
{
	size_t count = PRB_MIN(v->rest_count, PRB_VIGIL_RESTS);
	double sorted[PRB_VIGIL_RESTS];

	if (!count)
		return v->hang;
	memcpy(sorted, v->rests, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_value);
	return PRB_MAX(v->hang, TIMES_USUAL * sorted[count / 2]);
}

void prb_vigil_rests(const struct prb_vigil *v, double *still, double *ret_waited)
{
	double moved = 0, waited = v->last;

	for (size_t i = 0; i < v->job->ranks.count; i++) {
		const struct prb_vigil_rank *rank = &v->ranks[i];

		if (rank->gone)
			continue;
		moved = PRB_MAX(moved, rank->since);
		if (rank->waits || rank->spins)
			waited = PRB_MIN(waited, rank->since);
	}
	*still = v->last - moved;
	*ret_waited = v->last - waited;
}

bool prb_vigil_is_too_long(double still, double waited, double limit)
{
	return still >= limit ? waited > 0 : waited >= WHILE_ONE_MOVES * limit;
}

bool prb_vigil_is_suspicious(const struct prb_vigil *v, double *waited)
{
	double still;

	prb_vigil_rests(v, &still, waited);
	return prb_vigil_is_too_long(still, *waited, prb_vigil_limit(v));
}

bool prb_vigil_waits(const struct prb_vigil *v)
{
	for (size_t i = 0; i < v->job->ranks.count; i++)
		if (!v->ranks[i].gone && v->ranks[i].waits)
			return true;
	return false;
}

bool prb_vigil_moves(const struct prb_vigil *v)
{
	for (size_t i = 0; i < v->job->ranks.count; i++)
		if (!v->ranks[i].gone && v->ranks[i].moved)
			return true;
	return false;
}

long prb_vigil_slow(struct prb_vigil *v)
{
	const double looks = (double)v->looks;
	size_t hardly = 0, waiting = 0, alive = 0;
	long found = -1;

	if (v->looks < PRB_VIGIL_WINDOW)
		return -1;
	for (size_t i = 0; i < v->job->ranks.count; i++) {
		struct prb_vigil_rank *rank = &v->ranks[i];
		double share = (double)rank->waiting / looks;

		alive += !rank->gone;
		waiting += share >= OTHERS_WAIT;
		if (!rank->gone && share <= HARDLY_WAITS) {
			hardly++;
			found = (long)i;
		}
		rank->waiting = 0;
	}
	v->looks = 0;
	return hardly == 1 && alive > 1 && waiting == alive - 1 ? found : -1;
}

void prb_vigil_forget(struct prb_vigil *v)
{
	for (size_t i = 0; i < v->job->ranks.count; i++)
		if (v->ranks[i].since > 0)
			v->ranks[i].since = v->last;
}
