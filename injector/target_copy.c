/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/target_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/str.h"
#include "dwarf/proc/text.h"

enum { GROUPS_MAX = 4096 };

/* The rights of the calling thread before it took those of the target's user. */
struct own_rights {
	uid_t uid;
	gid_t gid;
	bool changed;
	int group_count;
	gid_t groups[GROUPS_MAX];
};

static void restore_rights(struct own_rights *own)
{
	if (!own->changed)
		return;
	setfsuid(own->uid);
	setfsgid(own->gid);
	syscall(SYS_setgroups, own->group_count, own->groups);
	own->changed = false;
}

/* Takes the rights of @p uid for files: true if the calling thread has no others now. The C library
 * would change the groups of all threads, the system call changes those of one. */
static bool take_rights(uid_t uid, gid_t gid, struct own_rights *own)
{
	own->uid = (uid_t)setfsuid((uid_t)-1);
	own->gid = (gid_t)setfsgid((gid_t)-1);
	own->changed = false;
	if (own->uid == uid)
		return true;
	own->group_count = getgroups(GROUPS_MAX, own->groups);
	if (own->group_count < 0 || syscall(SYS_setgroups, 0, NULL))
		return false;
	own->changed = true;
	setfsgid(gid);
	setfsuid(uid);
	if ((gid_t)setfsgid((gid_t)-1) == gid && (uid_t)setfsuid((uid_t)-1) == uid)
		return true;
	restore_rights(own);
	return false;
}

/* The fourth number of such a field: what files are accessed by. */
static bool fourth_number(const char *status, const char *name, unsigned *ret)
{
	const char *at = prb_text_field(status, name);
	char *end = NULL;

	for (int i = 0; at && i < 4; i++, at = end) {
		*ret = (unsigned)strtoul(at, &end, 10);
		if (end == at)
			return false;
	}
	return at;
}

static struct prb_error *read_user(struct prb_target *t, struct prb_target_copy *copy)
{
	prb_auto_str struct prb_str status = {};

	PRB_TRY(prb_target_read_file(t, &status, "status"));
	if (fourth_number(prb_str_text(&status), "Uid", &copy->uid) &&
	    fourth_number(prb_str_text(&status), "Gid", &copy->gid))
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA, "the user of process %d is not known", t->pid);
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
	uint64_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = 0;
	copy->folder = open_folder(root, folder);
	if (copy->folder < 0)
		return prb_error_os(errno, "cannot open %s of the target", folder);
	snprintf(copy->path, sizeof(copy->path), "%.40s/probing-%d-%06llx", folder, (int)getpid(),
		 (unsigned long long)(number & 0xffffff));
	const char *name = strrchr(copy->path, '/') + 1;
	copy->fd = openat(copy->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  0700);
	if (copy->fd < 0)
		return prb_error_os(errno, "cannot create %s", copy->path);
	copy->name = name;
	return NULL;
}

struct prb_error *prb_target_copy_create(struct prb_target *t, const char *folder,
					 struct prb_target_copy *ret)
{
	struct own_rights own;
	int root;

	PRB_TRY(read_user(t, ret));
	PRB_TRY(prb_target_open_fact(t, &root, "root"));
	if (!take_rights(ret->uid, ret->gid, &own)) {
		close(root);
		return prb_error_os(EPERM, "cannot act as user %u", ret->uid);
	}

	struct prb_error *err = create(ret, root, folder);
	restore_rights(&own);
	return err;
}

void prb_target_copy_remove(struct prb_target_copy *copy)
{
	struct own_rights own;

	if (copy->name && take_rights(copy->uid, copy->gid, &own)) {
		unlinkat(copy->folder, copy->name, 0);
		restore_rights(&own);
	}
	if (copy->fd >= 0)
		close(copy->fd);
	if (copy->folder >= 0)
		close(copy->folder);
	copy->fd = copy->folder = -1;
	copy->name = NULL;
}
