/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The samples of a long recording, in steps of time: what a thread did in a step with the same
 * stack in the same state is one run.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "profile/load_private.h"

enum {
	MOST_RUNS = 300000, /* that are kept as they are */
	MOST_STEPS = 2048,
};

struct steps {
	struct prb_recording *recording;
	int64_t step;		       /* 0: runs are as they were */
	struct prb_number_map numbers; /* of runs, by a hash of what tells them apart */
};

static int64_t step_of(const struct steps *s, const struct prb_run *run)
{
	return PRB_MIN(run->begin / s->step, (int64_t)MOST_STEPS - 1);
}

static uint64_t key_of(const struct steps *s, const struct prb_run *run)
{
	uint64_t key = (uint64_t)run->thread << 32 | run->stack;

	key = key * 0x9e3779b97f4a7c15u ^ (uint64_t)step_of(s, run);
	key = key * 0xff51afd7ed558ccdu ^ run->wait;
	return key << 4 ^ key >> 32 ^ (uint64_t)run->state << 1 ^ run->gil;
}

static bool is_same(const struct steps *s, const struct prb_run *a, const struct prb_run *b)
{
	return a->thread == b->thread && a->stack == b->stack && a->state == b->state &&
	       a->wait == b->wait && a->gil == b->gil && step_of(s, a) == step_of(s, b);
}

/* The run that it belongs to; false with the key that is free if there is none yet. */
static bool find(const struct steps *s, const struct prb_run *run, uint64_t *key, size_t *ret)
{
	*key = key_of(s, run);
	for (; prb_number_map_get(&s->numbers, *key, ret); ++*key)
		if (is_same(s, &s->recording->runs.items[*ret], run))
			return true;
	return false;
}

static void merge(struct prb_run *into, const struct prb_run *run)
{
	into->wall_squares = prb_run_wall_squares(into) + prb_run_wall_squares(run);
	into->queue_squares = prb_run_queue_squares(into) + prb_run_queue_squares(run);
	into->cpu_squares += run->cpu_squares;
	into->samples += run->samples;
	into->reads += run->reads;
	into->begin = PRB_MIN(into->begin, run->begin);
	into->wall += run->wall;
	into->cpu += run->cpu;
	into->queue += run->queue;
}

static struct prb_error *put(struct steps *s, const struct prb_run *run)
{
	size_t number = s->recording->runs.count, found;
	struct prb_run *slot;
	uint64_t key;

	if (s->step && find(s, run, &key, &found)) {
		merge(&s->recording->runs.items[found], run);
		return NULL;
	}
	slot = prb_vec_push(&s->recording->runs);
	if (!slot)
		return prb_error_nomem();
	*slot = *run;
	return !s->step || prb_number_map_put(&s->numbers, key, number) ? NULL : prb_error_nomem();
}

/* Steps become twice as long. */
static struct prb_error *coarsen(struct steps *s)
{
	__typeof__(s->recording->runs) before = s->recording->runs;
	struct prb_error *err = NULL;

	s->step = s->step ? 2 * s->step : s->recording->duration / MOST_STEPS + 1;
	memset(&s->recording->runs, 0, sizeof(s->recording->runs));
	prb_number_map_deinit(&s->numbers);
	s->numbers = (struct prb_number_map){};
	for (size_t i = 0; i < before.count && !err; i++)
		err = put(s, &before.items[i]);
	prb_vec_free(&before);
	return err;
}

static struct prb_error *collect(struct steps *s, struct prb_load_cursor *cursor)
{
	const struct prb_run *runs;
	size_t count;

	do {
		PRB_TRY(prb_load_next(cursor, &runs, &count));
		for (size_t i = 0; i < count; i++) {
			PRB_TRY(put(s, &runs[i]));
			while (s->recording->runs.count > MOST_RUNS &&
			       s->step < s->recording->duration)
				PRB_TRY(coarsen(s));
		}
	} while (count);
	return NULL;
}

static int compare(const void *x, const void *y)
{
	const struct prb_run *a = x, *b = y;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a->begin > b->begin) - (a->begin < b->begin);
}

/* What took turns within a step lies behind each other in it. */
static void straighten(struct prb_recording *recording)
{
	int64_t end = 0;

	if (!recording->runs.count)
		return;
	qsort(recording->runs.items, recording->runs.count, sizeof(*recording->runs.items),
	      compare);
	for (size_t i = 0; i < recording->runs.count; i++) {
		struct prb_run *run = &recording->runs.items[i];

		if (!i || run[-1].thread != run->thread)
			end = 0;
		run->begin = PRB_MIN(PRB_MAX(run->begin, end), INT64_MAX - run->wall);
		end = run->begin + run->wall;
	}
}

struct prb_error *prb_profile_load_steps(const char *path, struct prb_recording **ret)
{
	struct prb_load_cursor *cursor = NULL;
	struct prb_load *load;
	struct steps s = {};
	struct prb_error *err;

	PRB_TRY(prb_load_open(path, &load));
	s.recording = load->about;
	err = prb_load_cursor_create(load, &cursor);
	if (!err)
		err = collect(&s, cursor);
	if (!err && s.step)
		straighten(s.recording);
	if (!err) {
		s.recording->step = s.step;
		*ret = prb_steal(&load->about);
	}
	prb_load_cursor_destroy(cursor);
	prb_number_map_deinit(&s.numbers);
	prb_load_destroy(load);
	return err;
}
