/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/run/tree.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "target/proc/pids.h"
#include "target/proc/process.h"
#include "target/proc/subprocesses.h"
#include "target/proc/text.h"

enum {
	MOST = 4096,	   /* processes of a tree that are looked at */
	MOST_GLANCES = 16, /* at clocks alone, while processes run */
};

void prb_tree_deinit(struct prb_tree *tree)
{
	prb_vec_free(&tree->list);
}

const struct prb_tree_process *prb_tree_find(const struct prb_tree *tree, pid_t pid)
{
	const struct prb_tree_process *process;

	prb_vec_each (process, &tree->list)
		if (process->pid == pid)
			return process;
	return NULL;
}

static bool read_stat(pid_t pid, struct prb_stat *ret)
{
	prb_auto_str struct prb_str line = {};

	if (!prb_proc_read(pid, "stat", &line) || !prb_stat_parse(prb_str_text(&line), ret))
		return false;
	ret->comm = NULL;
	return ret->state != 'Z' && ret->state != 'X';
}

static struct prb_error *add(struct prb_tree *tree, pid_t pid)
{
	struct prb_tree_process *process;
	struct prb_pulse pulse;
	struct prb_stat stat;

	if (tree->list.count >= MOST || prb_tree_find(tree, pid) || !read_stat(pid, &stat) ||
	    !prb_pulse_read(pid, &pulse) || pulse.start_ticks != stat.start_ticks)
		return NULL;
	process = prb_vec_push(&tree->list);
	if (!process)
		return prb_error_nomem();
	*process =
		(struct prb_tree_process){pid, stat.ppid, stat.start_ticks, pulse.ran, stat.state};
	return NULL;
}

/** The children of one thread; *ret is false if the kernel has no such list. */
static struct prb_error *add_children(struct prb_tree *tree, pid_t pid, const char *tid, bool *ret)
{
	prb_auto_pids struct prb_pids children = {};
	const pid_t *child;

	PRB_TRY(prb_pids_of_children(pid, (pid_t)atoi(tid), &children, ret));
	prb_vec_each (child, &children.list)
		PRB_TRY(add(tree, *child));
	return NULL;
}

/** Of a thread that has ended meanwhile, the children are another thread's. */
static struct prb_error *add_below(struct prb_tree *tree, pid_t pid, bool *listed)
{
	char path[64];
	const struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	prb_auto_closedir DIR *folder = opendir(path);

	while (folder && (entry = readdir(folder))) {
		bool read;

		if (*entry->d_name == '.')
			continue;
		PRB_TRY(add_children(tree, pid, entry->d_name, &read));
		*listed = *listed || read;
	}
	return NULL;
}

/** Kernels without lists of children: all processes are searched. */
static struct prb_error *add_by_parents(struct prb_tree *tree)
{
	struct prb_subprocesses found = {};
	struct prb_error *err = prb_subprocesses_find(tree->root, &found);
	const struct prb_process *process;

	prb_vec_each (process, &found.list)
		if (!err)
			err = add(tree, process->pid);
	prb_subprocesses_deinit(&found);
	return err;
}

static void compare(struct prb_tree *tree, const struct prb_tree *before)
{
	const struct prb_tree_process *process;
	uint64_t ran = 0;

	tree->moved = tree->list.count != before->list.count;
	prb_vec_each (process, &tree->list) {
		const struct prb_tree_process *was = prb_tree_find(before, process->pid);

		if (was && was->start_ticks == process->start_ticks)
			ran += process->ran > was->ran ? process->ran - was->ran : 0;
		else
			tree->moved = true;
		/* It has begun since. */
		if (!was && before->list.count)
			ran += process->ran;
	}
	tree->moved = tree->moved || ran;
	tree->ran_seconds = (double)ran / 1e9;
}

struct prb_error *prb_tree_look(struct prb_tree *tree)
{
	prb_auto_tree struct prb_tree before = *tree;
	bool listed = false;

	tree->list.items = NULL;
	tree->list.count = tree->list.capacity = 0;
	if (tree->with_root)
		PRB_TRY(add(tree, tree->root));
	PRB_TRY(add_below(tree, tree->root, &listed));
	/* The list grows while it is walked. */
	for (size_t i = tree->with_root; i < tree->list.count; i++)
		PRB_TRY(add_below(tree, tree->list.items[i].pid, &listed));
	if (!listed)
		PRB_TRY(add_by_parents(tree));
	compare(tree, &before);
	tree->glances = 0;
	return NULL;
}

/** Adds up what each has run; false if one has ended, or has no clock. */
static bool read_clocks(struct prb_tree *tree, uint64_t *ran)
{
	struct prb_tree_process *process;

	*ran = 0;
	prb_vec_each (process, &tree->list) {
		uint64_t now;

		if (!prb_pulse_clock(process->pid, &now) || now < process->ran)
			return false;
		*ran += now - process->ran;
		process->ran = now;
	}
	return true;
}

struct prb_error *prb_tree_glance(struct prb_tree *tree)
{
	uint64_t ran, noted;

	if (!tree->list.count || tree->glances >= MOST_GLANCES)
		return prb_tree_look(tree);
	if (!read_clocks(tree, &ran) || (!ran && tree->glances)) {
		noted = ran;
		PRB_TRY(prb_tree_look(tree));
		tree->moved = tree->moved || noted;
		tree->ran_seconds += (double)noted / 1e9;
		return NULL;
	}
	tree->moved = ran;
	tree->ran_seconds = (double)ran / 1e9;
	tree->glances += ran ? 1 : 0;
	return NULL;
}

/** True if @p process is the one that it was, with its parent. */
static bool is_same(const struct prb_tree_process *process)
{
	struct prb_stat stat;

	return read_stat(process->pid, &stat) && stat.start_ticks == process->start_ticks &&
	       stat.ppid == process->parent;
}

/**
 * The descriptor is opened before the process is checked: as long as that process has not ended,
 * its pid is nobody else's, so what was checked is what gets the signal.
 */
static bool send(const struct prb_tree_process *process, int number)
{
	prb_auto_close int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

	if (fd < 0 && errno != ENOSYS)
		return false;
	if (!is_same(process))
		return false;
	if (fd < 0)
		return !kill(process->pid, number);
	return !syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
}

void prb_tree_signal(const struct prb_tree *tree, int number, size_t *count)
{
	const struct prb_tree_process *process;

	*count = 0;
	prb_vec_each (process, &tree->list) {
		if (!send(process, number))
			continue;
		++*count;
		if (process->state == 'T' && number != SIGKILL)
			send(process, SIGCONT);
	}
}
