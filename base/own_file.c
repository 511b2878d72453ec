/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

int prb_own_folder_open(const char *path, uid_t uid)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || st.st_uid != uid || (st.st_mode & 022)) {
		errno = EPERM;
		return -1;
	}
	return prb_steal_fd(&fd);
}

/** A home that is not ours (kept by sudo, shared by a container) stays as it is. */
static bool is_own(const char *path)
{
	struct stat st;

	return !stat(path, &st) && st.st_uid == geteuid();
}

/** Folders may be added to our own, and to one like /tmp, where ours stay ours. */
static bool may_add_to(const char *path)
{
	struct stat st;

	return !stat(path, &st) &&
	       (st.st_uid == geteuid() || (st.st_mode & (S_ISVTX | 02)) == (S_ISVTX | 02));
}

/** Makes @p path with all that leads to it, as the XDG base folders are to be treated. */
static void make_folders(const char *path)
{
	prb_auto_free char *part = strdup(path);

	for (char *end = part; end && *end;) {
		prb_auto_free char *parent = strndup(path, (size_t)(end - part) + 1);

		end = strchrnul(end + 1, '/');
		*end = '\0';
		if (access(part, F_OK) && (!parent || !may_add_to(parent) || mkdir(part, 0700)))
			return;
		*end = path[end - part];
	}
}

/** Makes @p path, whose first @p base bytes are a folder that exists. */
static void make_below(char *path, size_t base)
{
	for (char *end = strchr(path + base + 1, '/'); end; end = strchr(end + 1, '/')) {
		*end = '\0';
		mkdir(path, 0700);
		*end = '/';
	}
	mkdir(path, 0700);
}

int prb_own_folder_make(const char *base, const char *middle, bool make)
{
	prb_auto_free char *path = prb_format("%s%s/probing", base, middle);

	if (!path)
		errno = ENOMEM;
	else if (base[0] != '/')
		errno = EINVAL;
	if (!path || base[0] != '/')
		return -1;

	int fd = prb_own_folder_open(path, geteuid());
	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (make)
		make_folders(base);
	if (!is_own(base)) {
		errno = EPERM;
		return -1;
	}
	make_below(path, strlen(base));
	return prb_own_folder_open(path, geteuid());
}

static int open_run_folder(uid_t uid, bool runtime, bool make, char **ret_path)
{
	const char *said = getenv("XDG_RUNTIME_DIR");
	bool ours = uid == geteuid() && said && *said == '/';
	prb_auto_free char *path = NULL;
	int fd;

	if (runtime)
		path = ours ? prb_format("%s/probing", said)
			    : prb_format("/run/user/%u/probing", (unsigned)uid);
	else
		path = prb_format("/tmp/probing-%u", (unsigned)uid);
	if (!path)
		return -1;
	if (make && (!runtime || ours))
		mkdir(path, 0700);
	fd = prb_own_folder_open(path, uid);
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
