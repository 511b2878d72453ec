/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The only place that starts programs: this one again, one found in $PATH, or one that the
 * user typed. The current folder is never searched: it may belong to another user. words.h builds
 * the arguments, and refuses to pass an untrusted name as an option. Errors are numbers of errno.h.
 * Any thread may call all of it.
 */
#ifndef PRB_COMMAND_START_H
#define PRB_COMMAND_START_H

#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * The path of a program: the first file that may be run in a folder of $PATH. Folders without a
 * whole path are left out. A name with a slash is a path already. Free it; NULL: see errno.
 */
char *prb_start_find(const char *name);

/** Becomes the program @p words[0], found as above; the number of the error if it cannot. */
int prb_start_become(char *const *words);

/** Becomes the program at a path; in a child that shares our memory, too. NULL: this program. */
int prb_start_become_at(const char *path, char *const *words);

/** Becomes what the user typed as a command line, as a shell would find it. */
int prb_start_become_typed(char *const *words);

/**
 * Starts a child with the given @p actions on its descriptors: @p words[0], found as above, or this
 * program if @p itself. The caller waits for *ret.
 */
int prb_start_child(char *const *words, bool itself, const posix_spawn_file_actions_t *actions,
		    pid_t *ret);

#endif
