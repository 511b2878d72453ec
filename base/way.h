/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The way to a folder, which may lead through one like /tmp, where any user can put a
 * symbolic link: only links of root and of the folder's user are followed and, unless that is root,
 * of the only user that can write to the link's folder. So root uses and writes nothing behind a
 * link of another user. Each part is opened below the one before, also behind links, so nothing is
 * checked that is not used.
 *
 * Also for code in targets, and in one that crashes: nothing but system calls, by PRB_WAY_CALL,
 * which gives negative errno values.
 */
#ifndef PRB_BASE_WAY_H
#define PRB_BASE_WAY_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef PRB_WAY_CALL
static inline long prb_way_call(long rc)
{
	return rc < 0 ? -(long)errno : rc;
}
#define PRB_WAY_CALL(...) prb_way_call(syscall(__VA_ARGS__))
#endif

enum prb_way_how {
	PRB_WAY_FOLLOW = 1,    /**< the last part, too, may be a link */
	PRB_WAY_MAKE_LAST = 2, /**< makes the last part, mode 0700, if it is missing */
	PRB_WAY_MAKE = 4, /**< makes all that is missing, in folders of ours and ones like /tmp */
};

/** Not the one of a user namespace, to whom what the real one has is another's. */
static inline bool prb_way_is_root(uid_t uid)
{
	struct stat st = {};

	return !uid && !PRB_WAY_CALL(SYS_newfstatat, AT_FDCWD, "/", &st, 0) && !st.st_uid;
}

/** Whether a link that lies in the folder @p above is followed on the way to a folder of @p uid. */
static inline bool prb_way_may_follow(const struct stat *link, const struct stat *above, uid_t uid)
{
	return link->st_uid == uid || !link->st_uid ||
	       (above->st_uid == link->st_uid && !(above->st_mode & 022) && !prb_way_is_root(uid));
}

struct prb_way {
	int fd; /**< where we are */
	uid_t uid;
	unsigned how, links;
	bool refused; /**< what is called `name` in `fd` is a link of `stranger` */
	uid_t stranger;
	const char *name;
	char *next;	 /**< what is left, in text */
	char text[4096]; /* PATH_MAX */
	char link[4096];
};

static inline void prb_way_go(struct prb_way *way, int fd)
{
	if (way->fd >= 0)
		PRB_WAY_CALL(SYS_close, way->fd);
	way->fd = fd;
}

