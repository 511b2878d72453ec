/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cluster/looks/look.h"
#include "cluster/looks/step_count.h"
#include "cluster/looks/thread_text.h"
#include "dump/model/program_frame.h"
#include "target/target.h"

/* Seconds between the beginnings of two looks at all ranks, at least. */
static const double PERIOD = 0.02;

/* A difference of shares of time that matters, and how many standard errors make it sure. Looks
 * that follow each other see the same step, so that they count for less than they are. */
static const double MATTERS = 0.1, ERRORS = 4;

/* Fewer looks may see one step only, whose error is none. */
enum { LEAST_LOOKS = 20 };

/* Ranks whose objects are searched for a counter of steps: that takes a second of ours each. */
enum { MOST_COUNTED = 2 };

static void open_rank(struct prb_watch *watch, const struct prb_rank *rank)
{
	struct prb_error *err;

	if (watch->target || !rank->pid)
		return;
	err = prb_target_open_process(rank->pid, &watch->target);
	prb_error_destroy(err);
}

void prb_pace_spot_name(const struct prb_dump_frame *frame, struct prb_str *s)
{
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

	prb_str_puts(s, prb_frame_name(frame));
	if (frame->file)
		prb_str_printf(s, " %s", slash ? slash + 1 : frame->file);
}

static struct prb_error *note(struct prb_pace *pace, const struct prb_seen *seen)
{
	const struct prb_dump_frame *frame = seen->main ? prb_dump_innermost(seen->main) : NULL;
	prb_auto_str struct prb_str name = {};

	if (!frame)
		return NULL;
	pace->looks++;
	/* A thread that waits for the GIL does not wait for other ranks. */
	if (seen->main->gil && !strcmp(seen->main->gil, "waits"))
		return prb_pace_count(pace, "(waits for the GIL)", 1);
	if (seen->collective) {
		pace->waiting++;
		return NULL;
	}
	prb_pace_spot_name(frame, &name);
	return prb_pace_count(pace, prb_str_text(&name), 1);
}

static struct prb_error *look_once(struct prb_watch *watches, const struct prb_job *job,
				   struct prb_round *round)
{
	for (size_t i = 0; i < job->ranks.count; i++) {
		struct prb_seen brief = {.rank = &job->ranks.items[i],
					 .trains = round->list.items[i].trains};
		struct prb_error *err = NULL, *unread;

		open_rank(&watches[i], &job->ranks.items[i]);
		if (!watches[i].target)
			continue;
		unread = prb_look_brief(&watches[i], &brief);
		if (!unread)
			err = note(round->list.items[i].pace, &brief);
		prb_error_destroy(unread);
		prb_seen_deinit(&brief);
		PRB_TRY(err);
	}
	return NULL;
}

static struct prb_error *look_on(struct prb_watch *watches, const struct prb_job *job,
				 double seconds, struct prb_round *round)
{
	double end = prb_clock_seconds() + seconds;

	for (;;) {
		double begin = prb_clock_seconds(), rest;

		if (begin >= end)
			return NULL;
		PRB_TRY(look_once(watches, job, round));
		rest = begin + PERIOD - prb_clock_seconds();
		if (rest > 0 && nanosleep(&(struct timespec){0, (long)(rest * 1e9)}, NULL))
			return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	}
}

/* Ranks step together: the first whose optimizer counts tells for all. */
static struct prb_error *look_and_count(struct prb_watch *watches, const struct prb_job *job,
					double seconds, bool counts, struct prb_round *round)
{
	struct prb_step_count count = {};
	struct prb_watch *watch = NULL;
	double began;

	for (size_t i = 0; counts && !count.optimizer && i < MOST_COUNTED && i < job->ranks.count;
	     i++) {
		open_rank(&watches[i], &job->ranks.items[i]);
		watch = &watches[i];
		PRB_TRY(prb_step_count_begin(watch->target, &count));
	}
	began = prb_clock_seconds();
	PRB_TRY(look_on(watches, job, seconds, round));
	for (size_t i = 0; i < round->list.count; i++) {
		round->list.items[i].pace->seconds = prb_clock_seconds() - began;
		if (count.optimizer && watch == &watches[i])
			PRB_TRY(prb_step_count_end(watch->target, &count,
						   &round->list.items[i].pace->steps));
	}
	return NULL;
}

struct prb_error *prb_pace_take(const struct prb_job *job, double seconds, bool count,
				struct prb_round *round)
{
	prb_auto_free struct prb_watch *watches = calloc(job->ranks.count + 1, sizeof(*watches));
	struct prb_error *err;
	struct prb_seen *seen;

	if (!watches)
		return prb_error_nomem();
	prb_vec_each (seen, &round->list) {
		seen->pace = calloc(1, sizeof(*seen->pace));
		if (!seen->pace)
			return prb_error_nomem();
		seen->pace->steps = -1;
	}
	err = look_and_count(watches, job, seconds, count, round);
	for (size_t i = 0; i < job->ranks.count; i++)
		prb_watch_deinit(&watches[i]);
	return err;
}

static double waiting(const struct prb_pace *pace)
{
	return (double)pace->waiting / (double)pace->looks;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct prb_error *prb_pace_judge(const struct prb_round *round, struct prb_slowness *ret)
{
	prb_auto_free double *shares = calloc(round->list.count + 1, sizeof(*shares));
	const struct prb_seen *seen, *least = NULL;
	double error, difference;
	size_t count = 0;

	*ret = (struct prb_slowness){};
	if (!shares)
		return prb_error_nomem();
	prb_vec_each (seen, &round->list)
		if (seen->pace && seen->pace->looks > 0 &&
		    (!least || waiting(seen->pace) < waiting(least->pace)))
			least = seen;
	prb_vec_each (seen, &round->list)
		if (seen != least && seen->pace && seen->pace->looks > 0)
			shares[count++] = waiting(seen->pace);
	if (!least || !count)
		return NULL;
	qsort(shares, count, sizeof(*shares), by_value);
	ret->waits = waiting(least->pace);
	ret->others_wait = (shares[(count - 1) / 2] + shares[count / 2]) / 2;
	ret->looks = least->pace->looks;
	difference = ret->others_wait - ret->waits;
	error = sqrt((ret->waits * (1 - ret->waits) + ret->others_wait * (1 - ret->others_wait)) /
		     (double)ret->looks);
	/* A second rank that waits as little is as slow: then no rank stands out. */
	if (difference < MATTERS || shares[0] - ret->waits < MATTERS / 2)
		return NULL;
	ret->slow = least;
	ret->sure = ret->looks >= LEAST_LOOKS && difference > ERRORS * error;
	return NULL;
}

double prb_pace_share(const struct prb_pace *pace, const char *name)
{
	const struct prb_spot *spot;

	if (!pace || pace->looks <= 0)
		return 0;
	prb_vec_each (spot, &pace->spots)
		if (!strcmp(spot->name, name))
			return (double)spot->count / (double)pace->looks;
	return 0;
}

double prb_pace_others(const struct prb_round *round, const struct prb_seen *but, const char *name)
{
	const struct prb_seen *seen;
	double sum = 0;
	size_t count = 0;

	prb_vec_each (seen, &round->list)
		if (seen != but && seen->pace && seen->pace->looks > 0) {
			sum += prb_pace_share(seen->pace, name);
			count++;
		}
	return count ? sum / (double)count : 0;
}
