/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/record/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "command/descriptors.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "target/ptrace/held_start.h"
#include "command/start.h"

enum { EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127 };

static volatile pid_t program; /* 0: none, or already waited for */
static bool held;	       /* at its first instruction */

struct child {
	int go;	    /* its other end closes when the program may call exec */
	int failed; /* closed by a successful exec; otherwise carries the errno */
};

/*
 * Passes signals on to the program. The terminal sends its signals to the program itself, but a
 * hangup only to the session leader.
 */
static void pass_on(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (program && (info->si_code != SI_KERNEL || (number == SIGHUP && getsid(0) == getpid())))
		kill(program, number);
}

/* An empty handler, so that SIGCHLD interrupts waits. */
static void notice(int number)
{
	(void)number;
}

static void catch_signals(void)
{
	static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
	struct sigaction pass = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO};
	struct sigaction child = {.sa_handler = notice}, before;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(passed); i++)
		if (!sigaction(passed[i], NULL, &before) &&
		    prb_interrupt_is_caught(passed[i], &before))
			sigaction(passed[i], &pass, NULL);
	sigaction(SIGCHLD, &child, NULL);
}

/* waitid() also reports stops of a traced thread. */
static bool has_ended(void *context)
{
	siginfo_t info = {};

	(void)context;
	return !waitid(P_PID, (id_t)program, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid &&
	       info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED;
}

static _Noreturn void run_program(char *const *words, const struct child *ends)
{
	char ignored;
	int reason;

	while (read(ends->go, &ignored, sizeof(ignored)) < 0 && errno == EINTR)
		;
	prb_descriptors_restore();
	reason = prb_start_become_typed(words);
	if (write(ends->failed, &reason, sizeof(reason)) < 0)
		_exit(EXIT_NOT_RUNNABLE);
	_exit(EXIT_NOT_FOUND);
}

static struct prb_error *cannot_run(const char *name, int reason)
{
	int code = reason == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;

	waitpid(program, NULL, 0);
	program = 0;
	prb_exit_report(prb_error_os(reason, "cannot run '%.200s'", name));
	prb_exit_pass(code << 8);
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s", "");
}

static struct prb_error *fork_child(char *const *words, struct child *ret)
{
	prb_auto_close int go_in = -1, failed_in = -1, go_out = -1, failed_out = -1;
	int go[2], failed[2];

	if (pipe2(go, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	go_out = go[0];
	go_in = go[1];
	if (pipe2(failed, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	failed_out = failed[0];
	failed_in = failed[1];
	program = fork();
	if (program < 0)
		return prb_error_os(errno, "cannot start a process");
	if (!program) {
		close(prb_steal_fd(&go_in));
		run_program(words, &(struct child){go_out, failed_in});
	}
	*ret = (struct child){prb_steal_fd(&go_in), prb_steal_fd(&failed_out)};
	return NULL;
}

/* The program is stopped at its first instruction if @p hold, and if possible. */
static struct prb_error *start_once(char *const *words, bool hold)
{
	prb_auto_close int failed = -1;
	struct child child = {};
	ssize_t n;
	int reason;

	PRB_TRY(fork_child(words, &child));
	failed = child.failed;
	catch_signals();
	hold = hold && prb_held_start_begin(program);
	close(child.go);
	held = hold && prb_held_start_await(program);
	do
		n = read(failed, &reason, sizeof(reason));
	while (n < 0 && errno == EINTR);
	return n == sizeof(reason) ? cannot_run(*words, reason) : NULL;
}

static void release(void *context)
{
	(void)context;
	if (held)
		prb_held_start_release(program);
	held = false;
}

/*
 * A traced exec loses the rights of a setuid program. It has run no instruction yet, so it is
 * started again, untraced.
 */
static struct prb_error *start(char *const *words)
{
	PRB_TRY(start_once(words, true));
	if (held && prb_held_start_lost_rights(program)) {
		kill(program, SIGKILL);
		release(NULL);
		waitpid(program, NULL, 0);
		PRB_TRY(start_once(words, false));
	}
	return NULL;
}

struct prb_error *prb_program_record(char *const *words, prb_program_recorder *record,
				     void *context, struct prb_recording **ret)
{
	struct prb_profile_program started = {.has_ended = has_ended, .release = release};
	enum prb_error_code code;
	struct prb_error *err;

	PRB_TRY(start(words));
	started.pid = program;
	err = record(context, &started, ret);
	release(NULL);
	if (!err)
		return NULL;
	code = err->code;
	prb_exit_report(prb_error_hint(err, "the program runs on; it is not recorded"));
	return prb_program_wait(prb_error_create(code, "%s", ""));
}

struct prb_error *prb_program_wait(struct prb_error *err)
{
	int status;

	while (waitpid(program, &status, 0) < 0)
		if (errno != EINTR)
			return err;
	program = 0;
	if (!err)
		prb_exit_pass(status);
	return err;
}
