/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Giving the stacks of a written recording other numbers.
 *
 * C frames are stored by addresses, and get their names when the recording is over. Then the tree
 * is another one, and what refers to stacks has to follow it.
 *
 * Threading: one thread at a time. Internal to profile/store/write/.
 */
#ifndef PRB_PROFILE_STORE_WRITE_RENAME_STACKS_H
#define PRB_PROFILE_STORE_WRITE_RENAME_STACKS_H

#include "profile/store/write/database.h"

/**
 * Within a transaction: removes functions, frames and stacks, and rewrites totals and chunks for
 * the numbers in @p batch.
 */
struct prb_error *prb_store_rename_rows(struct prb_store_file *file,
					const struct prb_batch *batch) PRB_MUST_CHECK;

#endif
