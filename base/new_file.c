/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/way.h"

/* The owner of a link chose its destination, and may have guessed our name, as in /tmp. */
static struct prb_error *refuse(const char *path, uid_t stranger)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
					       "%s is a symbolic link of user %u", path,
					       (unsigned)stranger),
			      "nothing is written where another user's link leads; give another "
			      "name");
}

static struct prb_error *check_owner(const char *path, const struct stat *link)
{
	return link->st_uid == geteuid() || !link->st_uid ? NULL : refuse(path, link->st_uid);
}

/* Where it stopped, which links may have led to. */
static struct prb_error *refuse_way(const struct prb_way *way, const char *path)
{
	char link[64], folder[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", way->fd);
	length = readlink(link, folder, sizeof(folder) - 1);
	if (length <= 0)
		return refuse(path, way->stranger);
	folder[length] = '\0';
	prb_auto_free char *full = prb_format("%s%s%s", folder, length > 1 ? "/" : "", way->name);
	return full ? refuse(full, way->stranger) : prb_error_nomem();
}

/* The way to what is at @p path, or would be. Why else it leads nowhere is found when it is used.
 */
static struct prb_error *check_way(const char *path)
{
	struct prb_way way = {.fd = -1, .uid = geteuid(), .how = PRB_WAY_FOLLOW};
	int rc = prb_way_go_all(&way, AT_FDCWD, path);
	struct prb_error *err = rc && way.refused ? refuse_way(&way, path) : NULL;

	prb_way_go(&way, -1);
	return err;
}

/* All but the last part of it. */
static struct prb_error *check_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	prb_auto_free char *folder = slash ? strndup(path, (size_t)(slash + 1 - path)) : NULL;

	if (!slash)
		return NULL;
	return folder ? check_way(folder) : prb_error_nomem();
}

/* Replaces *path by the place that the link @p fd of that name leads to. */
static struct prb_error *follow(int fd, char **path)
{
	char place[PATH_MAX], *slash = strrchr(*path, '/');
	ssize_t length = readlinkat(fd, "", place, sizeof(place) - 1);
	size_t folder = slash ? (size_t)(slash + 1 - *path) : 0;
	char *behind;

	if (length < 0)
		return prb_error_os(errno, "cannot read the symbolic link %s", *path);
	place[length] = '\0';
	behind = *place == '/' ? strdup(place) : prb_format("%.*s%s", (int)folder, *path, place);
	if (!behind)
		return prb_error_nomem();
	free(*path);
	*path = behind;
	return NULL;
}

struct prb_error *prb_new_file_check_way(const char *path)
{
	struct stat st;

	PRB_TRY(check_way(path));
	/* The one that is named is never another's, not even where others on the way may be. */
	return lstat(path, &st) || !S_ISLNK(st.st_mode) ? NULL : check_owner(path, &st);
}

/* Where to write: behind symbolic links if they are followed, and never in the place of a device or
 * pipe. The place itself is only ever renamed to, so what comes there later is not followed. */
static struct prb_error *resolve(const struct prb_new_file *file, const char *path, char **ret)
{
	enum { LINKS = 40 };
	prb_auto_free char *at = strdup(path);
	struct stat st;

	if (!at)
		return prb_error_nomem();
	for (int i = 0; i < LINKS; i++) {
		PRB_TRY(check_folder(at));
		prb_auto_close int fd = open(at, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0 && fstat(fd, &st))
			return prb_error_os(errno, "cannot write %s", path);
		if (fd >= 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
			return prb_error_create(PRB_ERROR_USAGE, "%s is not a regular file", path);
		if (fd < 0 || !S_ISLNK(st.st_mode) || file->replaces_links) {
			*ret = prb_steal(&at);
			return NULL;
		}
		PRB_TRY(check_owner(at, &st));
		PRB_TRY(follow(fd, &at));
	}
	return prb_error_os(ELOOP, "cannot write %s", path);
}

struct prb_error *prb_new_file_error(int os_error, const char *path)
{
	struct prb_error *err = prb_error_os(os_error, "cannot create %.400s", path);

	return os_error == ENOENT ? prb_error_hint(err, "its folder has to be there first") : err;
}

struct prb_error *prb_new_file_open(struct prb_new_file *file, const char *path)
{
	PRB_TRY(resolve(file, path, &file->path));
	/* Beside it, because a rename does not leave a file system. */
	prb_auto_free char *temporary = prb_format("%s.XXXXXX", file->path);
	if (!temporary)
		return prb_error_nomem();
	file->fd = mkostemp(temporary, O_CLOEXEC);
	if (file->fd < 0)
		return prb_new_file_error(errno, file->path);
	file->temporary = prb_steal(&temporary);
	return NULL;
}

struct prb_error *prb_new_file_open_in(struct prb_new_file *file, int folder, const char *name)
{
	enum { TRIES = 100 };
	uint64_t number = 0;

	file->folder = folder;
	file->path = strdup(name);
	if (!file->path)
		return prb_error_nomem();
	for (int i = 0; i < TRIES && file->fd < 0; i++) {
		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
			number++;
		free(file->temporary);
		file->temporary = prb_format(PRB_NEW_FILE_PREFIX "%s.%012llx", name,
					     (unsigned long long)number >> 16);
		if (!file->temporary)
			return prb_error_nomem();
		file->fd = openat(folder, file->temporary,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (file->fd < 0 && errno != EEXIST)
			break;
	}
	if (file->fd >= 0)
		return NULL;
	free(prb_steal(&file->temporary));
	return prb_error_os(errno, "cannot create %s", name);
}

struct prb_error *prb_new_file_rename(struct prb_new_file *file, const char *path)
{
	char *other;

	PRB_TRY(resolve(file, path, &other));
	free(file->path);
	file->path = other;
	return NULL;
}

struct prb_error *prb_new_file_place(struct prb_new_file *file)
{
	if (renameat(file->folder, file->temporary, file->folder, file->path))
		return prb_error_os(errno, "cannot write %s", file->path);
	free(prb_steal(&file->temporary));
	return NULL;
}

struct prb_error *prb_new_file_finish(struct prb_new_file *file)
{
	if (fsync(file->fd))
		return prb_error_os(errno, "cannot write %s", file->temporary);
	return prb_new_file_place(file);
}

void prb_new_file_deinit(struct prb_new_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->temporary)
		unlinkat(file->folder, file->temporary, 0);
	free(file->temporary);
	free(file->path);
}

int prb_nameless_file(const char *folder)
{
	int way = prb_way_open(AT_FDCWD, folder, geteuid(), PRB_WAY_FOLLOW), fd;

	if (way < 0) {
		errno = -way;
		return -1;
	}
	close(way);
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	if (fd >= 0)
		return fd;
	/* Some file systems cannot make files without a name. */
	prb_auto_free char *path = prb_format("%s/probing.XXXXXX", folder);
	if (!path)
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}
