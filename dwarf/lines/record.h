/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How resolved lines lie in the disk cache and in snapshots. Internal to dwarf/lines/.
 *
 * format, had_table, count (a byte each), symbol, then for each line: number (4 bytes, little
 * endian), inlined (a byte), func, file. A string is its length + 1 (4 bytes; 0: NULL), then its
 * bytes.
 */
#ifndef PRB_DWARF_LINES_RECORD_H
#define PRB_DWARF_LINES_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "dwarf/lines/line.h"

/** Appends @p lines to @p ret. @p had_table: line information was there to be asked. */
void prb_line_record_encode(const struct prb_lines *lines, bool had_table, struct prb_str *ret);

/** False if the bytes make no sense; *ret, which must be empty, is then for the caller to end. */
bool prb_line_record_decode(const void *data, size_t length, struct prb_lines *ret,
			    bool *had_table);

/** As above, for a record that names no symbol; a record with one is malformed. */
bool prb_line_record_decode_unnamed(const void *data, size_t length, struct prb_lines *ret);

#endif
