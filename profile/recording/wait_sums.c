/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/wait_sums.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/text.h"

static bool is_wanted(const struct prb_profile_choice *choice, bool gil, const struct prb_run *run)
{
	const struct prb_profile_choice blocked = {PRB_WEIGHT_BLOCKED, false, choice->threads};

	if (!gil)
		return prb_run_weight(run, &blocked) > 0;
	return (!choice->threads || choice->threads[run->thread]) && run->wait_kind == PRB_WAIT_GIL;
}

void prb_wait_text(const struct prb_recording *r, uint32_t number, struct prb_str *s)
{
	static const char *const kinds[PRB_WAIT_KINDS] = {
		[PRB_WAIT_NONE] = "unknown",	     [PRB_WAIT_GIL] = "the GIL",
		[PRB_WAIT_LOCK] = "a lock",	     [PRB_WAIT_DESCRIPTOR] = "a file",
		[PRB_WAIT_CHILD] = "a child",	     [PRB_WAIT_TIME] = "the end of a sleep",
		[PRB_WAIT_OTHER] = "something else",
	};
	const struct prb_profile_wait *wait = &r->waits.items[number];
	const struct prb_profile_thread *owner;

	prb_text_escape(s, wait->what ? wait->what : kinds[wait->kind]);
	if (!wait->owner)
		return;
	owner = &r->threads.items[wait->owner - 1];
	prb_str_printf(s, ", held by %d ", (int)owner->tid);
	prb_text_escape(s, owner->name ? owner->name : owner->os_name);
}

struct adding {
	struct prb_wait_sums *sums;
	struct prb_number_map numbers; /* by wait and thread */
	struct prb_number_map met;     /* threads and waits that were met together */
};

static struct prb_error *count_thread(struct adding *a, const struct prb_run *run,
				      struct prb_wait_sum *sum)
{
	uint64_t pair = (uint64_t)run->wait << 32 | run->thread;
	size_t ignored;

	if (prb_number_map_get(&a->met, pair, &ignored))
		return NULL;
	sum->threads++;
	return prb_number_map_put(&a->met, pair, 1) ? NULL : prb_error_nomem();
}

static struct prb_error *add(struct adding *a, const struct prb_run *run, bool gil)
{
	uint64_t key = (uint64_t)run->wait << 32 | (gil ? run->thread : 0);
	size_t number = a->sums->list.count;
	struct prb_wait_sum *sum;

	if (!prb_number_map_get(&a->numbers, key, &number)) {
		sum = prb_vec_push(&a->sums->list);
		if (!sum || !prb_number_map_put(&a->numbers, key, number))
			return prb_error_nomem();
		*sum = (struct prb_wait_sum){.wait = run->wait, .thread = run->thread};
	}
	sum = &a->sums->list.items[number];
	sum->wall += run->wall;
	a->sums->wall += run->wall;
	return count_thread(a, run, sum);
}

static int by_wall(const void *a, const void *b)
{
	const struct prb_wait_sum *x = a, *y = b;

	if (x->wall != y->wall)
		return x->wall < y->wall ? 1 : -1;
	return x->wait < y->wait ? -1 : x->wait > y->wait;
}

struct prb_error *prb_wait_sums_make(const struct prb_recording *r,
				     const struct prb_profile_choice *choice, bool gil,
				     struct prb_wait_sums *ret)
{
	struct adding adding = {.sums = ret};
	const struct prb_run *run;
	struct prb_error *err = NULL;

	*ret = (struct prb_wait_sums){};
	prb_vec_each (run, &r->runs)
		if (!err && is_wanted(choice, gil, run))
			err = add(&adding, run, gil);
	prb_number_map_deinit(&adding.numbers);
	prb_number_map_deinit(&adding.met);
	if (err)
		prb_wait_sums_deinit(ret);
	else if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_wall);
	return err;
}

void prb_wait_sums_deinit(struct prb_wait_sums *sums)
{
	prb_vec_free(&sums->list);
}
