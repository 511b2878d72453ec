/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A file that is there whole, or not at all: it gets its name when all of it is written.
 *
 *     prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
 *     PRB_TRY(prb_new_file_open(&file, path));
 *     … write to file.fd …
 *     PRB_TRY(prb_new_file_finish(&file));
 *
 * Whatever the program writes is made here, or in a folder of our own (base/own_file.h): a check of
 * tests/lint/lint.py finds other places.
 */
#ifndef PRB_BASE_NEW_FILE_H
#define PRB_BASE_NEW_FILE_H

#include <fcntl.h>
#include <stdbool.h>

#include "base/error.h"

/** Prefix of the names of unfinished files in a folder of ours. */
#define PRB_NEW_FILE_PREFIX ".new-"

struct prb_new_file {
	char *path;	 /**< what it will be called, behind symbolic links */
	char *temporary; /**< what it is called until then; NULL once it is finished */
	int fd;
	int folder; /**< that the two names are in, which is the caller's; or AT_FDCWD */
	/** Set before it is opened, for names that the user did not choose: a symbolic link of that
	 * name is replaced, not followed. */
	bool replaces_links;
};
#define PRB_NO_FILE                          \
	{                                    \
		.fd = -1, .folder = AT_FDCWD \
	}

/**
 * Makes it beside the place of @p path, mode 0600. PRB_ERROR_USAGE if there is something there
 * that is not a regular file; PRB_ERROR_PERMISSION if a link on the way is neither ours nor root's.
 */
struct prb_error *prb_new_file_open(struct prb_new_file *file, const char *path) PRB_MUST_CHECK;
/** The error of a file or folder that cannot be made there. */
struct prb_error *prb_new_file_error(int os_error, const char *path) PRB_MUST_CHECK;

/** Makes one called @p name in @p folder, which is ours alone; a link of that name is replaced. */
struct prb_error *prb_new_file_open_in(struct prb_new_file *file, int folder,
				       const char *name) PRB_MUST_CHECK;

/** It will be called @p path, in the same folder, instead. */
struct prb_error *prb_new_file_rename(struct prb_new_file *file, const char *path) PRB_MUST_CHECK;

/** Makes sure that it is written, and gives it its name. */
struct prb_error *prb_new_file_finish(struct prb_new_file *file) PRB_MUST_CHECK;

/** Only gives it its name: what is written to it may be lost when the machine stops. */
struct prb_error *prb_new_file_place(struct prb_new_file *file) PRB_MUST_CHECK;

/** Ends it; an unfinished file is removed. */
void prb_new_file_deinit(struct prb_new_file *file);
#define prb_auto_new_file __attribute__((cleanup(prb_new_file_deinit)))

/**
 * Checks the symbolic links on the way of a path that the user names: the last one, and those in a
 * folder that others may write to, have to be ours or root's. PRB_ERROR_PERMISSION else.
 */
struct prb_error *prb_new_file_check_way(const char *path) PRB_MUST_CHECK;

/** A file without a name in @p folder, which goes away with its descriptor; -1 with errno. */
int prb_nameless_file(const char *folder);

#endif
