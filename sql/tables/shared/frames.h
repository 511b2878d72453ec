/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the tables of frames: their columns, and rows made from a dump. */
#ifndef PRB_SQL_TABLES_SHARED_FRAMES_H
#define PRB_SQL_TABLES_SHARED_FRAMES_H

#include "dump/model/dump.h"
#include "sql/spec/table.h"

/** The columns of python.backtrace, python.stacks, native.backtrace and native.frames. */
extern const struct prb_column prb_frame_columns[];

/** Which frames of a dump are rows. */
enum prb_frame_rows {
	PRB_PYTHON_FRAMES,
	PRB_NATIVE_FRAMES, /**< without the interpreter's own C frames */
	PRB_ALL_FRAMES,
};

/**
 * Appends the frames of all threads that the keys `tid` ask for: all of them, or with @p main
 * only the main thread unless `tid` is constrained. In pages.
 */
struct prb_error *prb_frames_scan(struct prb_scan *scan, enum prb_frame_rows which,
				  bool main_thread) PRB_MUST_CHECK;

/**
 * The thread at scan->position or the first behind it that the key of @p column asks for, any
 * without a key; NULL: none is left. The position becomes that behind it.
 */
const struct prb_dump_thread *prb_threads_next(struct prb_scan *scan, const struct prb_dump *dump,
					       unsigned column);

/** "idle", "stopped" or "unstable". */
const char *prb_read_name(enum prb_read_kind read);

#endif
