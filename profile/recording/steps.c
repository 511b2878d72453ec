/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

static int64_t step_of(const struct prb_steps *s, const struct prb_run *run)
{
	int64_t step = run->begin / s->step;

	return s->most ? PRB_MIN(step, s->most - 1) : step;
}

static uint64_t key_of(const struct prb_steps *s, const struct prb_run *run)
{
	uint64_t key = (uint64_t)run->thread << 32 | run->stack;

	key = key * 0x9e3779b97f4a7c15u ^ (uint64_t)step_of(s, run);
	key = key * 0xff51afd7ed558ccdu ^ run->wait;
	return key << 4 ^ key >> 32 ^ (uint64_t)run->state << 1 ^ run->gil;
}

static bool is_same(const struct prb_steps *s, const struct prb_run *a, const struct prb_run *b)
{
	return a->thread == b->thread && a->stack == b->stack && a->state == b->state &&
	       a->wait == b->wait && a->gil == b->gil && step_of(s, a) == step_of(s, b);
}

/* The run that it belongs to; false with the key that is free if there is none yet. */
static bool find(const struct prb_steps *s, const struct prb_run *run, uint64_t *key, size_t *ret)
{
	*key = key_of(s, run);
	for (; prb_number_map_get(&s->numbers, *key, ret); ++*key)
		if (is_same(s, &s->runs.items[*ret], run))
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

struct prb_error *prb_steps_add(struct prb_steps *s, const struct prb_run *run)
{
	size_t number = s->runs.count, found;
	struct prb_run *slot;
	uint64_t key = 0;

	if (s->step && find(s, run, &key, &found)) {
		merge(&s->runs.items[found], run);
		return NULL;
	}
	slot = prb_vec_push(&s->runs);
	if (!slot)
		return prb_error_nomem();
	*slot = *run;
	return !s->step || prb_number_map_put(&s->numbers, key, number) ? NULL : prb_error_nomem();
}

struct prb_error *prb_steps_lengthen(struct prb_steps *s, int64_t step)
{
	prb_run_list before = s->runs;
	struct prb_error *err = NULL;

	memset(&s->runs, 0, sizeof(s->runs));
	prb_steps_clear(s);
	s->step = step;
	for (size_t i = 0; i < before.count && !err; i++)
		err = prb_steps_add(s, &before.items[i]);
	prb_vec_free(&before);
	return err;
}

void prb_steps_clear(struct prb_steps *s)
{
	prb_vec_free(&s->runs);
	prb_number_map_deinit(&s->numbers);
	s->numbers = (struct prb_number_map){};
}

static int compare(const void *x, const void *y)
{
	const struct prb_run *a = x, *b = y;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	/* A run without duration precedes one that begins at the same time. */
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return (a->wall > b->wall) - (a->wall < b->wall);
}

void prb_runs_sort(struct prb_run *runs, size_t count)
{
	if (count)
		qsort(runs, count, sizeof(*runs), compare);
}

void prb_runs_straighten(struct prb_run *runs, size_t count)
{
	int64_t end = 0;

	prb_runs_sort(runs, count);
	for (size_t i = 0; i < count; i++) {
		struct prb_run *run = &runs[i];

		if (!i || run[-1].thread != run->thread)
			end = 0;
		run->begin = PRB_MIN(PRB_MAX(run->begin, end), INT64_MAX - run->wall);
		end = run->begin + run->wall;
	}
}
