/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The rings of a target: rings that a live process has mapped, rings in the folder that it
 * left behind, or the ring that the target itself is; and the cold files (rings/cold.h) beside
 * them, each of them before its ring.
 *
 * A live process's map shows exactly which rings it writes to, whatever its environment says now,
 * also in a container and after the files were removed. The files are opened with the rights of its
 * user (target/target_process.c), or, in a folder, only if they belong to the folder's owner.
 *
 * Threading: one thread at a time per target. Ownership: the list and its files are the caller's.
 */
#ifndef PRB_RINGS_FILES_H
#define PRB_RINGS_FILES_H

#include "base/error.h"
#include "base/vec.h"
#include "rings/ring.h"
#include "target/target.h"

struct prb_ring_file {
	int fd; /**< -1 once prb_ring_files_open() has taken it */
	char *path;
};

/** How far the cold files of a ring reach. */
struct prb_ring_stored {
	struct prb_ring_header header;
	uint64_t next;			    /**< number behind the last chunk */
	PRB_VEC(struct prb_ring_span) gaps; /**< ascending: what no file has before that */
};

struct prb_ring_files {
	PRB_VEC(struct prb_ring_stored) stored;
	PRB_VEC(struct prb_ring_file) list;
	/** Of a live process: its pid as it sees it, by which its rows in a parent's ring are
	 * known. 0: all rows are its own. */
	uint32_t pid;
	unsigned unreadable; /**< rings that could not be opened */
	char *why;	     /**< of the first of them, or NULL */
};

/** Finds them; none is no error. */
struct prb_error *prb_ring_files_find(struct prb_target *target,
				      struct prb_ring_files *ret) PRB_MUST_CHECK;
void prb_ring_files_deinit(struct prb_ring_files *files);

/**
 * Opens number @p index as a ring, once. Chunks of a cold file that was read to its end, as
 * reported to prb_ring_files_ended(), are left out.
 */
struct prb_error *prb_ring_files_open(struct prb_ring_files *files, size_t index,
				      struct prb_ring **ret) PRB_MUST_CHECK;

/** @p ring was read to its end. */
struct prb_error *prb_ring_files_ended(struct prb_ring_files *files,
				       const struct prb_ring *ring) PRB_MUST_CHECK;

/** True if the process @p files are of sees only rows of its own pid in @p ring: a parent's. */
static inline bool prb_ring_files_foreign(const struct prb_ring_files *files,
					  const struct prb_ring *ring)
{
	return files->pid && ring->header.pid != files->pid;
}

#endif
