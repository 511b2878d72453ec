/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/pids.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "target/proc/process.h"

void prb_pids_deinit(struct prb_pids *pids)
{
	prb_vec_free(&pids->list);
}

struct prb_error *prb_proc_check(void)
{
	char link[32];
	ssize_t length = readlink("/proc/self", link, sizeof(link) - 1);

	link[length < 0 ? 0 : length] = '\0';
	if (atoi(link) == getpid())
		return NULL;
	if (length < 0 && access("/proc/version", F_OK))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_FAILED,
					 "no process can be read: /proc is not mounted here"),
			"mount -t proc proc /proc");
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
					       "no process can be read: this /proc is that of "
					       "another pid namespace, whose "
					       "numbers are not those of processes here"),
			      "'mount -t proc proc /proc' in a mount namespace of its own (unshare "
			      "--mount-proc), or "
			      "'nsenter --mount --pid -t PID' to be in that of a process");
}

static int compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

struct prb_error *prb_pids_of_all(struct prb_pids *ret)
{
	prb_auto_closedir DIR *folder = NULL;

	PRB_TRY(prb_proc_check());
	folder = opendir("/proc");
	if (!folder)
		return prb_error_os(errno, "cannot list /proc");
	for (struct dirent *entry; (entry = readdir(folder));) {
		pid_t *place;

		if (*entry->d_name < '1' || *entry->d_name > '9')
			continue;
		place = prb_vec_push(&ret->list);
		if (!place)
			return prb_error_nomem();
		*place = (pid_t)atoi(entry->d_name);
	}
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(pid_t), compare);
	return NULL;
}

bool prb_pids_are_all(void)
{
	static const char first[] = "pid:[4026531836]"; /* PROC_PID_INIT_INO */
	char link[32];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link));

	return n == (ssize_t)strlen(first) && !memcmp(link, first, strlen(first));
}

struct prb_error *prb_pids_parse(const char *list, struct prb_pids *ret)
{
	char *end;

	for (const char *at = list;; at = end) {
		long pid = strtol(at, &end, 10);
		pid_t *place;

		if (end == at || pid <= 0)
			return NULL;
		place = prb_vec_push(&ret->list);
		if (!place)
			return prb_error_nomem();
		*place = (pid_t)pid;
	}
}

struct prb_error *prb_pids_of_children(pid_t pid, pid_t tid, struct prb_pids *ret, bool *listed)
{
	prb_auto_str struct prb_str list = {};
	char name[64];

	snprintf(name, sizeof(name), "task/%d/children", (int)tid);
	*listed = prb_proc_read(pid, name, &list);
	return *listed ? prb_pids_parse(prb_str_text(&list), ret) : NULL;
}
