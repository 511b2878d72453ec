/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/own_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/str.h"
#include "base/way.h"

static int open_folder(int folder, const char *name, uid_t uid, unsigned how)
{
	int fd = prb_way_open_own(folder, name, uid, how);

	if (fd >= 0)
		return fd;
	errno = -fd;
	return -1;
}

int prb_own_folder_open(const char *path, uid_t uid)
{
	return open_folder(AT_FDCWD, path, uid, 0);
}

/** Makes a folder with exactly this mode. A folder that exists keeps its mode. */
static void make_one(int folder, const char *name, mode_t mode)
{
	if (!mkdirat(folder, name, mode) && mode != 0700)
		fchmodat(folder, name, mode, 0);
}

int prb_own_folder_in(int folder, const char *name, mode_t mode)
{
	make_one(folder, name, mode);
	return open_folder(folder, name, geteuid(), 0);
}

struct prb_error *prb_own_folder_error(const char *path, uid_t uid)
{
	const char *what = "is no folder";
	struct stat st;

	PRB_TRY(prb_new_file_check_way(path));
	if (lstat(path, &st))
		return prb_error_os(errno, "cannot use %.400s", path);
	if (st.st_uid != uid)
		return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
						       "%.400s belongs to user %u", path,
						       (unsigned)st.st_uid),
				      "give a folder of your own that nobody else may write to");
	if (S_ISLNK(st.st_mode))
		what = "is a symbolic link";
	else if (S_ISDIR(st.st_mode) && (st.st_mode & 022))
		what = "is a folder that others may write to";
	else if (S_ISDIR(st.st_mode))
		what = "cannot be read";
	return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION, "%.400s %s", path, what),
			      "give a folder of your own that nobody else may write to");
}

struct prb_error *prb_own_folder_named(const char *path, int *ret)
{
	PRB_TRY(prb_new_file_check_way(path));
	/* Links of our own are followed, as for files. */
	prb_auto_free char *real = realpath(path, NULL);

	if (!real && errno != ENOENT)
		return prb_error_os(errno, "cannot use %.400s", path);
	*ret = open_folder(AT_FDCWD, real ? real : path, geteuid(), real ? 0 : PRB_WAY_MAKE_LAST);
	if (*ret >= 0)
		return NULL;
	return real || errno == EPERM ? prb_own_folder_error(real ? real : path, geteuid())
				      : prb_new_file_error(errno, path);
}

/** Below @p base, if that is ours: a home that is not (kept by sudo, shared by a container) stays
 * as it is. */
static int make_below(const char *base, const char *below, bool make)
{
	prb_auto_close int at =
		prb_way_open(AT_FDCWD, base, geteuid(), PRB_WAY_FOLLOW | (make ? PRB_WAY_MAKE : 0));
	struct stat st;

	if (at < 0 || fstat(at, &st) || st.st_uid != geteuid()) {
		errno = at < 0 ? -at : EPERM;
		return -1;
	}
	return open_folder(at, below, geteuid(), PRB_WAY_MAKE);
}

int prb_own_folder_make(const char *base, const char *middle, bool make)
{
	prb_auto_free char *below = prb_format("%s/probing", middle);
	prb_auto_free char *path = below ? prb_format("%s%s", base, below) : NULL;
	int fd;

	if (!path || base[0] != '/') {
		errno = path ? EINVAL : ENOMEM;
		return -1;
	}
	fd = prb_own_folder_open(path, geteuid());
	return fd >= 0 || errno != ENOENT ? fd : make_below(base, below + 1, make);
}

bool prb_tmp_folder_parse(const char *name, uid_t *ret)
{
	unsigned uid;
	int end = 0;

	if (sscanf(name, "probing-%10u%n", &uid, &end) != 1 || (name[end] && name[end] != '.'))
		return false;
	*ret = uid;
	return true;
}

struct prb_error *prb_tmp_folder_taken(uid_t uid)
{
	prb_auto_free char *path = prb_format("/tmp/probing-%u", (unsigned)uid);
	prb_auto_close int fd = path ? prb_own_folder_open(path, uid) : -1;

	if (!path)
		return prb_error_nomem();
	return fd >= 0 || errno == ENOENT ? NULL : prb_own_folder_error(path, uid);
}

