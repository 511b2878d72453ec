/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/load/sqlite_files.h"

#include <sqlite3.h>
#include <stddef.h>

#define NAME "probing-recordings"

static sqlite3_vfs *parent_of(sqlite3_vfs *vfs)
{
	return vfs->pAppData;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
		     int *ret_flags)
{
	file->pMethods = NULL;
	return flags & SQLITE_OPEN_MAIN_DB
		       ? parent_of(vfs)->xOpen(parent_of(vfs), name, file, flags, ret_flags)
		       : SQLITE_CANTOPEN;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	(void)name;
	(void)sync;
	return SQLITE_IOERR_DELETE;
}

/* It asks for journals only. */
static int find_file(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
	(void)vfs;
	(void)name;
	(void)flags;
	*ret = 0;
	return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
	return parent_of(vfs)->xFullPathname(parent_of(vfs), name, size, ret);
}

const char *prb_load_vfs(void)
{
	static sqlite3_vfs vfs;
	sqlite3_vfs *parent = sqlite3_vfs_find(NULL);

	if (sqlite3_vfs_find(NAME))
		return NAME;
	if (!parent)
		return NULL;
	/* Randomness, sleeping and the clock ask nothing of the object that they belong to. */
	vfs = *parent;
	vfs.pNext = NULL;
	vfs.zName = NAME;
	vfs.pAppData = parent;
	vfs.xOpen = open_file;
	vfs.xDelete = delete_file;
	vfs.xAccess = find_file;
	vfs.xFullPathname = full_path;
	return sqlite3_vfs_register(&vfs, 0) ? NULL : NAME;
}
