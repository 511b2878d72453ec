/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/gc_thread.h"

#include "base/cleanup.h"
#include "python/runtime/collecting.h"

/* Its stack pointer: 0 if it is not known, or if the thread runs. */
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

static struct prb_error *is_collector(struct prb_reader *r, struct prb_reader_thread *thread,
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

static void remember(struct prb_reader *r, const struct prb_reader_thread *thread)
{
	prb_auto_str struct prb_str key = {};

	prb_str_printf(&key, "gc:%d", thread->task->tid);
	prb_target_remember(r->target, prb_str_text(&key), "1", 1);
}

static bool recall(struct prb_reader *r, const struct prb_reader_thread *thread)
{
	prb_auto_str struct prb_str text = {}, key = {};

	prb_str_printf(&key, "gc:%d", thread->task->tid);
	return prb_target_recall(r->target, prb_str_text(&key), &text);
}

static void mark(struct prb_reader *r, const struct prb_reader_thread *collector)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads)
		if (thread->py == collector->py && thread->state.interp == collector->state.interp)
			prb_reader_out(r, thread)->gc = thread == collector;
	remember(r, collector);
}

static struct prb_error *look_at(struct prb_reader *r, struct prb_reader_thread *thread,
				 struct prb_view **view, bool *ret)
{
	*ret = false;
	if (!thread->py || !thread->task || !thread->state.interp_collects ||
	    prb_reader_out(r, thread)->read == PRB_READ_UNSTABLE)
		return NULL;
	if (r->target->replayed) {
		*ret = recall(r, thread);
		return NULL;
	}
	if (!*view)
		PRB_TRY(prb_view_create(r->target->mem, view));
	return is_collector(r, thread, *view, ret);
}

struct prb_error *prb_read_gc_thread(struct prb_reader *r)
{
	struct prb_reader_thread *thread;
	struct prb_view *view = NULL;
	struct prb_error *err = NULL;

	prb_vec_each (thread, &r->threads) {
		bool found;

		err = look_at(r, thread, &view, &found);
		if (err)
			break;
		if (found)
			mark(r, thread);
	}
	prb_view_destroy(view);
	return err;
}
