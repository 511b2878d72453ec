/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A new file below the root of a target, made with the rights of the target's user.
 *
 * The target's user decides what lies below that root. So no symbolic link on the way is followed,
 * and the file belongs to that user: we reach nothing that the target could not reach itself.
 *
 * Threading: as target/proc/rights.h.
 */
#ifndef PRB_INJECTOR_TARGET_COPY_H
#define PRB_INJECTOR_TARGET_COPY_H

#include "base/error.h"
#include "target/proc/rights.h"
#include "target/target.h"

struct prb_target_copy {
	char path[64]; /**< as the target sees it */
	int fd;	       /**< open for writing; the caller may close it before, and set it to -1 */
	int folder;
	const char *name;	  /**< the last part of `path`; NULL: there is no file */
	struct prb_rights rights; /**< of the target's user */
};
#define PRB_NO_TARGET_COPY             \
	{                              \
		.fd = -1, .folder = -1 \
	}

/**
 * Makes an empty file, mode 0700, in @p folder of the target: an absolute path of at most 40
 * bytes. Fails where a part of the path is a symbolic link, the target's user may not write,
 * or other users may replace files.
 */
struct prb_error *prb_target_copy_create(struct prb_target *t, const char *folder,
					 struct prb_target_copy *ret) PRB_MUST_CHECK;

/** Removes the file, if there is one. */
void prb_target_copy_remove(struct prb_target_copy *copy);
#define prb_auto_target_copy __attribute__((cleanup(prb_target_copy_remove)))

#endif