/** The first name in /tmp, as names are sorted, of a folder of @p uid. */
static int find_in_tmp(uid_t uid, char **ret_path)
{
	prb_auto_closedir DIR *folder = opendir("/tmp");
	prb_auto_close int found = -1;
	char best[64] = "";
	struct dirent *entry;
	uid_t other;

	while (folder && (entry = readdir(folder))) {
		size_t size = strlen(entry->d_name) + 1;
		int fd;

		if (!prb_tmp_folder_parse(entry->d_name, &other) || other != uid ||
		    size > sizeof(best) || (*best && strcmp(entry->d_name, best) > 0))
			continue;
		fd = open_folder(dirfd(folder), entry->d_name, uid, 0);
		if (fd < 0)
			continue;
		prb_close_guard(&found);
		found = fd;
		memcpy(best, entry->d_name, size);
	}
	if (found < 0)
		errno = EPERM;
	else
		*ret_path = prb_format("/tmp/%s", best);
	return found < 0 || !*ret_path ? -1 : prb_steal_fd(&found);
}

/** Makes a folder with an unpredictable name. */
static int make_in_tmp(char **ret_path)
{
	enum { TRIES = 16 };

	for (int i = 0; i < TRIES; i++) {
		prb_auto_free char *path = NULL;
		uint32_t number = (uint32_t)i;

		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
			number += (uint32_t)getpid() * TRIES;
		path = prb_format("/tmp/probing-%u.%08x", (unsigned)geteuid(), (unsigned)number);
		if (!path)
			return -1;
		if (!mkdir(path, 0700)) {
			*ret_path = prb_steal(&path);
			return prb_own_folder_open(*ret_path, geteuid());
		}
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

int prb_tmp_folder_open(uid_t uid, bool make, char **ret_path)
{
	prb_auto_free char *path = prb_format("/tmp/probing-%u", (unsigned)uid);
	int fd;

	if (!path)
		return -1;
	if (make)
		mkdir(path, 0700);
	fd = prb_own_folder_open(path, uid);
	if (fd >= 0 || errno == ENOENT) {
		*ret_path = prb_steal(&path);
		return fd;
	}
	fd = find_in_tmp(uid, ret_path);
	if (fd >= 0 || !make)
		return fd;
	return make_in_tmp(ret_path);
}

static int open_run_folder(uid_t uid, bool runtime, bool make, char **ret_path)
{
	const char *said = getenv("XDG_RUNTIME_DIR");
	bool ours = uid == geteuid() && said && *said == '/';
	prb_auto_free char *path = NULL;
	int fd;

	if (!runtime) {
		fd = prb_tmp_folder_open(uid, make, &path);
		if (fd >= 0 && ret_path)
			*ret_path = prb_steal(&path);
		return fd;
	}
	path = ours ? prb_format("%s/probing", said)
		    : prb_format("/run/user/%u/probing", (unsigned)uid);
	if (!path)
		return -1;
	fd = open_folder(AT_FDCWD, path, uid, make && ours ? PRB_WAY_MAKE_LAST : 0);
	if (fd >= 0 && ret_path)
		*ret_path = prb_steal(&path);
	return fd;
}

int prb_run_folder_open(uid_t uid, bool runtime, char **ret_path)
{
	return open_run_folder(uid, runtime, false, ret_path);
}

int prb_run_folder_make(char **ret_path)
{
	int fd = open_run_folder(geteuid(), true, true, ret_path);

	return fd >= 0 ? fd : open_run_folder(geteuid(), false, true, ret_path);
}

int prb_own_file_open(int folder, const char *name, int flags, uid_t uid, uint64_t *ret_size)
{
	prb_auto_close int fd =
		openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != uid || st.st_size < 0) {
		errno = EPERM;
		return -1;
	}
	*ret_size = (uint64_t)st.st_size;
	return prb_steal_fd(&fd);
}

int prb_own_file_use(int folder, const char *name, int flags, uint64_t *ret_size)
{
	return prb_own_file_open(folder, name, flags | O_CREAT, geteuid(), ret_size);
}

int prb_own_file_new(int folder, const char *name, int flags, mode_t mode)
{
	return openat(folder, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

int prb_own_file_rename(int folder, const char *from, const char *to, bool keep)
{
	return keep ? renameat2(folder, from, folder, to, RENAME_NOREPLACE)
		    : renameat(folder, from, folder, to);
}
