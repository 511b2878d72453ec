/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/quiet.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "profile/sampler/account.h"

enum { WATCH = 5000 /* times as long as a thread has run */ };

static bool read_clock(struct prb_quiet *q)
{
	struct timespec t;

	if (clock_gettime(q->clock, &t))
		return false;
	q->now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	return true;
}

static void forget_rest(struct prb_quiet *q)
{
	q->rest_least = INT64_MIN;
	q->rest_most = INT64_MAX;
}

void prb_quiet_begin(struct prb_quiet *q, struct prb_subjects *subjects, clockid_t clock)
{
	*q = (struct prb_quiet){.subjects = subjects, .clock = clock};
	forget_rest(q);
}

void prb_quiet_end(struct prb_quiet *q)
{
	prb_vec_free(&q->watched);
	q->others = 0;
	q->rounds = 0;
	forget_rest(q);
}

/* CPU time of the watched threads; false if one of them has ended. */
static bool read_watched(struct prb_quiet *q, int64_t *ret)
{
	bool all = true;
	const size_t *index;

	*ret = 0;
	prb_vec_each (index, &q->watched) {
		struct prb_subject *subject = &q->subjects->list.items[*index];
		struct prb_task_times now = {};
		bool known = prb_task_times_now(&q->subjects->tasks,
						&q->subjects->tasks.list.items[*index], &now);

		subject->unmoved = known && prb_task_times_equal(&now, &subject->times);
		all &= known;
		*ret += now.ran;
	}
	return all;
}

static bool knows_rest(const struct prb_quiet *q)
{
	return q->rest_least == q->rest_most;
}

/*
 * The clock is read last, and nothing gets less: equal sums are a proof. A tick between the reads
 * makes them unequal, but hardly twice.
 */
bool prb_quiet_look(struct prb_quiet *q)
{
	int64_t watched;
	bool known;

	if (knows_rest(q)) {
		if (!read_watched(q, &watched) || !read_clock(q))
			return false;
		if (q->now - watched - q->others == q->rest_least)
			return true;
	}
	q->begin = INT64_MIN;
	known = read_clock(q);
	if (!read_watched(q, &watched) || !known)
		return false;
	q->begin = q->now - watched;
	return knows_rest(q) && read_clock(q) && q->now - watched - q->others == q->rest_least;
}

static void sum_others(struct prb_quiet *q)
{
	const struct prb_subject *subject;

	q->others = 0;
	prb_vec_each (subject, &q->subjects->list)
		if (!subject->watched)
			q->others += subject->times.ran;
}

struct prb_error *prb_quiet_sort(struct prb_quiet *q, int64_t now)
{
	struct prb_subject *subject;

	if (q->changes != q->subjects->changes)
		forget_rest(q);
	q->changes = q->subjects->changes;
	q->watched.count = 0;
	prb_vec_each (subject, &q->subjects->list) {
		size_t *slot;

		subject->unmoved = false;
		subject->watched =
			!subject->ended && (!subject->asleep || now < subject->watched_until);
		slot = subject->watched ? prb_vec_push(&q->watched) : NULL;
		if (subject->watched && !slot)
			return prb_error_nomem();
		if (slot)
			*slot = (size_t)(subject - q->subjects->list.items);
	}
	sum_others(q);
	return NULL;
}

/*
 * All were looked at since the clock was read before: so what is left of that is at most what
 * others than they have used; and at least what is left of it now.
 */
static struct prb_error *find_rest(struct prb_quiet *q, int64_t now)
{
	int64_t watched;

	sum_others(q);
	if (q->begin != INT64_MIN)
		q->rest_least = PRB_MAX(q->rest_least, q->begin - q->others);
	PRB_TRY(prb_quiet_sort(q, now));
	if (read_watched(q, &watched) && read_clock(q))
		q->rest_most = PRB_MIN(q->rest_most, q->now - watched - q->others);
	/* Where the kernel counts in another way from now on, as with timers of the process. */
	if (q->rest_least > q->rest_most)
		forget_rest(q);
	return NULL;
}

struct prb_error *prb_quiet_sampled(struct prb_quiet *q, bool others_slept, int64_t now)
{
	q->at = now;
	if (!others_slept)
		return find_rest(q, now);
	q->rounds++;
	return NULL;
}

void prb_quiet_watch(struct prb_subject *subject, int64_t ran, int64_t now)
{
	const int64_t most = INT64_MAX / WATCH / 2;

	if (ran > 0)
		subject->watched_until =
			PRB_MAX(subject->watched_until, now + PRB_MIN(ran, most) * WATCH);
}

struct prb_error *prb_quiet_settle(struct prb_quiet *q)
{
	struct prb_subject *subject;
	uint32_t rounds = q->rounds;

	q->rounds = 0;
	if (!rounds)
		return NULL;
	prb_vec_each (subject, &q->subjects->list)
		if (!subject->watched && !subject->ended)
			PRB_TRY(prb_account_same(q->subjects->recording, subject, rounds, q->at));
	return NULL;
}