static inline int prb_way_begin(struct prb_way *way, int at)
{
	int fd = (int)PRB_WAY_CALL(SYS_openat, at, *way->next == '/' ? "/" : ".",
				   O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		prb_way_go(way, fd);
	return fd < 0 ? fd : 0;
}

static inline bool prb_way_may_make(const struct prb_way *way, bool last)
{
	struct stat st = {};

	if (way->how & PRB_WAY_MAKE_LAST && last)
		return true;
	return way->how & PRB_WAY_MAKE && !PRB_WAY_CALL(SYS_fstat, way->fd, &st) &&
	       (st.st_uid == (uid_t)PRB_WAY_CALL(SYS_geteuid) ||
		(st.st_mode & (S_ISVTX | 02)) == (S_ISVTX | 02));
}

/** Goes to where @p name leads, the link @p st in @p above that is open as @p fd. */
static inline int prb_way_follow(struct prb_way *way, const char *name, int fd,
				 const struct stat *st, const struct stat *above)
{
	enum { LINKS = 40, PROC = 0x9fa0 };
	size_t left = strlen(way->next) + 1;
	struct statfs system;
	long length;

	if (++way->links > LINKS)
		return -ELOOP;
	if (PRB_WAY_CALL(SYS_fstatfs, fd, &system))
		return -EIO;
	if (system.f_type ==
	    PROC) { /* the kernel's, and its text may not say where, as /proc/PID/root */
		int to = (int)PRB_WAY_CALL(SYS_openat, way->fd, name,
					   O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (to >= 0)
			prb_way_go(way, to);
		return to < 0 ? to : 0;
	}
	if (!prb_way_may_follow(st, above, way->uid)) {
		way->refused = true;
		way->stranger = st->st_uid;
		way->name = name;
		return -EPERM;
	}
	length = PRB_WAY_CALL(SYS_readlinkat, fd, "", way->link, sizeof(way->link) - 1);
	if (length <= 0)
		return length ? (int)length : -ENOENT;
	if ((size_t)length + 1 + left > sizeof(way->text))
		return -ENAMETOOLONG;
	way->link[length] = '/';
	memcpy(way->link + length + 1, way->next, left);
	memcpy(way->text, way->link, (size_t)length + 1 + left);
	way->next = way->text;
	return *way->next == '/' ? prb_way_begin(way, AT_FDCWD) : 0;
}

/** One part of it. */
static inline int prb_way_step(struct prb_way *way, const char *name, bool last)
{
	int fd = (int)PRB_WAY_CALL(SYS_openat, way->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc;
	struct stat st = {}, above = {};

	if (fd == -ENOENT && prb_way_may_make(way, last)) {
		rc = (int)PRB_WAY_CALL(SYS_mkdirat, way->fd, name, 0700);
		if (rc && rc != -EEXIST)
			return rc;
		fd = (int)PRB_WAY_CALL(SYS_openat, way->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0)
		return fd;
	rc = (int)PRB_WAY_CALL(SYS_fstat, fd, &st);
	if (!rc && S_ISDIR(st.st_mode)) {
		prb_way_go(way, fd);
		return 0;
	}
	if (!rc)
		rc = (int)PRB_WAY_CALL(SYS_fstat, way->fd, &above);
	if (!rc && !S_ISLNK(st.st_mode))
		rc = -ENOTDIR;
	else if (!rc && last && !(way->how & PRB_WAY_FOLLOW))
		rc = -ELOOP;
	else if (!rc)
		rc = prb_way_follow(way, name, fd, &st, &above);
	PRB_WAY_CALL(SYS_close, fd);
	return rc;
}

/** Goes as far as it can; way->fd is the caller's. */
static inline int prb_way_go_all(struct prb_way *way, int at, const char *path)
{
	size_t length = strlen(path);
	int rc;

	if (!length || length >= sizeof(way->text))
		return length ? -ENAMETOOLONG : -ENOENT;
	memcpy(way->text, path, length + 1);
	way->next = way->text;
	rc = prb_way_begin(way, at);
	while (!rc) {
		char *name = way->next, *end, *after;

		while (*name == '/')
			name++;
		for (end = name; *end && *end != '/';)
			end++;
		for (after = end; *after == '/';)
			after++;
		if (!*name)
			return 0;
		way->next = after;
		*end = '\0';
		rc = prb_way_step(way, name, !*after);
	}
	return rc;
}

/**
 * Opens, with O_PATH, the folder @p path below @p at. -EPERM: a link of another user is on the way.
 * -ELOOP: its last part is a link, and @p how (enum prb_way_how) does not say that it may be one.
 */
static inline int prb_way_open(int at, const char *path, uid_t uid, unsigned how)
{
	struct prb_way way = {.fd = -1, .uid = uid, .how = how};
	int rc = prb_way_go_all(&way, at, path);

	if (!rc)
		return way.fd;
	prb_way_go(&way, -1);
	return rc;
}

/**
 * The same, to read the folder: only one of @p uid that no other user may write to, else -EPERM.
 */
static inline int prb_way_open_own(int at, const char *path, uid_t uid, unsigned how)
{
	int way = prb_way_open(at, path, uid, how), fd;
	struct stat st = {};

	if (way < 0)
		return way;
	fd = (int)PRB_WAY_CALL(SYS_openat, way, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	PRB_WAY_CALL(SYS_close, way);
	if (fd < 0 ||
	    (!PRB_WAY_CALL(SYS_fstat, fd, &st) && st.st_uid == uid && !(st.st_mode & 022)))
		return fd;
	PRB_WAY_CALL(SYS_close, fd);
	return -EPERM;
}

#endif
