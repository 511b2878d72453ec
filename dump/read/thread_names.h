/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The names that Python's `threading` gives threads. Internal to dump/.
 */
#ifndef PRB_DUMP_READ_THREAD_NAMES_H
#define PRB_DUMP_READ_THREAD_NAMES_H

#include "dump/read/reader.h"

/** Fills in the names from `threading` of each interpreter of @p py. */
struct prb_error *prb_read_thread_names(struct prb_reader *r, struct prb_python *py,
					struct prb_view *view) PRB_MUST_CHECK;

/** The name of a thread that the dump lacks; *ret is NULL if it has none; caller frees. */
struct prb_error *prb_read_thread_name(struct prb_python *py, struct prb_view *view,
				       uint64_t interp, uint64_t pthread,
				       char **ret) PRB_MUST_CHECK;

#endif
