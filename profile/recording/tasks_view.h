/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The two views of a recording with asyncio tasks (awaits.h): the stacks as they were, and
 * the task and its chain of awaits in place of the frames of the event loop.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_PROFILE_RECORDING_TASKS_VIEW_H
#define PRB_PROFILE_RECORDING_TASKS_VIEW_H

#include <stdbool.h>

#include "base/error.h"
#include "profile/recording/recording.h"

/**
 * Replaces the recording's tree by the tree of one view: with @p tasks, or without. Runs get its
 * stacks. *ret_renamed, unless @p ret_renamed is NULL, is the caller's: for each stack of the old
 * tree that of the new one, which may be 0, or NULL where nothing has changed.
 */
struct prb_error *prb_tasks_view(struct prb_recording *recording, bool tasks,
				 uint32_t **ret_renamed) PRB_MUST_CHECK;

#endif
