/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/native/merge.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "dwarf/lines/lines.h"
#include "dwarf/lines/short_name.h"
#include "dwarf/unwind/unwind.h"
#include "dump/native/c_stack.h"
#include "dump/native/own_frames.h"

struct prb_native {
	struct prb_modules *modules;
	struct prb_pool *pool;
	bool all;
	struct prb_unwinder *unwinder;
	struct prb_interleaver interleaver;
	struct prb_resolver *resolver;
};

struct merge {
	struct prb_native *native;
	const struct prb_python *py; /* NULL: of a thread without Python state */
	const struct prb_c_stack *stack;
	struct prb_dump_thread *thread;
	bool runs_program; /* the frame before did all the work of its main() */
	size_t next;	   /* first decoded Python frame without a place */
	PRB_VEC(struct prb_dump_frame) merged;
};

struct prb_error *prb_native_create(struct prb_modules *modules, struct prb_pool *pool, bool all,
				    struct prb_native **ret)
{
	struct prb_native *native = calloc(1, sizeof(*native));

	if (!native)
		return prb_error_nomem();
	native->modules = modules;
	native->pool = pool;
	native->all = all;
	native->interleaver.modules = modules;

	struct prb_error *err = prb_unwinder_create(modules, &native->unwinder);
	if (!err)
		err = prb_resolver_create(modules, &native->resolver);
	if (err)
		prb_native_destroy(native);
	else
		*ret = native;
	return err;
}

void prb_native_destroy(struct prb_native *native)
{
	if (!native)
		return;
	if (native->resolver)
		prb_resolver_destroy(native->resolver);
	if (native->unwinder)
		prb_unwinder_destroy(native->unwinder);
	prb_interleaver_deinit(&native->interleaver);
	free(native);
}

static struct prb_error *push_merged(struct merge *m, struct prb_dump_frame **ret)
{
	*ret = prb_vec_push(&m->merged);
	return *ret ? NULL : prb_error_nomem();
}

/* Moves the next decoded Python frame to its place. */
static struct prb_error *place_python(struct merge *m)
{
	struct prb_dump_frame *slot;

	PRB_TRY(push_merged(m, &slot));
	*slot = m->thread->frames.items[m->next];
	m->thread->frames.items[m->next++] = (struct prb_dump_frame){};
	return NULL;
}

static struct prb_error *take_name(struct prb_pool *pool, const char *name,
				   struct prb_dump_frame *slot)
{
	prb_auto_free char *brief = NULL;

	if (name)
		PRB_TRY(prb_short_name(name, &brief));
	if (brief)
		PRB_TRY(prb_pool_share(pool, name, &slot->full_func));
	return prb_pool_share(pool, brief ? brief : name, &slot->func);
}

static struct prb_error *take_line(struct merge *m, const struct prb_c_frame *frame,
				   const struct prb_module *module, const struct prb_line *line)
{
	struct prb_pool *pool = m->native->pool;
	struct prb_dump_frame *slot;

	PRB_TRY(push_merged(m, &slot));
	slot->kind = line->inlined ? PRB_FRAME_INLINE : PRB_FRAME_NATIVE;
	PRB_TRY(take_name(pool, line->func, slot));
	PRB_TRY(prb_pool_share(pool, line->file, &slot->file));
	slot->line = line->line ? (int32_t)line->line : -1;
	slot->end_line = slot->col = slot->end_col = -1;
	slot->ip = frame->pc;
	if (!module)
		return NULL;
	slot->offset = frame->pc - module->bias;
	return prb_pool_share(pool, module->path, &slot->module);
}

/*
 * Leaves out own frames among this C frame and the functions inlined into it, the last of the
 * merged frames.
 */
static void leave_out(struct merge *m, const struct prb_module *module, size_t first)
{
	bool inside = m->py && module && module->start == m->py->module->start &&
		      module->bias == m->py->module->bias;
	size_t kept = first;

	if (!m->py)
		return;
	for (size_t i = first; i < m->merged.count; i++) {
		struct prb_dump_frame *frame = &m->merged.items[i];

		/* Headers of CPython have functions that compilers inline into extensions. */
		bool own = inside ? prb_is_own_function(frame->func)
				  : frame->kind == PRB_FRAME_INLINE &&
					    prb_is_of_interface(frame->func);

		own = own || prb_is_of_cython(frame->func) ||
		      (m->runs_program && frame->func && !strcmp(frame->func, "main"));

		m->runs_program = prb_runs_program(frame->func);
		frame->own = own;
		if (own && !m->native->all) {
			prb_dump_frame_deinit(frame);
			m->thread->own_frames++;
		} else {
			m->merged.items[kept++] = *frame;
		}
	}
	m->merged.count = kept;
}

