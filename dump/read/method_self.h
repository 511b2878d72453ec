/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The object whose method a thread waits in. Internal to dump/. */
#ifndef PRB_DUMP_READ_METHOD_SELF_H
#define PRB_DUMP_READ_METHOD_SELF_H

#include "dump/read/reader.h"

/**
 * *ret: the self of the innermost frame of a method @p name, of the few at its inner end; or 0.
 * @p file: how the path of its file ends, or NULL for any.
 */
struct prb_error *prb_read_method_self(const struct prb_reader_thread *thread, struct prb_mem *mem,
				       const char *name, const char *file,
				       uint64_t *ret) PRB_MUST_CHECK;

#endif
