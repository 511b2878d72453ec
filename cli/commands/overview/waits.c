/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Since when threads wait. To load the agent a thread is interrupted, and the kernel counts its
 * sleep anew: the wait goes on all the same, if the thread is still where it was.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/commands/overview/overview.h"
#include "control/age.h"
#include "control/socket.h"

/* Seconds: a shorter wait is of no interest to a rule. */
static const double LONG = 10, SAME = 0.5;

/** Of where a thread is and what for, without the seconds that are left of a limit. */
static uint64_t place_of(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;
	uint64_t hash = PRB_HASH_START;

	prb_vec_each (frame, &thread->frames) {
		hash = prb_hash_text(hash, frame->func ? frame->func : "");
		hash = prb_hash_text(hash, frame->file ? frame->file : "");
		hash = prb_hash_bytes(hash, &frame->line, sizeof(frame->line));
	}
	if (!thread->waits_for || prb_text_ends(thread->waits_for, " left"))
		return hash;
	return prb_hash_text(hash, thread->waits_for);
}

static const struct prb_overview_wait *find(const struct prb_overview_row *row,
					    const struct prb_overview_wait *wait)
{
	const struct prb_overview_wait *old;

	prb_vec_each (old, &row->waits)
		if (old->tid == wait->tid && old->place == wait->place)
			return old;
	return NULL;
}

/** The age of the agent, which is read once: @p age starts as 0. */
static bool is_ours(struct prb_overview_row *row, double *age, double idle)
{
	if (*age == 0)
		*age = prb_agent_age(row->target);
	return prb_agent_interrupted(row->target, *age, idle);
}

struct prb_error *prb_overview_waits_note(struct prb_overview_row *row)
{
	__typeof__(row->waits) waits = {};
	bool first = !row->waited;
	double now = prb_clock_seconds(), age = 0;
	struct prb_dump_thread *thread;

	row->waited = true;
	prb_vec_each (thread, &row->dump->threads) {
		double idle = thread->idle_seconds;
		struct prb_overview_wait wait = {thread->tid, place_of(thread), now - idle};
		const struct prb_overview_wait *old = idle < 0 ? NULL : find(row, &wait);
		struct prb_overview_wait *place;
		bool goes_on = old && old->since + LONG < wait.since && is_ours(row, &age, idle);

		if (goes_on) {
			wait.since = old->since;
			thread->idle_seconds = now - wait.since;
		}
		/* What it did before is not known, unless it was seen. */
		if (thread == row->dump->threads.items)
			row->interrupted = first ? idle >= 0 && prb_agent_is_mapped(row->target) &&
							   is_ours(row, &age, idle)
						 : row->interrupted && old && !goes_on &&
							   wait.since < old->since + SAME;
		place = idle < 0 ? NULL : prb_vec_push(&waits);
		if (idle >= 0 && !place) {
			prb_vec_free(&waits);
			return prb_error_nomem();
		}
		if (place)
			*place = wait;
	}
	prb_vec_free(&row->waits);
	row->waits = waits;
	return NULL;
}

void prb_overview_waits_forget(struct prb_overview_row *row)
{
	prb_vec_free(&row->waits);
	row->waited = row->interrupted = false;
}
