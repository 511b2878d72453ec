/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The C stack of a thread as bytes of ours, so that it can be unwound when the thread runs
 * again.
 *
 * The copy is a memory source: addresses on the stack are read from the copy, and what cannot
 * change (code, mapped without write permission) from the target. Nothing else can be read, so that
 * nothing of a later instant gets into a stack.
 *
 * Threading: one thread at a time. Borrows the target, whose maps are to be current. Internal to
 * profile/native/.
 */
#ifndef PRB_PROFILE_NATIVE_STACK_COPY_H
#define PRB_PROFILE_NATIVE_STACK_COPY_H

#include "base/error.h"
#include "target/mem/mem.h"
#include "target/mem/view.h"
#include "target/target.h"

enum {
	PRB_STACK_FIRST = 64 << 10, /**< bytes copied of a stack whose end is not known */
	PRB_STACK_MOST = 8 << 20,
};

struct prb_stack_copy {
	struct prb_mem mem; /**< what reads it */
	struct prb_target *target;
	struct prb_view *code; /**< what cannot change; it may be forgotten at any time */
	uint8_t *bytes;
	size_t capacity;
	uint64_t begin, end; /**< addresses of what was copied */
	uint64_t used;	     /**< end of what was read of that */
	bool all;	     /**< nothing readable lies behind it */
	bool ran_out;	     /**< something behind it was asked for since it was made */
};

struct prb_error *prb_stack_copy_init(struct prb_stack_copy *copy,
				      struct prb_target *target) PRB_MUST_CHECK;
void prb_stack_copy_deinit(struct prb_stack_copy *copy);

/**
 * Copies what there is from @p sp on, at most @p length bytes, and a little below it, where a
 * function that is about to return has left what it had saved. The earlier content is dropped. None
 * at all is no error. One system call, or two for the first stack of a thread.
 */
struct prb_error *prb_stack_copy_make(struct prb_stack_copy *copy, uint64_t sp,
				      size_t length) PRB_MUST_CHECK;

/** Takes what others have copied from @p sp on. */
struct prb_error *prb_stack_copy_give(struct prb_stack_copy *copy, uint64_t sp, const void *bytes,
				      size_t length) PRB_MUST_CHECK;

#endif
