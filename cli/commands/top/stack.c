/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The stack of one thread with variables and source, as `backtrace` prints it. That runs as a
 * process of its own, so that its reading does not disturb the sampler.
 */
#include "cli/commands/top/top.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "command/start.h"

extern char **environ;

enum { MOST_BYTES = 1 << 20 };

/* All that is printed, up to a limit; what is longer is said to be. */
static void read_all(int fd, struct prb_str *s)
{
	char chunk[8192];
	ssize_t got;

	while ((got = read(fd, chunk, sizeof(chunk))) > 0 || (got < 0 && errno == EINTR)) {
		if (got > 0 && s->length < MOST_BYTES)
			prb_str_append(s, chunk, (size_t)got);
	}
	if (s->length >= MOST_BYTES)
		prb_str_puts(s, "\n… the rest is left out\n");
}

/* Signals have their usual effect there, and stderr shows in the page. */
static int spawn(pid_t pid, pid_t tid, int out, pid_t *ret)
{
	char target[16], thread[16];
	char *arguments[] = {"probing", target,	    "backtrace", "--tid",
			     thread,	"--locals", "--source",	 NULL};
	posix_spawn_file_actions_t actions;
	int failed;

	snprintf(target, sizeof(target), "%d", (int)pid);
	snprintf(thread, sizeof(thread), "%d", (int)tid);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
	failed = prb_start_child(arguments, true, &actions, ret);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

struct prb_error *prb_top_read_stack(struct prb_top *top)
{
	const struct prb_recording *r = prb_live_recording(top->live);
	int ends[2], failed;
	pid_t child;

	if (!top->stack_of)
		return NULL;
	if (pipe2(ends, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	/* Only one of us may hold a thread. */
	pthread_mutex_lock(top->gate);
	failed = spawn(r->pid, top->stack_of, ends[1], &child);
	close(ends[1]);
	prb_str_truncate(&top->stack, 0);
	if (!failed) {
		read_all(ends[0], &top->stack);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	pthread_mutex_unlock(top->gate);
	close(ends[0]);
	return failed ? prb_error_os(failed, "cannot start 'probing backtrace'") : NULL;
}

/* Without its head, which the page has already. */
void prb_top_put_stack(const struct prb_top *top, struct prb_str *s)
{
	const char *text = prb_str_text(&top->stack), *body = strstr(text, "\n\n");

	prb_str_printf(s, "thread %d\n", (int)top->stack_of);
	prb_str_puts(s, body ? body + 2 : text);
}
