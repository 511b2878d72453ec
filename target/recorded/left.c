/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/recorded/left.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/str.h"
#include "target/proc/instance.h"
#include "target/proc/text.h"

enum {
	MAX_FOLDERS = 10000, /* of one user: more are not plausible */
	MAX_RINGS = 128,     /* of a folder: an agent makes 64 */
};

/** Called for each folder; @p fd is that folder, open. */
typedef struct prb_error *each_folder(void *context, int fd, struct prb_left *left);

struct walk {
	each_folder *each;
	void *context;
};

/** True if the process that made the folder runs, as far as it is seen from here. */
static bool is_alive(const struct prb_left *left)
{
	prb_auto_close int fd = -1;
	char path[32], text[1024];
	struct prb_stat stat;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)left->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return false;
	text[length] = '\0';
	return prb_stat_parse(text, &stat) && stat.start_ticks == left->start_ticks &&
	       stat.state != 'Z' && stat.state != 'X';
}

/** Adds up the rings of a folder; nothing of them is read. */
static void count_rings(int fd, struct prb_left *left)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *folder = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	struct stat st;

	while (folder && left->rings < MAX_RINGS && (entry = readdir(folder))) {
		size_t length = strlen(entry->d_name);

		/* A ring, or what 'probing record' has stored of one. */
		if (length < 6 ||
		    (strcmp(entry->d_name + length - 5, ".ring") != 0 &&
		     strcmp(entry->d_name + length - 5, ".cold") != 0) ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		left->rings++;
		left->bytes += (uint64_t)st.st_blocks * 512;
		if ((double)st.st_mtime > left->time)
			left->time = (double)st.st_mtime;
	}
}

/** A folder in @p base, if it is one of an ended process. */
static struct prb_error *look_at(const struct walk *walk, int base, const char *path,
				 const char *name, uid_t uid)
{
	struct prb_left left = {.uid = uid};
	prb_auto_close int fd = -1;
	struct stat st;
	struct prb_error *err;

	if (!prb_instance_parse(name, &left.pid, &left.start_ticks) || is_alive(&left))
		return NULL;
	fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || st.st_uid != uid || st.st_mode & 022)
		return NULL;
	count_rings(fd, &left);
	if (!left.rings)
		return NULL;
	left.path = prb_format("%s/%s", path, name);
	if (!left.path)
		return prb_error_nomem();
	err = walk->each(walk->context, fd, &left);
	free(left.path);
	return err;
}

/** All folders in @p path, which only @p uid may be able to write to. */
static struct prb_error *walk_base(const struct walk *walk, const char *path, uid_t uid)
{
	prb_auto_close int fd = prb_own_folder_open(path, uid);
	prb_auto_closedir DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!folder)
		return NULL;
	fd = -1; /* it is the stream's now */
	for (unsigned n = 0; n < MAX_FOLDERS && (entry = readdir(folder)); n++)
		PRB_TRY(look_at(walk, dirfd(folder), path, entry->d_name, uid));
	return NULL;
}

/** As above, for each user that has a folder "@p prefix UID @p suffix". */
static struct prb_error *walk_users(const struct walk *walk, const char *parent, const char *prefix,
				    const char *suffix)
{
	prb_auto_closedir DIR *folder = opendir(parent);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		const char *at = entry->d_name;
		prb_auto_free char *path = NULL;
		unsigned long long uid;
		char *end;

		if (strncmp(at, prefix, strlen(prefix)) != 0)
			continue;
		at += strlen(prefix);
		uid = strtoull(at, &end, 10);
		if (!isdigit((unsigned char)*at) || (*end && *end != '.') || uid >= UINT_MAX ||
		    uid == geteuid())
			continue;
		path = prb_format("%s/%s%s", parent, entry->d_name, suffix);
		if (!path)
			return prb_error_nomem();
		PRB_TRY(walk_base(walk, path, (uid_t)uid));
	}
	return NULL;
}

static struct prb_error *walk_all(const struct walk *walk)
{
	const char *chosen = getenv("PROBING_DATA_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
	prb_auto_free char *usual = NULL;
	prb_auto_close int tmp = prb_tmp_folder_open(geteuid(), false, &usual);
	prb_auto_free char *run = prb_format("%s/probing", runtime ? runtime : "");

	if (!run)
		return prb_error_nomem();
	if (chosen && *chosen == '/')
		PRB_TRY(walk_base(walk, chosen, geteuid()));
	if (runtime && *runtime == '/')
		PRB_TRY(walk_base(walk, run, geteuid()));
	if (tmp >= 0)
		PRB_TRY(walk_base(walk, usual, geteuid()));
	if (geteuid())
		return NULL;
	PRB_TRY(walk_users(walk, "/run/user", "", "/probing"));
	return walk_users(walk, "/tmp", "probing-", "");
}

static struct prb_error *keep(void *context, int fd, struct prb_left *left)
{
	struct prb_left_list *list = context;
	struct prb_left *place = prb_vec_push(&list->list);

	(void)fd;
	if (!place)
		return prb_error_nomem();
	*place = *left;
	left->path = NULL;
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const struct prb_left *left = a, *right = b;

	return left->time < right->time ? -1 : left->time > right->time;
}

struct prb_error *prb_left_find_all(struct prb_left_list *ret)
{
	PRB_TRY(walk_all(&(struct walk){keep, ret}));
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_time);
	return NULL;
}

void prb_left_list_deinit(struct prb_left_list *list)
{
	struct prb_left *left;

	prb_vec_each (left, &list->list)
		free(left->path);
	prb_vec_free(&list->list);
}

struct newest {
	pid_t pid;
	uint64_t start_ticks;
	double time;
	int fd;
	char *path;
};

static struct prb_error *keep_newest(void *context, int fd, struct prb_left *left)
{
	struct newest *newest = context;
	int copy;

	if (left->pid != newest->pid ||
	    (newest->start_ticks && left->start_ticks != newest->start_ticks) ||
	    (newest->fd >= 0 && left->time < newest->time))
		return NULL;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return prb_error_os(errno, "cannot keep %s open", left->path);
	prb_close_guard(&newest->fd);
	free(newest->path);
	newest->fd = copy;
	newest->time = left->time;
	newest->path = left->path;
	left->path = NULL;
	return NULL;
}

struct prb_error *prb_left_open(pid_t pid, uint64_t start_ticks, int *ret_fd, char **ret_path)
{
	struct newest newest = {.pid = pid, .start_ticks = start_ticks, .fd = -1};
	struct prb_error *err = walk_all(&(struct walk){keep_newest, &newest});

	if (!err && newest.fd < 0)
		err = prb_error_create(PRB_ERROR_NOT_FOUND, "process %d has left no rings",
				       (int)pid);
	if (err) {
		prb_close_guard(&newest.fd);
		free(newest.path);
		return err;
	}
	*ret_fd = newest.fd;
	*ret_path = newest.path;
	return NULL;
}
