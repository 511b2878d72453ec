/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Files as SQLite sees them while a recording is read: the database, and nothing beside it.
 *
 * SQLite would open any file in place of a journal, even a pipe that blocks it for good. recover.c
 * reads journals.
 *
 * Threading: any thread. Internal to profile/store/load/.
 */
#ifndef PRB_PROFILE_STORE_LOAD_SQLITE_FILES_H
#define PRB_PROFILE_STORE_LOAD_SQLITE_FILES_H

/** The name to open a database with; NULL when out of memory. */
const char *prb_load_vfs(void);

#endif
