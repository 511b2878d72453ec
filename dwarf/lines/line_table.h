/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Functions and lines of one file with debug information, through libbfd in this very
 * process; line_source.h decides in which process that is. Internal to dwarf/lines/. The first
 * question costs 60–155 ms for a big file, the others next to nothing.
 *
 * libbfd keeps global state, so these calls take turns among threads.
 */
#ifndef PRB_DWARF_LINES_LINE_TABLE_H
#define PRB_DWARF_LINES_LINE_TABLE_H

#include <stdint.h>

#include "base/error.h"
#include "dwarf/elf/elf.h"
#include "dwarf/lines/line.h"

struct prb_line_table;

/**
 * Looks at the headers of sections, without libbfd: PRB_ERROR_NOT_FOUND if @p elf has no line
 * information, PRB_ERROR_UNSUPPORTED if it has too much. Claims the memory for it
 * (prb_elf_claim()).
 */
struct prb_error *prb_line_table_check(struct prb_elf *elf) PRB_MUST_CHECK;

/**
 * Opens the line information of @p elf, which is borrowed and was checked. PRB_ERROR_UNSUPPORTED
 * for files and machines that this libbfd cannot read.
 */
struct prb_error *prb_line_table_open(struct prb_elf *elf, uint16_t machine,
				      struct prb_line_table **ret) PRB_MUST_CHECK;
void prb_line_table_close(struct prb_line_table *table);

/**
 * Appends what is known about @p address (as in the file): inlined functions first, the real one
 * last; nothing if nothing is known. `symbol` stays NULL.
 */
struct prb_error *prb_line_table_find(struct prb_line_table *table, uint64_t address,
				      struct prb_lines *ret) PRB_MUST_CHECK;

/**
 * Between these no other thread is in libbfd, so that a child that is forked then can use it, after
 * a release of its own.
 */
void prb_line_tables_hold(void);
void prb_line_tables_release(void);

#endif
