/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/model/program_frame.h"

#include <string.h>

#include "base/checked.h"

const struct prb_dump_frame *prb_dump_innermost(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (frame->kind == PRB_FRAME_PYTHON)
			return frame;
	return NULL;
}

bool prb_dump_is_library(const struct prb_dump_frame *frame)
{
	static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python",
					    "<frozen "};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(parts); i++)
		if (frame->file && strstr(frame->file, parts[i]))
			return true;
	return false;
}

const struct prb_dump_frame *prb_dump_program_frame(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (frame->kind == PRB_FRAME_PYTHON && frame->file && !prb_dump_is_library(frame))
			return frame;
	return NULL;
}

size_t prb_dump_own_frames(const struct prb_dump_task *task)
{
	return task->awaiters.count ? task->awaiters.items[0].at : task->frames.count;
}
