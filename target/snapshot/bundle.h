/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A bundle: snapshots of the ranks of a job, and what was seen of them, in one file.
 *
 * The file is a tar archive (POSIX ustar), so that any tar shows what is in it and takes one
 * snapshot out; we read its members where they lie and never extract them. Members have these
 * names only: "probing-bundle", which comes first and holds the format's number,
 * "rank-N.snapshot", and "looks-N.json", what one host has seen of its ranks.
 *
 * A reader treats a bundle as hostile: a member of another name or kind, one that comes twice, a
 * wrong checksum, a size beyond the end of the file, or no end at all is PRB_ERROR_BAD_DATA. Names
 * of members are never used as paths.
 *
 * Threading: a bundle is read-only once it is open.
 */
#ifndef PRB_TARGET_SNAPSHOT_BUNDLE_H
#define PRB_TARGET_SNAPSHOT_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"

enum prb_bundle_kind { PRB_BUNDLE_SNAPSHOT, PRB_BUNDLE_LOOKS };

struct prb_bundle_member {
	enum prb_bundle_kind kind;
	long number;	 /**< the N in its name */
	uint64_t offset; /**< in the file */
	uint64_t size;
};

struct prb_bundle {
	int fd;					   /**< owned */
	char *path;				   /**< for messages */
	PRB_VEC(struct prb_bundle_member) members; /**< by kind, then number */
};

/** Members of a bundle, at most. */
enum { PRB_BUNDLE_MAX_MEMBERS = 1 << 17 };

/** True if the file begins like a bundle: one read of a block. */
bool prb_bundle_probe(const char *path);

/** Opens and checks the bundle at @p path. */
struct prb_error *prb_bundle_open(const char *path, struct prb_bundle *ret) PRB_MUST_CHECK;

/** As above, for an open file, which it takes over, also when it fails. */
struct prb_error *prb_bundle_read(int fd, const char *name, struct prb_bundle *ret) PRB_MUST_CHECK;

void prb_bundle_deinit(struct prb_bundle *bundle);
#define PRB_NO_BUNDLE       \
	(struct prb_bundle) \
	{                   \
		.fd = -1    \
	}
#define prb_auto_bundle __attribute__((cleanup(prb_bundle_deinit)))

/** The member, or NULL. */
const struct prb_bundle_member *prb_bundle_find(const struct prb_bundle *bundle,
						enum prb_bundle_kind kind, long number);

/** Opens the snapshot of a rank as a target. */
struct prb_error *prb_bundle_target(const struct prb_bundle *bundle,
				    const struct prb_bundle_member *member,
				    struct prb_target **ret) PRB_MUST_CHECK;

/**
 * "hang.probing/37": sets *rank, and *path to the part before the slash, for the caller to free, if
 * that is a bundle; *path is NULL otherwise.
 */
struct prb_error *prb_bundle_divide(const char *text, char **path, long *rank) PRB_MUST_CHECK;

/* Writing: begin, add each member, end. The file is written in one go, and need not be seekable. */

struct prb_error *prb_bundle_begin(int fd) PRB_MUST_CHECK;

/** Copies @p size bytes of @p from, beginning at @p offset. */
struct prb_error *prb_bundle_add(int fd, enum prb_bundle_kind kind, long number, int from,
				 uint64_t offset, uint64_t size) PRB_MUST_CHECK;

/** As above, for a text. */
struct prb_error *prb_bundle_add_text(int fd, enum prb_bundle_kind kind, long number,
				      const char *text, size_t length) PRB_MUST_CHECK;

struct prb_error *prb_bundle_end(int fd) PRB_MUST_CHECK;

#endif
