/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The samples of a long recording, in steps of time: what a thread did in a step with the same
 * stack in the same state is one run.
 */
#include <string.h>

#include "base/cleanup.h"
#include "profile/store/load/load_private.h"
#include "profile/recording/range.h"
#include "profile/recording/steps.h"

enum {
	MOST_RUNS = 300000, /* that are kept as they are */
	MOST_STEPS = 2048,
};

/* Steps become twice as long. */
static struct prb_error *coarsen(struct prb_steps *s, int64_t duration)
{
	return prb_steps_lengthen(s, s->step ? 2 * s->step : duration / MOST_STEPS + 1);
}

static struct prb_error *collect(struct prb_steps *s, struct prb_load_cursor *cursor,
				 int64_t duration)
{
	const struct prb_run *runs;
	size_t count;

	do {
		PRB_TRY(prb_load_next(cursor, &runs, &count));
		for (size_t i = 0; i < count; i++) {
			PRB_TRY(prb_steps_add(s, &runs[i]));
			while (s->runs.count > MOST_RUNS && s->step < duration)
				PRB_TRY(coarsen(s, duration));
		}
	} while (count);
	return NULL;
}

/* The recording gets the runs. */
static void give(struct prb_steps *s, struct prb_recording *recording)
{
	if (s->step)
		prb_runs_straighten(s->runs.items, s->runs.count);
	memcpy(&recording->runs, &s->runs, sizeof(s->runs));
	memset(&s->runs, 0, sizeof(s->runs));
	recording->step = s->step;
}

struct prb_error *prb_profile_load_steps(const char *path, struct prb_recording **ret)
{
	struct prb_load_cursor *cursor = NULL;
	struct prb_load *load;
	struct prb_steps s = {.most = MOST_STEPS};
	struct prb_error *err;

	PRB_TRY(prb_load_open(path, &load));
	err = prb_load_cursor_create(load, &cursor);
	if (!err)
		err = collect(&s, cursor, load->about->duration);
	if (!err)
		give(&s, load->about);
	if (!err && load->gone)
		prb_recording_clip(load->about, load->gone, INT64_MAX);
	if (!err)
		*ret = prb_steal(&load->about);
	prb_load_cursor_destroy(cursor);
	prb_steps_clear(&s);
	prb_load_destroy(load);
	return err;
}
