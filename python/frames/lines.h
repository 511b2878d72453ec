/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Line tables of code objects, decoded from plain bytes.
 */
#ifndef PRB_PYTHON_FRAMES_LINES_H
#define PRB_PYTHON_FRAMES_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "python/python.h"

/**
 * Decodes the entry for @p position (bytes from the start of the bytecode; negative: before the
 * first instruction, which counts as the first line). Never fails: what the table does not say
 * is -1. Any bytes are safe.
 */
void prb_lines_decode(enum prb_line_format format, const uint8_t *table, size_t size,
		      int32_t first_line, int64_t position, struct prb_py_location *ret);

#endif
