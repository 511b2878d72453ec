/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The frame of the program below those of libraries: users ask where their own code waits.
 *
 * Threading: any thread.
 */
#ifndef PRB_DUMP_MODEL_PROGRAM_FRAME_H
#define PRB_DUMP_MODEL_PROGRAM_FRAME_H

#include "dump/model/dump.h"

/** The innermost Python frame; NULL if there is none. */
const struct prb_dump_frame *prb_dump_innermost(const struct prb_dump_thread *thread);

/** True for a frame of the standard library or an installed package, by its file. */
bool prb_dump_is_library(const struct prb_dump_frame *frame);

/** The innermost Python frame that is no library's; NULL if there is none. */
const struct prb_dump_frame *prb_dump_program_frame(const struct prb_dump_thread *thread);

/** How many frames are the task's own: then follow those of the tasks that wait for it. */
size_t prb_dump_own_frames(const struct prb_dump_task *task);

#endif
