/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A file of this machine in place of one that was mapped in a target that is only a file
 * itself (core, snapshot): it is used only if it is the same build.
 *
 * Compared are the build-ids and, where one side has none, the ELF headers, which lie at the start
 * of the mapping. Both sides are hostile.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_TARGET_MEM_LOCAL_FILE_H
#define PRB_TARGET_MEM_LOCAL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "target/mem/maps.h"
#include "target/mem/mem.h"
#include "target/proc/rights.h"

enum { PRB_BUILD_ID_MAX = 64 /**< bytes; real ones have 20, 16 or 8 */ };

struct prb_build_id {
	size_t length; /**< 0: none */
	unsigned char bytes[PRB_BUILD_ID_MAX];
};

struct prb_local_file {
	const char *path;
	struct prb_mem *mem; /**< the target's, without falling back to files itself */
	uint64_t base;	     /**< where the first byte of the file is mapped in the target */
	/**
	 * When nothing can be compared, an ELF file last changed before this time (seconds since
	 * the epoch) is believed to be the one. 0: never.
	 */
	double believed_until;
	/** Of the user that chose the path; NULL: that is our own user. */
	const struct prb_rights *rights;
};

/** Build-id of the ELF file that @p mem holds at @p base; length 0 if unknown. */
void prb_build_id_in_memory(struct prb_mem *mem, uint64_t base, struct prb_build_id *ret);

/** Build-id of the ELF file @p fd; length 0 if it has none. */
void prb_build_id_of_file(int fd, struct prb_build_id *ret);

/** Where the first byte of the file behind @p map, an entry of @p maps, is mapped, if it is. */
bool prb_local_file_base(const struct prb_maps *maps, const struct prb_map *map, uint64_t *ret);

/**
 * Opens the file read-only if it is the one mapped; PRB_ERROR_NOT_FOUND if it is missing, another
 * one, or unverifiable.
 */
struct prb_error *prb_local_file_open(const struct prb_local_file *file,
				      int *ret_fd) PRB_MUST_CHECK;

#endif
