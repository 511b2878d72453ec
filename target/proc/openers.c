/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/openers.h"

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
#include "base/text.h"
#include "target/proc/pids.h"
#include "target/proc/process.h"

enum { MOST_DESCRIPTORS = 1 << 20 /* of all processes */ };

struct search {
	struct stat file;
	char name[NAME_MAX + 2]; /* "/NAME", the end of its path */
	unsigned long count;	 /* descriptors that were looked at */
	struct prb_openers *ret;
};

void prb_openers_deinit(struct prb_openers *openers)
{
	prb_vec_free(&openers->list);
}

/* A lock has its line in the description of the descriptor by which it was taken. */
static bool locks(pid_t pid, const char *fd)
{
	prb_auto_str struct prb_str info = {};
	char name[64];

	snprintf(name, sizeof(name), "fdinfo/%.20s", fd);
	return prb_proc_read(pid, name, &info) && strstr(prb_str_text(&info), "\nlock:");
}

/* The link tells most other files apart without a question to their file systems, which may hang.
 */
static bool is_file(const struct search *s, int folder, const char *fd)
{
	char link[PATH_MAX];
	struct stat st;
	ssize_t n = readlinkat(folder, fd, link, sizeof(link) - 1);

	link[n < 0 ? 0 : n] = '\0';
	return prb_text_ends(link, s->name) && !fstatat(folder, fd, &st, 0) &&
	       st.st_dev == s->file.st_dev && st.st_ino == s->file.st_ino;
}

static struct prb_error *note(struct search *s, pid_t pid, const char *fd)
{
	const size_t count = s->ret->list.count;
	struct prb_opener *one = count ? &s->ret->list.items[count - 1] : NULL;

	if (!one || one->pid != pid) {
		one = prb_vec_push(&s->ret->list);
		if (!one)
			return prb_error_nomem();
		*one = (struct prb_opener){.pid = pid};
	}
	one->locks = one->locks || locks(pid, fd);
	return NULL;
}

static struct prb_error *look_at(struct search *s, pid_t pid)
{
	prb_auto_closedir DIR *list = NULL;
	const struct dirent *entry;
	int folder = prb_proc_open(pid, "fd");

	list = folder < 0 ? NULL : fdopendir(folder);
	if (!list) {
		s->ret->all = s->ret->all && errno == ENOENT;
		if (folder >= 0)
			close(folder);
		return NULL;
	}
	while ((entry = readdir(list)) && s->count++ < MOST_DESCRIPTORS)
		if (*entry->d_name != '.' && is_file(s, folder, entry->d_name))
			PRB_TRY(note(s, pid, entry->d_name));
	s->ret->all = s->ret->all && s->count < MOST_DESCRIPTORS;
	return NULL;
}

static bool name_of(int fd, struct search *s)
{
	char path[64], link[PATH_MAX];
	const char *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n < 0 ? 0 : n] = '\0';
	slash = strrchr(link, '/');
	snprintf(s->name, sizeof(s->name), "%s", slash ? slash : "");
	return slash && !fstat(fd, &s->file);
}

struct prb_error *prb_openers_find(int fd, struct prb_openers *ret)
{
	prb_auto_pids struct prb_pids pids = {};
	struct search s = {.ret = ret};
	const pid_t *pid;

	if (!name_of(fd, &s))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the file has no name");
	PRB_TRY(prb_pids_of_all(&pids));
	ret->all = prb_pids_are_all();
	prb_vec_each (pid, &pids.list)
		if (*pid != getpid())
			PRB_TRY(look_at(&s, *pid));
	return NULL;
}
