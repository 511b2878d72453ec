/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * That a frame is inside of `with lock:` says that it has acquired the lock and not come to the end
 * of the statement. It holds the lock unless it was released in between: by Condition.wait(), which
 * shows on its stack, or by code that calls release(). So no code on its stack from that frame
 * inwards may have that name, nor may an object that was entered since then. Where an object is
 * being left, or the thread runs or itself waits for the lock, it may be on its way to take it
 * again: then acquire() counts, too.
 */
#include "dump/read/lock_proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/runtime/entered.h"
#include "python/runtime/locks.h"
#include "python/runtime/releases.h"

enum {
	MOST_INNER = 1000, /* frames between a lock and the innermost one */
	STOP_TIMEOUT_MS = 1000,
};

/* Where the frame is inside of the lock: so many objects were entered since; -1: it is not. */
static struct prb_error *find_level(struct prb_python *py, struct prb_mem *mem,
				    const struct prb_py_frame *frame, uint64_t lock, int *ret)
{
	struct prb_py_entered entered;

	*ret = -1;
	PRB_TRY(prb_python_entered(py, mem, frame, &entered));
	for (unsigned i = 0; i < entered.count && *ret < 0; i++) {
		uint64_t locked = 0;
		bool failed = false;

		if (entered.list[i].object)
			PRB_TRY(prb_error_tolerate(
				prb_python_lock_of(py, mem, entered.list[i].object,
						   entered.list[i].leave, &locked),
				&failed));
		if (!failed && locked == lock)
			*ret = (int)i;
	}
	return NULL;
}

/* True if the thread waits for the lock that it is inside of. */
static struct prb_error *waits_for_it(const struct prb_reader_thread *thread, struct prb_mem *mem,
				      uint64_t lock, bool *ret)
{
	struct prb_py_lock awaited;

	PRB_TRY(prb_python_lock(thread->py, mem, thread->frames.list.items, thread->futex,
				&awaited));
	*ret = awaited.address == lock;
	return NULL;
}

/* As the frames of @p thread are in @p mem. @p runs: it was stopped where it ran. */
static struct prb_error *judge(const struct prb_reader_thread *thread, struct prb_mem *mem,
			       const struct prb_lock_claim *claim, bool runs, bool *ret)
{
	const struct prb_py_frame *frames = thread->frames.list.items, *frame;
	size_t holder = 0, count = PRB_MIN(thread->frames.list.count, (size_t)MOST_INNER);
	bool released = false, retakes = runs;
	int level;

	*ret = false;
	while (holder < count && frames[holder].address != claim->frame)
		holder++;
	if (thread->frames_error || holder == count || frames[holder].code != claim->code)
		return NULL;
	PRB_TRY(find_level(thread->py, mem, &frames[holder], claim->lock, &level));
	if (level < 0)
		return NULL;
	if (!retakes && thread->futex)
		PRB_TRY(waits_for_it(thread, mem, claim->lock, &retakes));
	for (frame = frames; frame <= &frames[holder] && !released; frame++) {
		PRB_TRY(prb_python_may_release(thread->py, mem, &frames[holder], (unsigned)level,
					       frame, retakes, &released));
		if (!released && frame != &frames[holder])
			PRB_TRY(prb_python_waits_in_condition(thread->py, mem, frame, claim->lock,
							      &released));
	}
	*ret = !released;
	return NULL;
}

/* Walks the stack of @p probe, a copy of the thread, and judges it. */
static struct prb_error *walk_and_judge(struct prb_reader_thread *probe, struct prb_view *view,
					const struct prb_lock_claim *claim, bool runs, bool *ret)
{
	*ret = false;
	PRB_TRY(prb_view_prefetch(view));
	PRB_TRY(prb_reader_check_state(probe, prb_view_mem(view)));
	PRB_TRY(prb_reader_walk(probe, prb_view_mem(view)));
	return judge(probe, prb_view_mem(view), claim, runs, ret);
}

static struct prb_error *prove_stopped(struct prb_reader *r, struct prb_reader_thread *probe,
				       struct prb_view *view, const struct prb_lock_claim *claim,
				       bool *ret)
{
	struct prb_stop stop;
	double pause = 0;

	prb_view_new_epoch(view);
	PRB_TRY(prb_stop_seize_after(probe->task->tid, &r->patience, &stop));

	struct prb_error *err = prb_stop_ask(&stop);
	if (!err)
		err = prb_stop_wait(&stop, STOP_TIMEOUT_MS);
	if (!err)
		err = walk_and_judge(probe, view, claim, true, ret);
	prb_stop_end(&stop, &pause);
	if (!claim->other)
		prb_reader_out(r, claim->thread)->pause_us += pause;
	return err;
}

/* A first look shows which pages are needed, and whether a stop would be for nothing. */
static struct prb_error *prove_moving(struct prb_reader *r, struct prb_reader_thread *probe,
				      struct prb_view *view, const struct prb_lock_claim *claim,
				      bool *ret)
{
	bool slept = prb_task_slept(&r->tasks, probe->task, false);

	PRB_TRY(walk_and_judge(probe, view, claim, !slept, ret));
	if (!*ret || (slept && prb_task_slept(&r->tasks, probe->task, false)))
		return NULL;
	*ret = false;
	return r->options->mode == PRB_DUMP_NONBLOCKING ? NULL
							: prove_stopped(r, probe, view, claim, ret);
}

/* A snapshot says what was proven. */
static bool was_proven(struct prb_reader *r, const char *key, const struct prb_lock_claim *claim)
{
	prb_auto_str struct prb_str text = {};

	return prb_target_recall(r->target, key, &text) &&
	       strtol(prb_str_text(&text), NULL, 10) == claim->thread->task->tid;
}

static struct prb_error *prove(struct prb_reader *r, const struct prb_lock_claim *claim, bool *ret)
{
	struct prb_reader_thread probe = *claim->thread;
	struct prb_view *view;

	if (!r->target->moves)
		return judge(claim->thread, prb_view_mem(r->view), claim, claim->other, ret);
	PRB_TRY(prb_view_create(r->target->mem, &view));
	probe.frames = (struct prb_py_frames){};
	probe.frames_error = NULL;

	struct prb_error *err = prove_moving(r, &probe, view, claim, ret);
	prb_reader_clear(&probe);
	prb_view_destroy(view);
	return err;
}

struct prb_error *prb_lock_prove(struct prb_reader *r, const struct prb_lock_claim *claim,
				 bool *ret)
{
	const struct prb_reader_thread *thread = claim->thread;
	char key[64], value[32];
	bool failed = false;

	*ret = false;
	if (!thread->task ||
	    (!claim->other && prb_reader_out(r, thread)->read == PRB_READ_UNSTABLE))
		return NULL;
	snprintf(key, sizeof(key), "lock-holder:%llx", (unsigned long long)claim->lock);
	if (r->target->replayed) {
		*ret = was_proven(r, key, claim);
		return NULL;
	}

	PRB_TRY(prb_error_tolerate(prove(r, claim, ret), &failed));
	*ret = *ret && !failed;
	if (*ret)
		prb_target_remember(
			r->target, key, value,
			(size_t)snprintf(value, sizeof(value), "%d", (int)thread->task->tid));
	return NULL;
}
