/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread that waits for ZeroMQ sleeps on an eventfd, which an I/O thread of libzmq signals when a
 * message comes. That thread waits in epoll for the connections of all sockets of its context, so
 * the processes at their other ends can end the wait; by which socket is not known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/waits/wait_private.h"

enum {
	CALLERS = 24, /* words of the stack, among them the address that poll() returns to */
	MOST_THREADS = 1024,
	MOST_SOCKETS = 64,
};

static const char IO_THREAD[] = "ZMQbg/IO/";

/* True if the C library's function returns to libzmq. */
static bool is_called_by_libzmq(struct prb_wait_context *c, struct prb_str *s)
{
	uint64_t stack[CALLERS];

	if (!c->sp || !prb_wait_ok(s, prb_mem_read(c->mem, c->sp, stack, sizeof(stack))))
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(stack); i++) {
		const struct prb_map *map = prb_shared_map_at(c, stack[i]);
		const char *name = map && map->exec ? strrchr(map->path, '/') : NULL;

		if (name && !strncmp(name, "/libzmq", strlen("/libzmq")))
			return true;
	}
	return false;
}

/* Notes the other ends of the sockets that the I/O thread watches. */
static void note_sockets(struct prb_wait_context *c, pid_t tid, struct prb_str *s)
{
	prb_auto_str struct prb_str info = {}, unused = {};
	struct prb_task task;
	const char *call;
	unsigned count = 0;

	if (!prb_wait_ok(s, prb_task_read(c->target, tid, &task)) || !task.in_syscall)
		return;
	call = prb_syscall_name(c->target->machine, task.syscall);
	if (!call || strncmp(call, "epoll_", strlen("epoll_")) != 0 ||
	    !prb_wait_ok(s, prb_target_read_file(c->target, &info, "fdinfo/%d",
						 (int)(int32_t)task.args[0])))
		return;
	for (const char *line = prb_str_text(&info); line; line = strchr(line, '\n')) {
		prb_auto_str struct prb_str link = {};
		int fd;

		line += *line == '\n';
		if (sscanf(line, "tfd: %d", &fd) == 1 && count++ < MOST_SOCKETS &&
		    prb_wait_ok(s, prb_target_read_link(c->target, &link, "fd/%d", fd)) &&
		    prb_link_inode(prb_str_text(&link), "socket"))
			prb_describe_fd(c, fd, PRB_EITHER_WAY, &unused);
	}
	s->failed |= unused.failed;
}

void prb_describe_zeromq(struct prb_wait_context *c, struct prb_str *s)
{
	prb_auto_str struct prb_str list = {};
	char *end;

	if (!is_called_by_libzmq(c, s))
		return;
	prb_str_puts(s, " of ZeroMQ");
	prb_enders_object(c, "zmq");
	if (!c->enders || !c->search_all ||
	    !prb_wait_ok(s, prb_target_list(c->target, &list, "task")))
		return;
	end = (char *)prb_str_text(&list);
	for (unsigned n = 0; n < MOST_THREADS; n++) {
		prb_auto_str struct prb_str name = {};
		const char *at = end;
		pid_t tid = (pid_t)strtol(at, &end, 10);

		if (end == at)
			return;
		if (prb_wait_ok(s, prb_target_read_file(c->target, &name, "task/%d/comm", tid)) &&
		    !strncmp(prb_str_text(&name), IO_THREAD, strlen(IO_THREAD)))
			note_sockets(c, tid, s);
	}
}
