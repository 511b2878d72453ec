/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Processes that share the memory of a target: what is loaded there would be loaded into them too,
 * and a lock that the new thread holds when its process ends stays locked in theirs.
 */
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "injector/inject_private.h"
#include "target/proc/text.h"
#include "target/task.h"
#include "target/proc/pids.h"

/** A number of /proc/PID/status; 0 if it is not known. */
static pid_t number(const char *status, const char *name)
{
	const char *text = prb_text_field(status, name);

	return text ? (pid_t)strtol(text, NULL, 10) : 0;
}

static pid_t parent_of(pid_t pid)
{
	prb_auto_free char *path = prb_format("/proc/%d/status", (int)pid);
	prb_auto_fclose FILE *file = path ? fopen(path, "re") : NULL;
	char text[1024] = "";

	if (file)
		text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	return number(text, "PPid");
}

/**
 * Whether it is blocked in vfork(), by that or another name, until its child has its own memory.
 */
static bool waits_for_child(struct prb_target *t, pid_t tid)
{
	struct prb_task task;
	prb_auto_error struct prb_error *err = prb_task_read(t, tid, &task);
	const char *call =
		!err && task.in_syscall ? prb_syscall_name(t->machine, task.syscall) : NULL;

	return call && task.state == 'D' &&
	       (!strcmp(call, "vfork") || !strcmp(call, "clone") || !strcmp(call, "clone3"));
}

static unsigned count_waiting(struct prb_target *t)
{
	prb_auto_str struct prb_str tids = {};
	prb_auto_error struct prb_error *err = prb_target_list(t, &tids, "task");
	unsigned count = 0;

	for (const char *at = prb_str_text(&tids); !err && *at;) {
		char *end;
		pid_t tid = (pid_t)strtol(at, &end, 10);

		count += waits_for_child(t, tid);
		at = *end ? end + 1 : end;
	}
	return count;
}

static struct prb_error *refuse(pid_t own, pid_t other, bool parent)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "process %d shares its memory with process %d%s", (int)own,
				 (int)other, parent ? ", its parent" : ""),
		"nothing was changed in either: a thread that ended with one of them could keep a "
		"lock of the other for ever%s",
		parent ? "; a child in vfork() is free once it has executed its program" : "");
}

/** Not if it is ending: then it has none, as threads of the kernel, and is like them. */
static bool has_memory(pid_t pid)
{
	prb_auto_free char *path = prb_format("/proc/%d/statm", (int)pid);
	prb_auto_fclose FILE *file = path ? fopen(path, "re") : NULL;
	unsigned long pages = 0;

	return file && fscanf(file, "%lu", &pages) == 1 && pages;
}

/**
 * Finds the other processes that share the memory of process @p own. Its children are counted,
 * since vfork() children are harmless to it; any other process is refused.
 */
static struct prb_error *find_sharers(pid_t tid, pid_t own, unsigned *children, pid_t *child)
{
	prb_auto_pids struct prb_pids all = {};
	pid_t parent = parent_of(own);

	*children = 0;
	PRB_TRY(prb_pids_of_all(&all));
	for (size_t i = 0; i < all.list.count; i++) {
		pid_t pid = all.list.items[i];

		if (pid == own || syscall(SYS_kcmp, tid, pid, KCMP_VM, 0, 0))
			continue;
		if (!has_memory(own))
			return NULL; /* it has ended: its next use reports that */
		if (parent_of(pid) != own)
			return refuse(own, pid, pid == parent);
		++*children;
		*child = pid;
	}
	return NULL;
}

/** Where kcmp() is forbidden: only checks whether the parent is blocked in vfork(). */
static struct prb_error *look_at_parent(pid_t own)
{
	prb_auto_target struct prb_target *parent = NULL;
	pid_t pid = parent_of(own);
	prb_auto_error struct prb_error *err = pid ? prb_target_open_process(pid, &parent) : NULL;

	return !err && parent && count_waiting(parent) ? refuse(own, pid, true) : NULL;
}

static struct prb_error *look(struct prb_target *t, pid_t own)
{
	unsigned children;
	pid_t child = 0;

	if (syscall(SYS_kcmp, t->pid, t->pid, KCMP_VM, 0, 0))
		return look_at_parent(own);
	PRB_TRY(find_sharers(t->pid, own, &children, &child));
	return children > (children ? count_waiting(t) : 0) ? refuse(own, child, false) : NULL;
}

struct prb_error *prb_inject_check_alone(struct prb_target *t)
{
	/*
	 * Children of vfork() start and exit in microseconds, and exist before their parent blocks.
	 */
	enum { LOOKS = 50, EACH_NS = 2000000 };
	prb_auto_str struct prb_str status = {};
	struct prb_error *err = NULL;

	PRB_TRY(prb_target_read_file(t, &status, "status"));
	for (int i = 0; i < LOOKS; i++) {
		prb_error_destroy(err);
		err = look(t, number(prb_str_text(&status), "Tgid"));
		if (!err)
			break;
		nanosleep(&(struct timespec){.tv_nsec = EACH_NS}, NULL);
	}
	return err;
}
