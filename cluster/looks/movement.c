/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/movement.h"

#include <string.h>

#include "cluster/looks/flight.h"
#include "cluster/looks/operation.h"
#include "cluster/looks/thread_text.h"

/*
 * CPU share of a waiting thread that wakes now and then, such as a watchdog or a wait with a time
 * limit: measured 0.001 to 0.01.
 */
static const double IDLE_SHARE = 0.05;

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/**
 * The first frame that counts: that of the collective, whose inner functions may ask a store again
 * and again.
 */
static size_t first_frame(const struct prb_seen *seen)
{
	return seen->called ? (size_t)(seen->called - seen->main->frames.items) : 0;
}

/**
 * Compares the Python frames: C frames below them may differ in a wait that is polled. With
 * @p function, the innermost one may be at another place of its function.
 */
static bool same_stack(const struct prb_seen *before, const struct prb_seen *after, bool function)
{
	const struct prb_dump_thread *a = before->main, *b = after->main;
	bool both = before->called && after->called;
	size_t i = both ? first_frame(before) : 0, k = both ? first_frame(after) : 0;

	for (;;) {
		while (i < a->frames.count && a->frames.items[i].kind != PRB_FRAME_PYTHON)
			i++;
		while (k < b->frames.count && b->frames.items[k].kind != PRB_FRAME_PYTHON)
			k++;
		if (i == a->frames.count || k == b->frames.count)
			return i == a->frames.count && k == b->frames.count;

		const struct prb_dump_frame *x = &a->frames.items[i++], *y = &b->frames.items[k++];
		if ((!function && (x->line != y->line || x->ip != y->ip)) ||
		    !same_text(prb_frame_name(x), prb_frame_name(y)) ||
		    !same_text(x->file, y->file))
			return false;
		function = false;
	}
}

static bool has_c_frames(const struct prb_seen *seen)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &seen->main->frames)
		if (frame->kind != PRB_FRAME_PYTHON)
			return !seen->main->error;
	return false;
}

/** True if one is in an operation of MPI that the other has left, as their C stacks show. */
static bool left_mpi(const struct prb_seen *a, const struct prb_seen *b)
{
	bool in = a->in_c && !a->gpu, is = b->in_c && !b->gpu;

	if (in && is)
		return strcmp(a->in_c->func, b->in_c->func) != 0;
	return (in && has_c_frames(b)) || (is && has_c_frames(a));
}

/** True if the rank was at every look in a wait that uses the processor. */
static bool polls(const struct prb_round *rounds, size_t count, size_t i)
{
	for (size_t n = 0; n < count; n++) {
		const struct prb_seen *seen = &rounds[n].list.items[i];

		if (!(seen->in_c && !seen->unnamed) && !prb_operation_polls(seen->collective))
			return false;
	}
	return true;
}

/** True if the rank wanted a processor at every look: where it got none it did not wait. */
static bool starves(const struct prb_round *rounds, size_t count, size_t i)
{
	for (size_t n = 0; n < count; n++)
		if (rounds[n].list.items[i].state != 'R')
			return false;
	return true;
}

/** True if the main thread used no processor to speak of. */
static bool idles(const struct prb_round *rounds, size_t count, size_t i)
{
	const struct prb_seen *first = &rounds[0].list.items[i];
	const struct prb_seen *last = &rounds[count - 1].list.items[i];
	double seconds = rounds[count - 1].seconds - rounds[0].seconds;

	return first->ran_ns < 0 || last->ran_ns < 0 || seconds <= 0 ||
	       ((double)(last->ran_ns - first->ran_ns) / 1e9 <= IDLE_SHARE * seconds &&
		!starves(rounds, count, i));
}

/** True if its innermost function is one that has numbers to tell whether it goes on. */
static bool is_in_function(const struct prb_seen *seen)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &seen->main->frames)
		if (frame->kind == PRB_FRAME_PYTHON)
			return strcmp(prb_frame_name(frame), "<module>") != 0;
	return false;
}

/** See prb_seen.polls. */
static bool polls_in_function(const struct prb_round *rounds, size_t count, size_t i)
{
	const struct prb_seen *first = &rounds[0].list.items[i];
	const struct prb_seen *last = &rounds[count - 1].list.items[i];

	for (size_t n = 0; n < count; n++) {
		const struct prb_seen *seen = &rounds[n].list.items[i];

		if (!seen->main || seen->collective || !is_in_function(seen) ||
		    (n && !same_stack(&rounds[n - 1].list.items[i], seen, true)))
			return false;
	}
	return first->ran_ns >= 0 && last->ran_ns >= 0 && idles(rounds, count, i) &&
	       first->progress && first->progress == last->progress;
}

static enum prb_movement movement(const struct prb_round *rounds, size_t count, size_t i)
{
	const struct prb_seen *first = &rounds[0].list.items[i];
	const struct prb_seen *last = &rounds[count - 1].list.items[i];

	for (size_t n = 0; n < count; n++) {
		const struct prb_seen *seen = &rounds[n].list.items[i];

		if (!seen->main)
			return PRB_UNKNOWN;
		if (n && (!same_stack(&rounds[n - 1].list.items[i], seen, false) ||
			  left_mpi(&rounds[n - 1].list.items[i], seen)))
			return PRB_MOVES;
	}
	/* Two calls of one collective from the same line have the same stack. */
	if (!prb_flight_is_same(first->flight, last->flight) ||
	    (first->progress && last->progress && first->progress != last->progress))
		return PRB_MOVES;
	if (idles(rounds, count, i))
		return PRB_STILL;
	if (polls(rounds, count, i))
		return last->called ? PRB_STILL : PRB_SPINS;
	/* A thread that computes and sleeps in turn at one place comes there again and again. */
	for (size_t n = 0; n < count; n++)
		if (rounds[n].list.items[i].state == 'S')
			return PRB_MOVES;
	return PRB_SPINS;
}

/** The state in the first look; or in a later one, if only that is not the one of the last look: a
 * profiler stops threads for moments, and a debugger for good. */
static char state_before(const struct prb_round *rounds, size_t count, size_t i)
{
	char now = rounds[count - 1].list.items[i].state, before = rounds[0].list.items[i].state;

	for (size_t n = 1; n + 1 < count && before == now; n++)
		before = rounds[n].list.items[i].state;
	return before;
}

void prb_movement_note(struct prb_round *rounds, size_t count)
{
	struct prb_round *last = &rounds[count - 1];

	last->span = last->seconds - rounds[0].seconds;
	for (size_t i = 0; i < last->list.count; i++) {
		struct prb_seen *seen = &last->list.items[i];

		seen->movement = movement(rounds, count, i);
		seen->polls = seen->movement == PRB_MOVES && polls_in_function(rounds, count, i);
		seen->state_before = state_before(rounds, count, i);
		for (size_t n = 0; n < count; n++)
			seen->entered |= rounds[n].list.items[i].collective != NULL;
	}
}
