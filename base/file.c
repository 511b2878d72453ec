/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/str.h"

enum {
	TO_READ = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
	TO_FIND = O_PATH | O_CLOEXEC,

	MAX_DEPTH = 128, /* folders in a path */
	MAX_LINKS = 40,	 /* symbolic links on a path, like the kernel's limit */
	MAX_TRIES = 16,	 /* while folders are being renamed */
};

/* The kernel's headers have these since Linux 5.6 only. */
enum { NOSUID = 2 /* of statfs() */, OPENAT2 = 437, NO_MAGICLINKS = 0x02, IN_ROOT = 0x10 };
struct how {
	uint64_t flags, mode, resolve;
};

/** The folders from a root to where a walk has come. */
struct walk {
	int folders[MAX_DEPTH];
	size_t depth;
	unsigned links;
	char rest[2 * PATH_MAX]; /* of the path */
};

static void close_folders(struct walk *w, size_t depth)
{
	while (w->depth > depth)
		close(w->folders[--w->depth]);
}

static void walk_guard(struct walk *w)
{
	close_folders(w, 0);
}

/** Puts what the link at @p link says in front of the rest; false with errno if it is too much. */
static bool follow(struct walk *w, int link)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(link, "", target, sizeof(target));
	size_t left = strlen(w->rest) + 1;

	if (length < 0)
		return false;
	if (++w->links > MAX_LINKS || (size_t)length + 1 + left > sizeof(w->rest)) {
		errno = ELOOP;
		return false;
	}
	if (length && target[0] == '/')
		close_folders(w, 0);
	memmove(w->rest + length + 1, w->rest, left);
	memcpy(w->rest, target, (size_t)length);
	w->rest[length] = '/';
	return true;
}

/** Takes the first part off the rest; "" at the end. */
static bool next_part(struct walk *w, char part[NAME_MAX + 1])
{
	size_t blanks = strspn(w->rest, "/"), length = strcspn(w->rest + blanks, "/");

	if (length > NAME_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(part, w->rest + blanks, length);
	part[length] = '\0';
	memmove(w->rest, w->rest + blanks + length, strlen(w->rest + blanks + length) + 1);
	return true;
}

/** One part further; what it leads to is the innermost folder from then on. */
static bool step(struct walk *w, int root, const char *part)
{
	struct stat st;

	if (!strcmp(part, "."))
		return true;
	if (!strcmp(part, "..")) {
		close_folders(w, w->depth ? w->depth - 1 : 0);
		return true;
	}
	prb_auto_close int next =
		openat(w->depth ? w->folders[w->depth - 1] : root, part, TO_FIND | O_NOFOLLOW);
	if (next < 0 || fstat(next, &st))
		return false;
	if (S_ISLNK(st.st_mode))
		return follow(w, next);
	if (w->depth == MAX_DEPTH) {
		errno = ENAMETOOLONG;
		return false;
	}
	w->folders[w->depth++] = prb_steal_fd(&next);
	return true;
}

/** openat2() for kernels and seccomp filters without it. */
static int walk(int root, const char *path)
{
	__attribute__((cleanup(walk_guard))) struct walk w = {};
	char part[NAME_MAX + 1];

	if (!*path || strlen(path) >= PATH_MAX) {
		errno = *path ? ENAMETOOLONG : ENOENT;
		return -1;
	}
	strcpy(w.rest, path);
	do {
		if (!next_part(&w, part) || (*part && !step(&w, root, part)))
			return -1;
	} while (*part);
	if (w.depth)
		return prb_steal_fd(&w.folders[w.depth - 1]);
	return fcntl(root, F_DUPFD_CLOEXEC, 0);
}

/** A descriptor made with O_PATH, or -1 with errno. */
static int find(int root, const char *path)
{
	const struct how how = {.flags = TO_FIND, .resolve = IN_ROOT | NO_MAGICLINKS};
	long found = -1;

	if (root < 0)
		return open(path, TO_FIND);
	errno = EAGAIN;
	for (int i = 0; i < MAX_TRIES && found < 0 && errno == EAGAIN; i++)
		found = syscall(OPENAT2, root, path, &how, sizeof(how));
	if (found < 0 && (errno == ENOSYS || errno == EPERM))
		found = walk(root, path);
	return (int)found;
}

static struct prb_error *not_opened(const char *path, int os_errno)
{
	if (os_errno == ENOENT || os_errno == ENOTDIR)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s does not exist", path);
	return prb_error_os(os_errno, "cannot open %s", path);
}

/** Without /proc a file can only be opened by its name, and compared with what was found. */
static int open_named(const char *path, const struct stat *found)
{
	prb_auto_close int fd = open(path, TO_READ);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (st.st_dev == found->st_dev && st.st_ino == found->st_ino)
		return prb_steal_fd(&fd);
	errno = EAGAIN;
	return -1;
}

static struct prb_error *open_found(int place, const char *path, bool by_name, int *ret_fd)
{
	struct stat st;
	char link[32];

	if (fstat(place, &st))
		return not_opened(path, errno);
	if (!S_ISREG(st.st_mode))
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "%s is not a regular file", path);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	*ret_fd = open(link, TO_READ);
	if (*ret_fd < 0 && errno == ENOENT && by_name)
		*ret_fd = open_named(path, &st);
	return *ret_fd < 0 ? not_opened(path, errno) : NULL;
}

struct prb_error *prb_file_open_found(int place, const char *path, int *ret_fd)
{
	return open_found(place, path, false, ret_fd);
}

struct prb_error *prb_file_open(int root, const char *path, int *ret_fd)
{
	prb_auto_close int place = find(root, path);

	if (place < 0)
		return not_opened(path, errno);
	return open_found(place, path, root < 0, ret_fd);
}

/** A group that has the number of the user is that user's own, by the custom of distributions. */
static bool others_may_write(const struct stat *st)
{
	return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != st->st_uid);
}

bool prb_file_is_safe(int fd, const char *path)
{
	struct stat st, named;
	struct statfs fs;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || others_may_write(&st))
		return false;
	if (st.st_uid)
		return st.st_uid == geteuid();

	/* Users can mount disks and FUSE, with whatever owners they like, but only with "nosuid".
	 */
	prb_auto_close int place = path[0] == '/' ? open(path, TO_FIND) : -1;
	return place >= 0 && !fstat(place, &named) && named.st_dev == st.st_dev &&
	       named.st_ino == st.st_ino && !fstatfs(place, &fs) && !(fs.f_flags & NOSUID);
}
