/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What looks the same in text and is therefore shown once: threads, and calls of a
 * recursion.
 */
#ifndef PRB_CLI_FOLD_H
#define PRB_CLI_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "dwarf/base/vec.h"
#include "injector/dump.h"

/** Threads shown as one entry; the first stands for all. */
struct prb_fold_group {
	PRB_VEC(const struct prb_dump_thread *) threads;
};

struct prb_fold_groups {
	PRB_VEC(struct prb_fold_group) list;
};

/**
 * Groups the threads of @p dump in the order they are shown: who holds the GIL or runs comes
 * first, else as in the dump. With @p fold, sleeping threads with the same stack are one group;
 * the first thread of the dump, the main thread, always stays alone.
 */
struct prb_error *prb_fold_threads(const struct prb_dump *dump, bool fold,
				   struct prb_fold_groups *ret) PRB_MUST_CHECK;
void prb_fold_groups_deinit(struct prb_fold_groups *groups);

/** How many frames from @p frames[0] on, of @p count, are the same call at the same line; ≥ 1. */
size_t prb_fold_recursion(const struct prb_dump_frame *frames, size_t count);

#endif
