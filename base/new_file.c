/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

/* Where to write: behind symbolic links if they are followed, and never in the place of a device or
 * pipe. */
static struct prb_error *resolve(const struct prb_new_file *file, const char *path, char **ret)
{
	const int flags = file->replaces_links ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat st;
	bool found = !fstatat(AT_FDCWD, path, &st, flags);

	if (found && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return prb_error_create(PRB_ERROR_USAGE, "%s is not a regular file", path);
	*ret = found && !file->replaces_links ? realpath(path, NULL) : strdup(path);
	return *ret ? NULL : prb_error_os(errno, "cannot write %s", path);
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
		return prb_error_os(errno, "cannot create %s", temporary);
	file->temporary = prb_steal(&temporary);
	return NULL;
}

struct prb_error *prb_new_file_rename(struct prb_new_file *file, const char *path)
{
	char *other;

	PRB_TRY(resolve(file, path, &other));
	free(file->path);
	file->path = other;
	return NULL;
}

struct prb_error *prb_new_file_finish(struct prb_new_file *file)
{
	if (fsync(file->fd))
		return prb_error_os(errno, "cannot write %s", file->temporary);
	if (rename(file->temporary, file->path))
		return prb_error_os(errno, "cannot write %s", file->path);
	free(prb_steal(&file->temporary));
	return NULL;
}

void prb_new_file_deinit(struct prb_new_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	if (file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
}
