/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/thread_state.h"

#include <pthread.h>

#include "base/cleanup.h"
#include "dump/read/c_function.h"
#include "dump/read/recorded.h"
#include "python/runtime/collecting.h"
#include "target/proc/text.h"

static bool is_within(uint64_t address, uint64_t start, size_t size)
{
	return start && address >= start && address - start < size;
}

/* A thread that sleeps on the GIL's own condition or mutex waits for the GIL. */
static bool waits_for_gil(const struct prb_reader_thread *thread)
{
	const struct prb_python *py = thread->py;
	const struct prb_layout *l = &py->layout;

	if (is_within(thread->futex, py->gil_cond, sizeof(pthread_cond_t)) ||
	    is_within(thread->futex, py->gil_mutex, sizeof(pthread_mutex_t)))
		return true;
	return thread->futex && thread->state.gil && l->gil_size > 0 &&
	       thread->futex >= thread->state.gil &&
	       thread->futex < thread->state.gil + (uint64_t)l->gil_size;
}

/*
 * Threads are read one after the other: if two held the GIL when read, the first counts as the
 * holder.
 */
static bool has_holder(const struct prb_reader *r, const struct prb_reader_thread *thread)
{
	const struct prb_reader_thread *other;

	for (other = r->threads.items; other < thread; other++)
		if (other->py == thread->py && other->state.gil == thread->state.gil &&
		    other->state.holds_gil)
			return true;
	return false;
}

struct prb_error *prb_read_thread_state(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	bool holds = thread->py && thread->state.holds_gil && !has_holder(r, thread);

	out->state = thread->task ? prb_state_name(thread->task->state) : "threadless";
	out->gil = holds ? "holds" : thread->py && waits_for_gil(thread) ? "waits" : NULL;
	out->gc = holds && thread->state.gc;
	prb_note_recorded(r, thread);
	if (thread->recorded)
		PRB_TRY(prb_read_recorded_error(r, thread));
	PRB_TRY(prb_read_c_function(r, thread));
	return prb_str_copy(thread->task ? thread->task->name : NULL, &out->os_name);
}

/* The thread's stack pointer: 0 if unknown, or if the thread runs. */
static struct prb_error *find_sp(struct prb_reader *r, struct prb_reader_thread *thread,
				 uint64_t *ret)
{
	struct prb_task call = {
		.tid = thread->task->tid, .state = thread->task->state, .syscall = -1};
	struct prb_regs regs = {};

	*ret = 0;
	PRB_TRY(prb_task_read_call(r->target, &call));
	*ret = call.sp;
	if (call.sp || r->target->moves)
		return NULL;

	prb_auto_error struct prb_error *err =
		prb_target_registers(r->target, thread->task->tid, &regs);
	if (!err && !prb_regs_get(&regs, prb_regs_sp(regs.machine), ret))
		*ret = 0;
	return NULL;
}

static struct prb_error *is_gc_thread(struct prb_reader *r, struct prb_reader_thread *thread,
				      struct prb_view *view, bool *ret)
{
	uint64_t sp;

	*ret = false;
	PRB_TRY(find_sp(r, thread, &sp));

	const struct prb_map *map = sp ? prb_maps_find(&r->target->maps, sp) : NULL;
	if (!map)
		return NULL;

	struct prb_error *err =
		prb_python_collects(thread->py, prb_view_mem(view), sp, map->end, ret);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

static void note_gc(struct prb_reader *r, const struct prb_reader_thread *thread)
{
	prb_auto_str struct prb_str key = {};

	prb_str_printf(&key, "gc:%d", thread->task->tid);
	prb_target_remember(r->target, prb_str_text(&key), "1", 1);
}

static bool was_gc(struct prb_reader *r, const struct prb_reader_thread *thread)
{
	prb_auto_str struct prb_str text = {}, key = {};

	prb_str_printf(&key, "gc:%d", thread->task->tid);
	return prb_target_recall(r->target, prb_str_text(&key), &text);
}

static void mark_gc(struct prb_reader *r, const struct prb_reader_thread *gc_thread)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads)
		if (thread->py == gc_thread->py && thread->state.interp == gc_thread->state.interp)
			prb_reader_out(r, thread)->gc = thread == gc_thread;
	note_gc(r, gc_thread);
}

static struct prb_error *look_for_gc(struct prb_reader *r, struct prb_reader_thread *thread,
				     struct prb_view **view, bool *ret)
{
	*ret = false;
	if (!thread->py || !thread->task || !thread->state.interp_collects ||
	    prb_reader_out(r, thread)->read == PRB_READ_UNSTABLE)
		return NULL;
	if (r->target->replayed) {
		*ret = was_gc(r, thread);
		return NULL;
	}
	if (!*view)
		PRB_TRY(prb_view_create(r->target->mem, view));
	return is_gc_thread(r, thread, *view, ret);
}

struct prb_error *prb_read_gc_thread(struct prb_reader *r)
{
	struct prb_reader_thread *thread;
	struct prb_view *view = NULL;
	struct prb_error *err = NULL;

	prb_vec_each (thread, &r->threads) {
		bool found;

		err = look_for_gc(r, thread, &view, &found);
		if (err)
			break;
		if (found)
			mark_gc(r, thread);
	}
	prb_view_destroy(view);
	return err;
}