static struct prb_error *place_native(struct merge *m, const struct prb_c_frame *frame,
				      struct prb_lines *lines)
{
	const struct prb_module *module = prb_modules_find(m->native->modules, frame->pc);
	struct prb_line *line, unknown = {};
	size_t first = m->merged.count;

	if (!lines->list.count)
		PRB_TRY(take_line(m, frame, module, &unknown));
	prb_vec_each (line, &lines->list)
		PRB_TRY(take_line(m, frame, module, line));
	if (lines->list.count)
		PRB_TRY(prb_str_copy(lines->trouble, &m->merged.items[m->merged.count - 1].error));
	leave_out(m, module, first);
	return NULL;
}

/* No call led to the trampoline, so the code before its pc is unrelated. */
static struct prb_error *place_trampoline(struct merge *m, const struct prb_c_frame *frame)
{
	struct prb_line line = {.func = "<signal handler called>"};

	return take_line(m, frame, prb_modules_find(m->native->modules, frame->pc), &line);
}

static struct prb_error *place_frame(struct merge *m, const struct prb_c_frame *frame)
{
	struct prb_lines lines;

	if (frame->signal)
		return place_trampoline(m, frame);
	PRB_TRY(prb_resolve(m->native->resolver, frame->pc, frame->exact, &lines));

	struct prb_error *err = place_native(m, frame, &lines);
	prb_lines_deinit(&lines);
	return err;
}

static struct prb_error *place_all(struct merge *m, const struct prb_places *places)
{
	const struct prb_place *place;

	prb_vec_each (place, &places->list)
		PRB_TRY(place->python ? place_python(m)
				      : place_frame(m, &m->stack->frames.items[place->index]));
	return NULL;
}

/* Python frames without a place come after the rest, and the thread's error says so. */
static struct prb_error *tell_rest(struct merge *m, const struct prb_places *places)
{
	size_t left = places->list.count - places->placed;
	const char *reason = m->stack->reason;

	if (!left && !reason)
		return NULL;
	free(m->thread->error);
	m->thread->error =
		left && reason
			? prb_format("native frames end early: %s; the last %zu Python frames "
				     "stand without them",
				     reason, left)
		: left ? prb_format("the last %zu Python frames match no native frame", left)
		       : prb_format("native frames end early: %s", reason);
	return m->thread->error ? NULL : prb_error_nomem();
}

static struct prb_error *merge_all(struct merge *m, const struct prb_python *py,
				   const struct prb_py_frames *frames, enum prb_native_doubt *doubt)
{
	struct prb_places places = {};
	struct prb_error *err =
		prb_interleave(&m->native->interleaver, py, frames, m->stack, doubt, &places);

	if (!err)
		err = tell_rest(m, &places);
	if (!err)
		err = place_all(m, &places);
	prb_places_deinit(&places);
	return err;
}

struct prb_error *prb_native_merge(struct prb_native *native, struct prb_python *py,
				   struct prb_mem *mem, const struct prb_regs *regs,
				   const struct prb_py_frames *frames, enum prb_native_doubt *doubt,
				   struct prb_dump_thread *thread)
{
	struct prb_c_stack stack = {};
	struct merge m = {.native = native, .py = py, .stack = &stack, .thread = thread};
	thread->own_frames = 0;
	struct prb_error *err = prb_c_stack_walk(native->unwinder, mem, regs, &stack);

	if (!err)
		err = merge_all(&m, py, frames, doubt);
	prb_c_stack_deinit(&stack);
	if (err) {
		struct prb_dump_frame *frame;

		prb_vec_each (frame, &m.merged)
			prb_dump_frame_deinit(frame);
		prb_vec_free(&m.merged);
		return err;
	}
	free(thread->frames.items);
	memcpy(&thread->frames, &m.merged, sizeof(thread->frames));
	return NULL;
}
