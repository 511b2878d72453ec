/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread that waits for ZeroMQ sleeps on an eventfd, which an I/O thread of libzmq signals when a
 * message comes. It is that of a socket, whose connections lead to the processes that can end the
 * wait. If no such socket is found, these are the other ends of all that the I/O threads watch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/waits/wait_private.h"
#include "dump/zeromq/zeromq.h"

enum {
	MOST_THREADS = 1024,
	MOST_SOCKETS = 64,
};

static const char IO_THREAD[] = "ZMQbg/IO/";

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

static void note_all(struct prb_wait_context *c, struct prb_str *s)
{
	prb_auto_str struct prb_str list = {};
	char *end;

	if (!prb_wait_ok(s, prb_target_list(c->target, &list, "task")))
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

static bool has_libzmq(struct prb_wait_context *c)
{
	const struct prb_map *map;

	prb_shared_map_at(c, 0);
	if (c->maps)
		prb_vec_each (map, &c->maps->list)
			if (map->exec && strstr(map->path, "zmq"))
				return true;
	return false;
}

void prb_wait_zeromq_destroy(struct prb_zeromq *zeromq)
{
	if (!zeromq)
		return;
	prb_zeromq_deinit(zeromq);
	free(zeromq);
}

static const struct prb_zeromq_socket *find_socket(struct prb_wait_context *c, int fd,
						   struct prb_str *s)
{
	if (!c->zeromq) {
		c->zeromq = calloc(1, sizeof(*c->zeromq));
		if (!c->zeromq)
			s->failed = true;
		else if (has_libzmq(c))
			(void)prb_wait_ok(s, prb_zeromq_read(c->target, c->zeromq));
	}
	return c->zeromq ? prb_zeromq_socket_of(c->zeromq, fd) : NULL;
}

static bool is_connected(const struct prb_zeromq_socket *socket)
{
	const struct prb_zeromq_pipe *pipe;

	prb_vec_each (pipe, &socket->pipes)
		if (pipe->fd >= 0 || pipe->other)
			return true;
	return false;
}

static void put_socket(const struct prb_zeromq_socket *socket, struct prb_str *s)
{

	prb_str_printf(s, " %s", socket->type);
	if (socket->endpoint.length) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, prb_str_text(&socket->endpoint));
	}
	if (!is_connected(socket))
		prb_str_puts(s, ", not connected");
}

static void note_peers(struct prb_wait_context *c, const struct prb_zeromq_socket *socket,
		       struct prb_str *s)
{
	const struct prb_zeromq_pipe *pipe;
	unsigned count = 0;

	prb_vec_each (pipe, &socket->pipes) {
		prb_auto_str struct prb_str unused = {};

		if (pipe->other)
			prb_enders_add(c, c->target->pid);
		if (pipe->fd < 0 || count++ >= MOST_SOCKETS)
			continue;
		prb_describe_fd(c, pipe->fd, PRB_EITHER_WAY, &unused);
		s->failed |= unused.failed;
	}
}

bool prb_describe_zeromq(struct prb_wait_context *c, int fd, const char *words, struct prb_str *s)
{
	const struct prb_zeromq_socket *socket = find_socket(c, fd, s);
	unsigned before;

	if (!socket && !(*words == 'e' && prb_is_called_by(c, "libzmq", s)))
		return false;
	prb_str_printf(s, "%s %d of ZeroMQ", words, fd);
	if (socket)
		put_socket(socket, s);
	prb_enders_object(c, "zmq");
	if (c->enders && socket)
		snprintf(c->enders->what, sizeof(c->enders->what), "%s",
			 prb_str_text(&socket->endpoint));
	/* A server waits for its first client; those that it has are judged themselves. */
	if (socket && socket->listens && !is_connected(socket))
		prb_enders_outside(c);
	if (!c->enders || !c->search)
		return true;
	before = c->enders->count;
	if (socket)
		note_peers(c, socket, s);
	else
		note_all(c, s);
	/* They are found by the connections of the socket that is waited for. */
	for (unsigned i = before; i < PRB_MIN(c->enders->count, (unsigned)PRB_MOST_ENDERS); i++)
		c->enders->kinds[i] = "zmq";
	return true;
}
