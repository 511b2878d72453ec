/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/target_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/str.h"

/* Gives the calling thread the rights of the target's user, until @p saved is restored. */
static struct prb_error *take_rights(const struct prb_rights *rights,
				     struct prb_rights_saved *saved)
{
	if (rights->uid == geteuid())
		return NULL;
	PRB_TRY(prb_rights_take(rights, saved));
	return saved->complete ? NULL : prb_error_os(EPERM, "cannot act as user %u", rights->uid);
}

/* Goes down from @p root part by part: -1 with errno, ELOOP or ENOTDIR at a symbolic link. */
static int open_folder(int root, const char *path)
{
	int fd = root;

	while (fd >= 0 && *path) {
		char part[NAME_MAX + 1];
		size_t length;
		int parent = fd;

		path += strspn(path, "/");
		length = strcspn(path, "/");
		snprintf(part, sizeof(part), "%.*s", (int)length, path);
		path += length;
		fd = openat(parent, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int os_errno = errno;
		close(parent);
		errno = os_errno;
	}
	return fd;
}

static struct prb_error *create(struct prb_target_copy *copy, int root, const char *folder)
{
	struct stat st;
	uint64_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = 0;
	copy->folder = open_folder(root, folder);
	if (copy->folder < 0)
		return prb_error_os(errno, "cannot open %s of the target", folder);
	if (fstat(copy->folder, &st) ||
	    (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX)))
		return prb_error_os(EPERM, "others may replace files in %s of the target", folder);
	snprintf(copy->path, sizeof(copy->path), "%.40s/probing-%d-%06llx", folder, (int)getpid(),
		 (unsigned long long)(number & 0xffffff));
	const char *name = strrchr(copy->path, '/') + 1;
	copy->fd = prb_own_file_new(copy->folder, name, O_WRONLY, 0700);
	if (copy->fd < 0)
		return prb_error_os(errno, "cannot create %s", copy->path);
	copy->name = name;
	return NULL;
}

struct prb_error *prb_target_copy_create(struct prb_target *t, const char *folder,
					 struct prb_target_copy *ret)
{
	prb_auto_rights struct prb_rights_saved saved = {};
	prb_auto_str struct prb_str status = {};
	int root;

	PRB_TRY(prb_target_read_file(t, &status, "status"));
	PRB_TRY(prb_rights_parse(prb_str_text(&status), &ret->rights));
	PRB_TRY(prb_target_open_fact(t, &root, "root"));

	struct prb_error *err = take_rights(&ret->rights, &saved);
	if (!err)
		return create(ret, root, folder);
	close(root);
	return err;
}

void prb_target_copy_remove(struct prb_target_copy *copy)
{
	prb_auto_rights struct prb_rights_saved saved = {};
	prb_auto_error struct prb_error *err =
		copy->name ? take_rights(&copy->rights, &saved) : NULL;

	if (copy->name && !err)
		unlinkat(copy->folder, copy->name, 0);
	if (copy->fd >= 0)
		close(copy->fd);
	if (copy->folder >= 0)
		close(copy->folder);
	copy->fd = copy->folder = -1;
	copy->name = NULL;
	prb_rights_deinit(&copy->rights);
}
