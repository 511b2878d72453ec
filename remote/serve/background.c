/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/serve/background.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/client.h"
#include "command/background.h"
#include "remote/serve/known.h"
#include "base/cleanup.h"
#include "base/str.h"

/** Causes of its end, in the order of prb_serve.ends. */
enum end { END_PROCESS, END_AGENT, END_SIGNAL, END_COUNT };

/** Descriptors that the server keeps of its parent's. */
enum kept { KEPT_LISTENER = PRB_BACKGROUND_KEPT, KEPT_PROCESS };

struct background {
	pid_t pid;
	struct prb_listener listener;
	struct prb_token token;
	struct prb_target *target;
	struct prb_agent *agent;
	int ends[END_COUNT];
	bool once;
	prb_serve_http *http;
	int http_socket; /* -1: it was not started */
	pid_t http_pid;
};

static int pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/** Watches the agent by a connection that says nothing: at its end, the agent has stopped. */
static struct prb_error *watch_agent(struct background *b)
{
	prb_agent_close(prb_steal(&b->agent));
	b->ends[END_AGENT] = -1;
	PRB_TRY(prb_agent_connect(b->target, &b->agent));
	b->ends[END_AGENT] = prb_agent_descriptor(b->agent);
	return NULL;
}

/** A program that closes all descriptors has not stopped the agent, which lets us in again. */
static bool ended(void *context, size_t which)
{
	if (which != END_AGENT)
		return true;

	prb_auto_error struct prb_error *err = watch_agent(context);
	return err;
}

/** Commands are run from another folder. */
static void resolve_agent(void)
{
	const char *said = getenv("PROBING_AGENT");
	prb_auto_free char *path = said && *said ? realpath(said, NULL) : NULL;

	if (path)
		setenv("PROBING_AGENT", path, 1);
	if (chdir("/"))
		return;
}

static struct prb_error *prepare(struct background *b)
{
	struct pollfd process = {.fd = KEPT_PROCESS, .events = POLLIN};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	b->ends[END_PROCESS] = KEPT_PROCESS;
	b->ends[END_SIGNAL] = signalfd(-1, &signals, SFD_CLOEXEC);
	PRB_TRY(prb_target_open_process(b->pid, &b->target));
	/* The opened process is still the intended one. */
	if (poll(&process, 1, 0))
		return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has ended", (int)b->pid);
	return watch_agent(b);
}

/** In the child: no descriptor of the server is open there, so that its end is seen. */
static void be_http(struct background *b, int from)
{
	dup3(from, KEPT_LISTENER, O_CLOEXEC);
	syscall(SYS_close_range, KEPT_LISTENER + 1, ~0u, 0);
	b->http(KEPT_LISTENER, b->pid, b->listener.address, &b->token);
	_exit(0);
}

/** Starts it when it is needed, and again if it has ended, which closes its socket. */
static int http_socket(void *context)
{
	struct background *b = context;
	struct pollfd other = {.fd = b->http_socket, .events = 0};
	int ends[2];
	pid_t child;

	if (b->http_socket >= 0 && !poll(&other, 1, 0))
		return b->http_socket;
	if (b->http_socket >= 0)
		close(b->http_socket);
	b->http_socket = -1;
	if (b->http_pid > 0)
		waitpid(b->http_pid, NULL, 0);
	b->http_pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	child = fork();
	if (!child)
		be_http(b, ends[1]);
	close(ends[1]);
	if (child < 0)
		close(ends[0]);
	else
		b->http_socket = ends[0];
	b->http_pid = child;
	return b->http_socket;
}

static void be_server(void *context, int report)
{
	struct background *b = context;
	struct prb_serve_known known = PRB_SERVE_UNKNOWN;
	prb_auto_free char *target = prb_format("%d", (int)b->pid);
	struct prb_error *err;

	b->listener.fd = KEPT_LISTENER;
	resolve_agent();
	err = prepare(b);
	/* Without the note, which another user can prevent, all works but `probing list`. */
	if (!err)
		prb_error_destroy(prb_serve_known_add(&known, b->pid, b->listener.address));
	prb_background_report(report, err, "");
	if (!err)
		err = prb_serve(&(struct prb_serve){.listener = &b->listener,
						    .token = &b->token,
						    .pid = b->pid,
						    .target = target,
						    .once = b->once,
						    .ends = b->ends,
						    .end_count = END_COUNT,
						    .ended = ended,
						    .http = b->http ? http_socket : NULL,
						    .context = b});
	prb_serve_known_remove(&known);
	_exit(err ? 1 : 0);
}

struct prb_error *prb_serve_background(pid_t pid, const struct prb_listener *listener,
				       const struct prb_token *token, bool once,
				       prb_serve_http *http)
{
	prb_auto_close int process = pidfd_open(pid);
	struct background b = {.pid = pid,
			       .listener = *listener,
			       .token = *token,
			       .once = once,
			       .ends = {-1, -1, -1},
			       .http = once ? NULL : http,
			       .http_socket = -1};
	prb_auto_str struct prb_str said = {};

	if (process < 0)
		return prb_error_os(errno, "cannot watch process %d", (int)pid);

	const struct prb_background server = {.name = "the server",
					      .kept = {listener->fd, process},
					      .kept_count = 2,
					      .run = be_server,
					      .context = &b};
	return prb_error_prefix(prb_background_start(&server, &said), "the server did not start");
}
