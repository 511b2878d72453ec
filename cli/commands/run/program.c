/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/run/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands/run/tree.h"
#include "command/descriptors.h"
#include "command/exit.h"
#include "command/start.h"

enum { EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127 };

static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

/* What the program inherits. */
static sigset_t mask_before;
static struct sigaction child_before, pipe_before;
static sigset_t waited; /* what prb_started_wait() takes */

/** Signals that are ignored stay so: a blocked one would be queued. */
static void block_signals(void)
{
	const struct sigaction plain = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
	struct sigaction before;

	sigemptyset(&waited);
	sigaddset(&waited, SIGCHLD);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(passed); i++)
		if (!sigaction(passed[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaddset(&waited, passed[i]);
	/* An inherited SIG_IGN would reap our children unseen. */
	sigaction(SIGCHLD, &plain, &child_before);
	/* Who closes the pipe of the report must not keep the program from being ended. */
	sigaction(SIGPIPE, &ignored, &pipe_before);
	sigprocmask(SIG_BLOCK, &waited, &mask_before);
}

static _Noreturn void become(char *const *words, int failed)
{
	int reason;

	sigaction(SIGCHLD, &child_before, NULL);
	sigaction(SIGPIPE, &pipe_before, NULL);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
	prb_descriptors_restore();
	reason = prb_start_become_typed(words);
	if (write(failed, &reason, sizeof(reason)) < 0)
		_exit(EXIT_NOT_RUNNABLE);
	_exit(EXIT_NOT_FOUND);
}

static struct prb_error *cannot_run(const char *name, int reason, struct prb_started *program)
{
	int code = reason == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;

	waitpid(program->pid, NULL, 0);
	program->ended = true;
	prb_exit_report(prb_error_os(reason, "cannot run '%.200s'", name));
	prb_exit_pass(code << 8);
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s", "");
}

struct prb_error *prb_started_begin(char *const *words, struct prb_started *ret)
{
	prb_auto_close int in = -1, out = -1;
	int ends[2], reason;
	ssize_t n;

	*ret = (struct prb_started){};
	if (pipe2(ends, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	out = ends[0];
	in = ends[1];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	block_signals();
	ret->pid = fork();
	if (ret->pid < 0)
		return prb_error_os(errno, "cannot start a process");
	if (!ret->pid)
		become(words, in);
	prb_close_guard(&in);
	do
		n = read(out, &reason, sizeof(reason));
	while (n < 0 && errno == EINTR);
	return n == sizeof(reason) ? cannot_run(*words, reason, ret) : NULL;
}

/** A shell can resume us: it leads the session of our terminal. */
static bool has_shell(void)
{
	prb_auto_close int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	return terminal >= 0 && getsid(0) != getpid() && getsid(0) != getpgrp();
}

/** Stops as the program did, and returns when both run again. */
static bool stop_along(const struct prb_started *program, int number)
{
	if ((number != SIGTSTP && number != SIGTTIN && number != SIGTTOU) || !has_shell())
		return false;
	raise(SIGSTOP);
	kill(program->pid, SIGCONT);
	return true;
}

/** Reaps what has ended; *stopped: we were stopped along with the program. */
static void reap(struct prb_started *program, bool *stopped)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != program->pid)
			continue;
		if (WIFSTOPPED(status)) {
			*stopped = stop_along(program, WSTOPSIG(status)) || *stopped;
			continue;
		}
		program->ended = true;
		program->status = status;
	}
}

/** The terminal's signals reach the program by themselves; a hangup only its session's leader. */
static bool is_for_us_alone(const siginfo_t *info)
{
	return info->si_code != SI_KERNEL || (info->si_signo == SIGHUP && getsid(0) == getpid());
}

static enum prb_started_event take(struct prb_started *program, const siginfo_t *info, bool *done)
{
	bool stopped = false;

	*done = true;
	if (info->si_signo == SIGCHLD) {
		reap(program, &stopped);
		*done = program->ended || stopped;
		return program->ended ? PRB_STARTED_ENDED : PRB_STARTED_RESUMED;
	}
	if (info->si_signo == SIGCONT) {
		kill(program->pid, SIGCONT);
		return PRB_STARTED_RESUMED;
	}
	*done = false;
	if (!is_for_us_alone(info))
		return PRB_STARTED_TIME;
	*done = info->si_signo == SIGTERM || info->si_signo == SIGINT;
	if (*done)
		program->asked = info->si_signo;
	else
		kill(program->pid, info->si_signo);
	return PRB_STARTED_ASKED;
}

enum prb_started_event prb_started_wait(struct prb_started *program, double seconds)
{
	double end = prb_clock_seconds() + seconds;

	while (!program->ended) {
		double left = PRB_MAX(end - prb_clock_seconds(), 0);
		struct timespec time = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
		siginfo_t info;
		bool done;
		int number = sigtimedwait(&waited, &info, &time);

		if (number < 0 && errno == EAGAIN)
			return PRB_STARTED_TIME;
		if (number < 0)
			continue;

		enum prb_started_event event = take(program, &info, &done);
		if (done)
			return event;
	}
	return PRB_STARTED_ENDED;
}

void prb_started_pass(struct prb_started *program)
{
	/* Its number is its own as long as it is not reaped, which only we do. */
	if (!program->ended && program->asked)
		kill(program->pid, program->asked);
	program->asked = 0;
}

/** Waits until no process is left, the program too, or until the time is over. */
static struct prb_error *await_end(struct prb_started *program, struct prb_tree *tree,
				   double seconds)
{
	double end = prb_clock_seconds() + seconds;

	for (;;) {
		bool stopped = false;
		struct timespec moment = {0, 10000000};

		reap(program, &stopped);
		PRB_TRY(prb_tree_look(tree));
		if ((program->ended && !tree->list.count) || prb_clock_seconds() >= end)
			return NULL;
		sigtimedwait(&waited, NULL, &moment);
	}
}

struct prb_error *prb_started_end(struct prb_started *program, double grace)
{
	prb_auto_tree struct prb_tree tree = {.root = getpid()};
	enum { ROUNDS = 100 }; /* processes may be started while others are killed */
	size_t count;

	PRB_TRY(prb_tree_look(&tree));
	if (!program->ended) {
		kill(program->pid, SIGTERM);
		if (prb_tree_find(&tree, program->pid) &&
		    prb_tree_find(&tree, program->pid)->state == 'T')
			kill(program->pid, SIGCONT);
	}
	PRB_TRY(await_end(program, &tree, grace / 2));
	if (tree.list.count) {
		prb_tree_signal(&tree, SIGTERM, &count);
		PRB_TRY(await_end(program, &tree, grace / 2));
	}
	for (int round = 0; round < ROUNDS && tree.list.count; round++) {
		prb_tree_signal(&tree, SIGKILL, &count);
		PRB_TRY(await_end(program, &tree, 0.1));
	}
	return NULL;
}

void prb_started_exit(const struct prb_started *program)
{
	if (WIFSIGNALED(program->status) && WTERMSIG(program->status) != SIGINT)
		prb_exit_pass((128 + WTERMSIG(program->status)) << 8);
	else
		prb_exit_pass(program->status);
}
