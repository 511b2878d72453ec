/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The source text of frames, read as the target sees its files. */
#ifndef PRB_DUMP_READ_SOURCE_TEXT_H
#define PRB_DUMP_READ_SOURCE_TEXT_H

#include "base/str.h"
#include "dump/model/dump.h"
#include "python/python.h"

/**
 * Fills `source` of all Python frames whose file can be read, or with @p innermost only of the
 * first frame of each thread. Code that is in no file, such as the cells of a notebook, has its
 * source in the program's `linecache`, of @p pythons. Adds a warning for each file changed after
 * the process started, since its lines may not match the running code.
 */
struct prb_error *prb_source_fill(struct prb_target *target, const struct prb_pythons *pythons,
				  struct prb_dump *dump, bool innermost) PRB_MUST_CHECK;

/**
 * Reads the file of a frame whole, as the target sees it, or what its `linecache` has. @p ret stays
 * empty if there is neither, as for "<string>" or in a snapshot, which has single lines.
 */
struct prb_error *prb_source_read(struct prb_target *target, const char *path,
				  struct prb_str *ret) PRB_MUST_CHECK;

#endif
