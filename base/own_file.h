/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Folders and files that belong to one user, and that nobody else can put anything into.
 *
 * All functions return a descriptor, or -1 with errno set: EPERM if the folder or file is another
 * user's, or others may write to it. Symbolic links in the last component are never followed.
 */
#ifndef PRB_BASE_OWN_FILE_H
#define PRB_BASE_OWN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Opens a folder of @p uid that nobody else may write to. */
int prb_own_folder_open(const char *path, uid_t uid);

/**
 * Opens our folder "@p base@p middle/probing", and makes what is missing of it with mode 0700 if
 * @p base is ours. @p middle is "" or begins with a slash. @p make: makes @p base too.
 */
int prb_own_folder_make(const char *base, const char *middle, bool make);

/**
 * Opens the folder for what runs now, of @p uid: with @p runtime $XDG_RUNTIME_DIR/probing, or
 * /run/user/UID/probing for another user; else /tmp/probing-UID. *ret_path, unless it is NULL, is
 * the caller's.
 */
int prb_run_folder_open(uid_t uid, bool runtime, char **ret_path);
/** The first of the two that is ours, made where it is missing. */
int prb_run_folder_make(char **ret_path);

/** Opens a regular file of @p uid. Never waits for the other end of a pipe. */
int prb_own_file_open(int folder, const char *name, int flags, uid_t uid, uint64_t *ret_size);

#endif
