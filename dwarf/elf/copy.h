/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A copy of a file that another process may change or truncate at any moment.
 *
 * A mapping of such a file would end us by SIGBUS when it becomes shorter. So there is room for
 * the whole file in our memory, and the parts that are asked for are read into it, once each.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_DWARF_ELF_COPY_H
#define PRB_DWARF_ELF_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct prb_copy {
	int fd;	       /**< borrowed */
	uint8_t *room; /**< zero where nothing was read; NULL: there is none */
	uint64_t size; /**< of the file when it was opened */
	uint64_t copied;
	uint8_t *have; /**< a byte for each chunk, 1 if it was read */
};

/** PRB_ERROR_UNSUPPORTED if the file is too large, or there is no room for it. */
struct prb_error *prb_copy_init(int fd, const char *name, struct prb_copy *ret) PRB_MUST_CHECK;
void prb_copy_deinit(struct prb_copy *copy);

/** Reads a part, which lies inside; false if it is not there any more, or is one too many. */
bool prb_copy_need(struct prb_copy *copy, uint64_t offset, uint64_t length);

#endif
