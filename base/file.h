/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Opening files whose names other people chose: files that a target or a core file maps or
 * names, debug files.
 *
 * Such a name may lead to a device, a FIFO or a symbolic link. So a file is first found without
 * being opened (O_PATH), its type is looked at, and only a regular file is opened, without
 * blocking. The caller chooses whose rights apply: see target/proc/rights.h.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_BASE_FILE_H
#define PRB_BASE_FILE_H

#include <stdbool.h>

#include "base/error.h"

/**
 * Opens the regular file at @p path for reading. @p root: a descriptor of the folder that is the
 * root for @p path and for all symbolic links on the way; -1: our own root. Links of /proc to what
 * processes have open are not followed below another root. PRB_ERROR_NOT_FOUND if there is no such
 * file, PRB_ERROR_UNSUPPORTED if it is not a regular file.
 */
struct prb_error *prb_file_open(int root, const char *path, int *ret_fd) PRB_MUST_CHECK;

/** Opens what @p place, a descriptor made with O_PATH, stands for; @p path is for messages. */
struct prb_error *prb_file_open_found(int place, const char *path, int *ret_fd) PRB_MUST_CHECK;

/**
 * True if only root and our user can change the file that is open at @p fd. A file of root counts
 * if @p path leads to it in our own mount namespace too, on a file system that only root can have
 * mounted: what a container shows as the file of root may be another user's.
 */
bool prb_file_is_safe(int fd, const char *path);

#endif
