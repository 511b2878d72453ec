/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Folders in which the process itself puts files: its rings, its socket, its crash records. A
 * folder is used if it is the process's user's and no other user may write to it. Missing folders
 * are made with mode 0700; existing ones keep their mode. base/own_file.h is the same for readers.
 *
 * For a healthy process: uses the C library. Errors: negative errno values.
 */
#ifndef PRB_AGENT_INSIDE_OWN_FOLDER_H
#define PRB_AGENT_INSIDE_OWN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Opens the folder @p name below @p at; @p make: makes it. -EPERM: it is another user's, or others
 * may write to it. No link is followed in the last part, and none
 * of another user on the way (base/way.h).
 */
int prba_own_folder(int at, const char *name, bool make);

/**
 * Opens /tmp/probing-UID, made if need be, and gives its path. Where another user has taken that
 * name it is /tmp/probing-UID.NUMBER: the first that is ours, or a new one.
 */
int prba_tmp_folder(char *path, size_t size);

/** Says why a folder cannot be used: "/tmp/x belongs to user 2001". */
void prba_own_folder_why(const char *path, char *text, size_t size);

#endif
