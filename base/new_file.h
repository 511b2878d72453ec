/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A file that is there whole, or not at all: it gets its name when all of it is written.
 *
 *     prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
 *     PRB_TRY(prb_new_file_open(&file, path));
 *     … write to file.fd …
 *     PRB_TRY(prb_new_file_finish(&file));
 */
#ifndef PRB_BASE_NEW_FILE_H
#define PRB_BASE_NEW_FILE_H

#include <stdbool.h>

#include "base/error.h"

struct prb_new_file {
	char *path;	 /**< what it will be called, behind symbolic links */
	char *temporary; /**< what it is called until then; NULL once it is finished */
	int fd;
	/** Set before it is opened, for names that the user did not choose: a symbolic link of that
	 * name is replaced, not followed. */
	bool replaces_links;
};
#define PRB_NO_FILE      \
	{                \
		.fd = -1 \
	}

/**
 * Makes it beside the place of @p path, mode 0600. PRB_ERROR_USAGE if there is something there
 * that is not a regular file; PRB_ERROR_PERMISSION if a link on the way is neither ours nor root's.
 */
struct prb_error *prb_new_file_open(struct prb_new_file *file, const char *path) PRB_MUST_CHECK;

/** It will be called @p path, in the same folder, instead. */
struct prb_error *prb_new_file_rename(struct prb_new_file *file, const char *path) PRB_MUST_CHECK;

/** Makes sure that it is written, and gives it its name. */
struct prb_error *prb_new_file_finish(struct prb_new_file *file) PRB_MUST_CHECK;

/** Ends it; one that is not finished goes away. */
void prb_new_file_deinit(struct prb_new_file *file);
#define prb_auto_new_file __attribute__((cleanup(prb_new_file_deinit)))

#endif
