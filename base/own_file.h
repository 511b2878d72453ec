/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Folders and files that belong to one user, and that no other user can put anything into.
 *
 * All functions return a descriptor, or -1 with errno set: EPERM if the folder or file is another
 * user's, or others may write to it. Symbolic links in the last component are never followed,
 * and none of another user on the way (base/way.h).
 */
#ifndef PRB_BASE_OWN_FILE_H
#define PRB_BASE_OWN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/** Opens a folder of @p uid that no other user may write to. */
int prb_own_folder_open(const char *path, uid_t uid);

/** The same for a folder of ours that the user names: makes it, mode 0700, if it is missing, and
 * says what is wrong with it. A folder that is there keeps its mode. */
struct prb_error *prb_own_folder_named(const char *path, int *ret) PRB_MUST_CHECK;

/** Opens the folder @p name in @p folder, both ours alone, and makes it if it is missing. */
int prb_own_folder_in(int folder, const char *name, mode_t mode);

/** Why @p path cannot be used as a folder of @p uid: "/tmp/x belongs to user 2001". */
struct prb_error *prb_own_folder_error(const char *path, uid_t uid) PRB_MUST_CHECK;

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

/**
 * Opens /tmp/probing-UID; where another user has taken that name it is /tmp/probing-UID.NUMBER, as
 * in the agent (agent/inside/own_folder.h): the first folder that is @p uid's, or with @p make a
 * new one. *ret_path is the caller's.
 */
int prb_tmp_folder_open(uid_t uid, bool make, char **ret_path);
/** For a warning: "/tmp/probing-0 belongs to user 2001". NULL if the usual folder is free or ours.
 */
struct prb_error *prb_tmp_folder_taken(uid_t uid) PRB_MUST_CHECK;
/** Parses the owner from a name in /tmp: "probing-UID" or "probing-UID.NUMBER". */
bool prb_tmp_folder_parse(const char *name, uid_t *ret);

/** Opens a regular file of @p uid. Never waits for the other end of a pipe. */
int prb_own_file_open(int folder, const char *name, int flags, uid_t uid, uint64_t *ret_size);

/** As above, for a file of ours, made with mode 0600 if it is missing. */
int prb_own_file_use(int folder, const char *name, int flags, uint64_t *ret_size);

/** Makes a file that is not there yet. */
int prb_own_file_new(int folder, const char *name, int flags, mode_t mode);

/** Gives a file of a folder of ours another name; with @p keep it is EEXIST if that is taken. */
int prb_own_file_rename(int folder, const char *from, const char *to, bool keep);

#endif
