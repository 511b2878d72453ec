/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Functions and lines of one file with debug information. Internal to dwarf/lines/. libbfd
 * runs in this process for files that no other user could have made, else in a child without rights
 * (dwarf/elf/confine.h) that lives as long as the source. It is forked by the first question.
 *
 * Threading: one thread at a time per source.
 */
#ifndef PRB_DWARF_LINES_LINE_SOURCE_H
#define PRB_DWARF_LINES_LINE_SOURCE_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "dwarf/elf/elf.h"
#include "dwarf/lines/line.h"

struct prb_line_source;

/**
 * Opens the line information of @p elf, which is borrowed. @p patience: the milliseconds that all
 * questions to children may take, which goes down; borrowed. PRB_ERROR_NOT_FOUND if there is none;
 * PRB_ERROR_UNSUPPORTED for files and machines that this libbfd cannot read.
 */
struct prb_error *prb_line_source_open(struct prb_elf *elf, uint16_t machine, int *patience,
				       struct prb_line_source **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_line_source_close(struct prb_line_source *source);

/**
 * Appends what is known about @p address, as prb_line_table_find(); nothing, or an entry without
 * names, if nothing is known. Other errors than PRB_ERROR_NOMEM mean that the source is of no more
 * use; those of a child are those of prb_jail_ask().
 */
struct prb_error *prb_line_source_find(struct prb_line_source *source, uint64_t address,
				       struct prb_lines *ret) PRB_MUST_CHECK;

/** Gives the runs of prb_line_runs_make(), without names of symbols. */
struct prb_error *prb_line_source_runs(struct prb_line_source *source, uint64_t start,
				       uint32_t size, uint32_t step,
				       struct prb_str *ret) PRB_MUST_CHECK;

#endif
