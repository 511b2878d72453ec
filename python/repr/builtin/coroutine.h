/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The chain of awaits behind a coroutine: from it through the coroutines, generators and
 * asynchronous generators that it awaits to the last thing awaited.
 */
#ifndef PRB_PYTHON_REPR_BUILTIN_COROUTINE_H
#define PRB_PYTHON_REPR_BUILTIN_COROUTINE_H

#include "base/error.h"
#include "base/vec.h"
#include "python/repr/core/repr_private.h"
#include "python/python.h"

enum prb_coroutine_state {
	PRB_COROUTINE_CREATED,	/**< nothing of it ran yet */
	PRB_COROUTINE_AWAITING, /**< suspended in an await (or yield from) */
	PRB_COROUTINE_YIELDED,	/**< suspended in a plain yield */
	PRB_COROUTINE_RUNNING,
	PRB_COROUTINE_FINISHED,
};

/** One link that has a frame. */
struct prb_coroutine {
	uint64_t object;
	struct prb_py_frame frame;
	enum prb_coroutine_state state;
};

struct prb_await_chain {
	PRB_VEC(struct prb_coroutine) list; /**< outermost first */
	uint64_t end; /**< what the innermost awaits and has no frame (a future); 0: nothing */
};

/** True for coroutines, generators and asynchronous generators. */
bool prb_coroutine_is(const struct prb_type *type);

/** Reads what one generator or coroutine does, ret->object; *awaited: the object it waits for, or
 * 0. */
struct prb_error *prb_coroutine_read(struct prb_repr *r, struct prb_coroutine *ret,
				     uint64_t *awaited) PRB_MUST_CHECK;

/**
 * The address above the topmost item on a frame's value stack, of a frame object up to 3.10. 0: it
 * is not known, since the frame executes, and has not saved it for a call.
 */
struct prb_error *prb_frame_stack_end(struct prb_repr *r, uint64_t frame,
				      uint64_t *ret) PRB_MUST_CHECK;

/** Follows the awaits from @p object; *ret holds what was read also when an error ends it. */
struct prb_error *prb_await_chain_read(struct prb_repr *r, uint64_t object,
				       struct prb_await_chain *ret) PRB_MUST_CHECK;
void prb_await_chain_deinit(struct prb_await_chain *chain);

/**
 * Appends the qualified name of a coroutine or generator; of another object that is awaited, the
 * name of its type.
 */
struct prb_error *prb_coroutine_name(struct prb_repr *r, uint64_t object,
				     struct prb_str *ret) PRB_MUST_CHECK;

#endif
