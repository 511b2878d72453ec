/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The memory map of a target, parsed from the text of /proc/PID/maps (or what a core or a
 * snapshot gives in its place). Entries are sorted by address and do not overlap.
 */
#ifndef PRB_TARGET_MEM_MAPS_H
#define PRB_TARGET_MEM_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"

struct prb_map {
	uint64_t start, end; /**< [start, end) */
	uint64_t offset;     /**< of `start` in the file, bytes */
	uint64_t inode;	     /**< 0 for anonymous memory */
	uint32_t major, minor;
	bool read, write, exec, shared;
	bool deleted; /**< the file is gone; "(deleted)" is cut off the path */
	char *path;   /**< file path, "[heap]" and the like, or "" */
};

struct prb_maps {
	PRB_VEC(struct prb_map) list;
};

/** Parses @p text; lines that make no sense are PRB_ERROR_BAD_DATA with the line's number. */
struct prb_error *prb_maps_parse(const char *text, struct prb_maps *ret) PRB_MUST_CHECK;
void prb_maps_deinit(struct prb_maps *maps);

/** The entry that holds @p address, or NULL. */
const struct prb_map *prb_maps_find(const struct prb_maps *maps, uint64_t address);

#endif
