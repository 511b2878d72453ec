/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The answers for all addresses of one function, as runs of addresses with the same answer;
 * Internal to dwarf/lines/.
 *
 * Where a thread is executing differs from one dump to the next, while return addresses come
 * again and again. So a function that was caught executing is resolved whole, once, and no debug
 * information has to be opened for it again.
 *
 * In the cache: for each run the number of its bytes and the length of its record (4 bytes each,
 * little endian), then the record (record.h).
 */
#ifndef PRB_DWARF_LINES_RUNS_H
#define PRB_DWARF_LINES_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

/** Gives the record for an address into the (empty) @p ret. */
typedef struct prb_error *prb_line_record_of(void *context, uint64_t address, struct prb_str *ret);

/**
 * Puts the runs of the @p size bytes from @p start, asking for every @p step bytes, into the empty
 * @p ret; nothing if they are longer than the cache takes.
 */
struct prb_error *prb_line_runs_make(uint64_t start, uint64_t size, unsigned step,
				     prb_line_record_of *record_of, void *context,
				     struct prb_str *ret) PRB_MUST_CHECK;

/** Makes another record of one: appends it to the (empty) @p ret. */
typedef struct prb_error *prb_line_record_change(void *context, const void *record, size_t length,
						 struct prb_str *ret);

/**
 * Puts @p runs with their records changed into the empty @p ret; nothing if that is longer than the
 * cache takes. PRB_ERROR_BAD_DATA if they make no sense, or are not of @p size bytes together.
 */
struct prb_error *prb_line_runs_change(const void *runs, size_t length, uint64_t size,
				       prb_line_record_change *change, void *context,
				       struct prb_str *ret) PRB_MUST_CHECK;

/** The record for the address @p offset bytes into the function; false if none covers it. */
bool prb_line_runs_find(const void *runs, size_t length, uint64_t offset, const void **record,
			size_t *record_length);

#endif
