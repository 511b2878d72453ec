/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The child that a thread waits for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/proc/process.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"

/*
 * Limits of threads whose children are read. Many threads may each wait for a child in another
 * namespace.
 */
enum { MAX_THREADS = 4096, MAX_THREADS_OF_ONE = 256 };

struct children {
	pid_t first, last;
	unsigned count;
	bool more;    /**< some threads were not read */
	pid_t inner;  /* pid to find, in the child's own namespace; 0: not searched */
	pid_t called; /* the child with that pid */
};

static pid_t innermost_pid(pid_t pid)
{
	prb_auto_str struct prb_str status = {};
	int64_t inner = 0;

	if (prb_proc_read(pid, "status", &status))
		prb_text_last_number(prb_str_text(&status), "NSpid", &inner);
	return (pid_t)inner;
}

static void note_children(const struct prb_pids *pids, struct children *children)
{
	const pid_t *pid;

	prb_vec_each (pid, &pids->list) {
		if (!children->count++)
			children->first = *pid;
		children->last = *pid;
		if (children->inner && !children->called && innermost_pid(*pid) == children->inner)
			children->called = *pid;
	}
}

static void add_all_children(struct prb_wait_context *c, struct children *children,
			     struct prb_str *s)
{
	const unsigned most = children->inner ? MAX_THREADS_OF_ONE : MAX_THREADS;
	prb_auto_pids struct prb_pids pids = {};

	if (prb_wait_ok(s, prb_target_children(c->target, most, &pids, &children->more)))
		note_children(&pids, children);
}

static void put_child(struct prb_wait_context *c, pid_t pid, struct prb_str *s)
{
	prb_enders_object(c, "child");
	prb_enders_add(c, pid);
	prb_enders_all(c, true);
	prb_str_puts(s, "child ");
	prb_describe_process(pid, s);
}

/* True if @p pid, in our pid namespace, is a child of the target. */
static bool is_own_child(struct prb_wait_context *c, pid_t pid)
{
	prb_auto_str struct prb_str line = {};
	struct prb_stat stat;

	return prb_proc_read(pid, "stat", &line) && prb_stat_parse(prb_str_text(&line), &stat) &&
	       stat.ppid == c->target->pid && innermost_pid(pid) == pid;
}

/*
 * @p inner is a pid of the target's pid namespace. If that is not ours, the child is found by its
 * innermost pid.
 */
static void put_child_called(struct prb_wait_context *c, pid_t inner, struct prb_str *s)
{
	struct children children = {.inner = inner};

	if (is_own_child(c, inner))
		children.called = inner;
	else
		add_all_children(c, &children, s);
	if (children.called)
		put_child(c, children.called, s);
	else
		prb_str_printf(s, "child %d", inner);
}

void prb_describe_child(struct prb_wait_context *c, pid_t pid, struct prb_str *s)
{
	struct children children = {};

	if (pid > 0) {
		put_child_called(c, pid, s);
		return;
	}
	if (pid < -1) {
		prb_enders_any_child(c);
		prb_str_printf(s, "any child in process group %lld", -(long long)pid);
		return;
	}
	add_all_children(c, &children, s);
	if (children.count != 1 || children.more)
		prb_enders_any_child(c);
	if (children.count == 1 && !children.more)
		put_child(c, children.first, s);
	else if (children.count && !children.more)
		prb_str_printf(s, "any of %u children", children.count);
	else
		prb_str_puts(s, "any child");
}

void prb_describe_newest_child(struct prb_wait_context *c, pid_t tid, struct prb_str *s)
{
	prb_auto_pids struct prb_pids pids = {};
	prb_auto_str struct prb_str list = {};

	if (prb_wait_ok(s, prb_target_read_file(c->target, &list, "task/%d/children", tid)) &&
	    prb_wait_ok(s, prb_pids_parse(prb_str_text(&list), &pids)) && pids.list.count)
		put_child(c, pids.list.items[pids.list.count - 1], s);
	else
		prb_str_puts(s, "its child");
}
