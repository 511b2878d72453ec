/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/record/shared.h"

#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands/perf/record/background.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/waiting.h"
#include "profile/recording/range.h"
#include "profile/sampler/source_text.h"
#include "profile/store/load/load.h"

static const double default_seconds = 10;
static const struct timespec look = {0, 50 * 1000 * 1000};

/* How it is sampled is left to us. */
static bool may_share(const struct prb_performance_targets *targets,
		      const struct prb_performance_settings *s)
{
	const struct prb_performance_sampling *how = &s->record;

	return targets->list.count == 1 && targets->list.items[0]->local && !how->several &&
	       !how->rate && !how->source && !how->tid && !how->all && !how->subprocesses &&
	       !how->when && !(how->ring > 0) && !how->cc;
}

/* It samples what is wanted, all of the time and all threads. A recording with C functions cannot
 * be used while it is made: they get their names at its end. */
static bool has_all(const struct prb_recording *r, const struct prb_performance_sampling *how)
{
	return !r->native && (r->tasks || !how->tasks) && !r->tid && !r->condition &&
	       !r->others.count && r->end == PRB_PROFILE_CUT_OFF;
}

/* Files have the time of day alone. */
static int64_t start_of(const struct prb_recording *r)
{
	return (int64_t)(r->started * 1e9);
}

static int64_t end_of(const struct prb_recording *r)
{
	return start_of(r) + r->duration;
}

/* So long, or until Ctrl-C; returns how long it was. */
static int64_t wait_for(double seconds)
{
	int64_t begin = prb_clock_read_ns(CLOCK_MONOTONIC), passed = 0;

	while (!prb_interrupted() && (double)passed < seconds * 1e9) {
		nanosleep(&look, NULL);
		passed = prb_clock_read_ns(CLOCK_MONOTONIC) - begin;
	}
	return PRB_MIN(passed, (int64_t)(seconds * 1e9));
}

static void tell(const struct prb_known_recording *known)
{
	prb_auto_free char *text =
		prb_format("process %d records this process already: its samples are shown. "
			   "With --rate HZ others are taken, and both lose some",
			   (int)known->recorder);

	if (text)
		prb_warn(text);
}

/* Whether its samples can be ours: what cannot be read of it is sampled. */
static bool can_share(const struct prb_known_recording *known,
		      const struct prb_performance_sampling *how)
{
	prb_auto_error struct prb_error *err = prb_performance_check_kept(known->path);
	struct prb_load *load;
	bool can;

	if (!err)
		err = prb_load_open(known->path, &load);
	if (err)
		return false;
	can = has_all(prb_load_about(load), how);
	prb_load_destroy(load);
	return can;
}

static struct prb_error *share(const struct prb_known_recording *known,
			       const struct prb_performance_settings *s, struct prb_recording **ret)
{
	double seconds = s->record.duration > 0 ? s->record.duration : default_seconds;
	int64_t begin = prb_clock_read_ns(CLOCK_REALTIME), end;
	bool reached;

	tell(known);
	prb_waiting_begin("sampling", seconds);
	prb_interrupt_catch_ends();
	end = begin + wait_for(seconds);
	prb_interrupt_release();
	prb_waiting_end();
	PRB_TRY(prb_performance_wait_written(known->path, end, &reached));
	PRB_TRY(prb_performance_check_kept(known->path));
	PRB_TRY(prb_profile_load_view(known->path, true, s->record.tasks, ret));
	if (end_of(*ret) <= begin) {
		prb_recording_destroy(prb_steal(ret));
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_FAILED,
				"the recorder, process %d, has written no samples meanwhile",
				(int)known->recorder),
			"--rate HZ samples without it");
	}
	prb_recording_clip(*ret, begin - start_of(*ret), end - start_of(*ret));
	if ((*ret)->end == PRB_PROFILE_CUT_OFF)
		(*ret)->end = PRB_PROFILE_DONE;
	prb_recording_drop_lines(*ret);
	return NULL;
}

struct prb_error *prb_performance_shared(const struct prb_performance_targets *targets,
					 const struct prb_performance_settings *s, bool source,
					 struct prb_recording **ret)
{
	struct prb_target *target = targets->list.items[0];
	prb_auto_known_list struct prb_known_list known = {};
	prb_auto_error struct prb_error *err = NULL;
	const struct prb_known_recording *newest;

	*ret = NULL;
	if (!may_share(targets, s))
		return NULL;
	err = prb_known_find(target->pid, &known);
	newest = known.list.items;
	if (err || !known.list.count || !newest->running || !can_share(newest, &s->record))
		return NULL;
	PRB_TRY(share(newest, s, ret));
	return source ? prb_profile_add_source(*ret, target, false) : NULL;
}
