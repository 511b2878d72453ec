/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Merges the native frames of a thread with its Python frames.
 */
#ifndef PRB_DUMP_NATIVE_MERGE_H
#define PRB_DUMP_NATIVE_MERGE_H

#include "base/error.h"
#include "python/python.h"
#include "target/mem/mem.h"
#include "target/regs.h"
#include "dump/model/dump.h"
#include "dump/native/frame_order.h"

struct prb_native;

/** Borrows both; @p pool holds the names of frames. @p all: the interpreter's own C frames too. */
struct prb_error *prb_native_create(struct prb_modules *modules, struct prb_pool *pool, bool all,
				    struct prb_native **ret) PRB_MUST_CHECK;
void prb_native_destroy(struct prb_native *native);

/**
 * Unwinds from @p regs through @p mem, resolves every pc and puts the native frames around the
 * Python frames that thread->frames already holds (made from @p frames, in the same order, without
 * hidden ones; @p py is theirs, NULL if the thread has none). If the walk ends early, thread->error
 * says why. @p doubt: of the thread; updated unless it is PRB_NATIVE_SWITCHED. thread->own_frames
 * becomes the count of frames left out.
 */
struct prb_error *prb_native_merge(struct prb_native *native, struct prb_python *py,
				   struct prb_mem *mem, const struct prb_regs *regs,
				   const struct prb_py_frames *frames, enum prb_native_doubt *doubt,
				   struct prb_dump_thread *thread) PRB_MUST_CHECK;

#endif
