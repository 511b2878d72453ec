/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A command that runs for a client: the program itself, with pipes. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote/serve/serve_private.h"
#include "command/term.h"
#include "base/cleanup.h"
#include "command/program.h"
#include "control/pause_state.h"

/** Seconds from SIGTERM to SIGKILL. */
static const double PATIENCE = 2;

/** The pipes of a child: [0] is the reading end. */
struct pipes {
	int in[2], out[2], err[2];
};

static void pipes_close(struct pipes *pipes)
{
	int *const all[] = {pipes->in, pipes->out, pipes->err};

	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < 2; j++)
			if (all[i][j] >= 0)
				close(all[i][j]);
}

static struct prb_error *pipes_open(struct pipes *pipes, bool input)
{
	if (pipe2(pipes->out, O_CLOEXEC) || pipe2(pipes->err, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	if (input) {
		if (pipe2(pipes->in, O_CLOEXEC))
			return prb_error_os(errno, "cannot make a pipe");
		return NULL;
	}
	pipes->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return pipes->in[0] < 0 ? prb_error_os(errno, "cannot open /dev/null") : NULL;
}

/** Sets the variable with the address of the client. */
static void set_client(const struct sockaddr_storage *address)
{
	char host[NI_MAXHOST], port[NI_MAXSERV], text[sizeof(host) + sizeof(port) + 3];

	/* Commands tell by it that they run for a client. */
	setenv(PRB_PAUSE_CLIENT, "?", 1);
	if (getnameinfo((const struct sockaddr *)address, sizeof(*address), host, sizeof(host),
			port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	setenv(PRB_PAUSE_CLIENT, text, 1);
}

static void set_terminal(const struct prb_remote_run *run)
{
	char text[PRB_TERM_REMOTE_SIZE];

	unsetenv("PROBING_AUTH_TOKEN");
	unsetenv(PRB_TERM_REMOTE);
	if (!(run->flags & PRB_REMOTE_TERMINAL))
		return;
	prb_term_remote_text(run->columns, run->rows, run->flags & PRB_REMOTE_COLOUR,
			     run->flags & PRB_REMOTE_TERMINALS, text);
	setenv(PRB_TERM_REMOTE, text, 1);
}

/** The client that a command is run for. */
struct request {
	const struct prb_remote_run *run;
	const struct sockaddr_storage *client;
};

/** In the child. */
static void set_environment(const void *context)
{
	const struct request *request = context;

	set_terminal(request->run);
	set_client(request->client);
}

struct prb_error *prb_serve_child_start(struct prb_serve_child *child, struct prb_words *words,
					const struct prb_remote_run *run,
					const struct sockaddr_storage *client)
{
	__attribute__((cleanup(pipes_close))) struct pipes pipes = {{-1, -1}, {-1, -1}, {-1, -1}};
	const struct request request = {run, client};
	char **list;
	pid_t pid;

	PRB_TRY(prb_words_end(words, &list));
	PRB_TRY(pipes_open(&pipes, run->flags & PRB_REMOTE_INPUT));

	const struct prb_program program = {.words = list,
					    .itself = true,
					    .in = pipes.in[0],
					    .out = pipes.out[1],
					    .err = pipes.err[1],
					    .prepare = set_environment,
					    .context = &request};

	PRB_TRY(prb_program_start(&program, &pid));
	*child = (struct prb_serve_child){.pid = pid,
					  .in = prb_steal_fd(&pipes.in[1]),
					  .out = prb_steal_fd(&pipes.out[0]),
					  .err = prb_steal_fd(&pipes.err[0])};
	if (child->in >= 0)
		fcntl(child->in, F_SETFL, O_NONBLOCK);
	fcntl(child->out, F_SETFL, O_NONBLOCK);
	fcntl(child->err, F_SETFL, O_NONBLOCK);
	return NULL;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void prb_serve_child_feed(struct prb_serve_child *child)
{
	if (child->in >= 0 && child->input.length) {
		ssize_t written = write(child->in, child->input.data, child->input.length);

		if (written > 0) {
			prb_str_remove(&child->input, 0, (size_t)written);
			child->taken += (size_t)written;
		}
		/* It has no more use for it. */
		if (written < 0 && errno != EAGAIN && errno != EINTR)
			close_end(&child->in);
	}
	if (child->in < 0 && child->input.length) {
		child->taken += child->input.length;
		prb_str_truncate(&child->input, 0);
	}
	if (child->input_ended && !child->input.length)
		close_end(&child->in);
}

void prb_serve_child_kill(struct prb_serve_child *child, double now)
{
	if (!child->killed) {
		child->killed = now;
		kill(child->pid, SIGTERM);
	} else if (now - child->killed > PATIENCE) {
		kill(child->pid, SIGKILL);
	}
	close_end(&child->in);
	close_end(&child->out);
	close_end(&child->err);
}

bool prb_serve_child_reap(struct prb_serve_child *child, int *status)
{
	pid_t pid = waitpid(child->pid, status, WNOHANG);

	if (!pid || (pid < 0 && errno == EINTR))
		return false;
	if (pid < 0)
		*status = 1 << 8;
	close_end(&child->in);
	close_end(&child->out);
	close_end(&child->err);
	prb_str_deinit(&child->input);
	*child = PRB_SERVE_NO_CHILD;
	return true;
}
