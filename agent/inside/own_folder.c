/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/way.h"
#include "agent/inside/folder_entry.h"
#include "agent/inside/libc.h"

enum {
	TRIES = 16,
	BUFFER = 1 << 14,
	NOBODY = 65534, /* what a user namespace shows all users as that it has no number for */
};

/** Where all users look like one, only the kernel can tell whose it is. */
static bool is_ours(int fd)
{
	return geteuid() != NOBODY || !syscall(SYS_faccessat, fd, ".", W_OK | X_OK);
}

int prba_own_folder(int at, const char *name, bool make)
{
	int fd = prb_way_open_own(at, name, geteuid(), make ? PRB_WAY_MAKE_LAST : 0);

	if (fd < 0 || is_ours(fd))
		return fd;
	close(fd);
	return -EPERM;
}

/** The first name in /tmp, as names are sorted, that begins so and is a folder of ours. */
static int find_first(const char *begin, char *path, size_t size)
{
	char buffer[BUFFER] __attribute__((aligned(8)));
	int found = -ENOENT, tmp = openat(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char best[64] = "";
	long length;

	while (tmp >= 0 && (length = syscall(SYS_getdents64, tmp, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < length;) {
			const struct prba_folder_entry *entry = (const void *)(buffer + at);
			int fd;

			at += entry->length;
			if (strncmp(entry->name, begin, strlen(begin)) != 0 ||
			    strlen(entry->name) >= sizeof(best) ||
			    (*best && strcmp(entry->name, best) > 0))
				continue;
			fd = prba_own_folder(tmp, entry->name, false);
			if (fd < 0)
				continue;
			if (found >= 0)
				close(found);
			found = fd;
			snprintf(best, sizeof(best), "%s", entry->name);
		}
	}
	if (tmp >= 0)
		close(tmp);
	if (found >= 0)
		snprintf(path, size, "/tmp/%s", best);
	return found;
}

/** Makes a folder with an unpredictable name. */
static int make_fresh(const char *begin, char *path, size_t size)
{
	int fd = -EEXIST;

	for (int i = 0; i < TRIES && fd == -EEXIST; i++) {
		uint64_t number = 0;

		if (syscall(SYS_getrandom, &number, sizeof(number), GRND_NONBLOCK) !=
		    sizeof(number))
			number = (uint64_t)prba_now_ms() + (uint64_t)i;
		snprintf(path, size, "/tmp/%s%08x", begin, (unsigned)number);
		fd = syscall(SYS_mkdirat, AT_FDCWD, path, 0700) ? -errno : 0;
	}
	return fd ? fd : prba_own_folder(AT_FDCWD, path, false);
}

int prba_tmp_folder(char *path, size_t size)
{
	char begin[48];
	int fd;

	snprintf(begin, sizeof(begin), "probing-%u.", (unsigned)geteuid());
	snprintf(path, size, "/tmp/probing-%u", (unsigned)geteuid());
	fd = prba_own_folder(AT_FDCWD, path, true);
	/* Of another user, or no folder; else there is no room, or no right, for any. */
	if (fd != -EPERM && fd != -ENOTDIR && fd != -ELOOP && fd != -EACCES)
		return fd;
	fd = find_first(begin, path, size);
	return fd >= 0 ? fd : make_fresh(begin, path, size);
}

void prba_own_folder_why(const char *path, char *text, size_t size)
{
	int way = prb_way_open(AT_FDCWD, path, geteuid(), 0);
	struct stat st;

	if (way >= 0)
		close(way);
	if (way == -EPERM)
		snprintf(text, size, "a symbolic link of another user is on the way to %s", path);
	else if (syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW))
		snprintf(text, size, "%s: error %d", path, errno);
	else if (st.st_uid == geteuid() && st.st_uid == NOBODY && S_ISDIR(st.st_mode))
		snprintf(text, size, "%s belongs to another user that has no number here", path);
	else if (st.st_uid != geteuid())
		snprintf(text, size, "%s belongs to user %u", path, (unsigned)st.st_uid);
	else if (!S_ISDIR(st.st_mode))
		snprintf(text, size, "%s is no folder", path);
	else
		snprintf(text, size, "others may write to %s (mode %o)", path,
			 (unsigned)st.st_mode & 07777);
}
