/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/performance_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "command/exit.h"

enum { EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127 };

static volatile pid_t program; /* 0: none, or it was waited for */

/* The terminal sends its signals to the program as well. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (program && info->si_code != SI_KERNEL)
		kill(program, number);
}

/* Only so it ends a wait. */
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
		if (!sigaction(passed[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(passed[i], &pass, NULL);
	sigaction(SIGCHLD, &child, NULL);
}

/* A stop of a thread that is traced is reported too. */
static bool has_ended(void *context)
{
	siginfo_t info = {};

	(void)context;
	return !waitid(P_PID, (id_t)program, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid &&
	       info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED;
}

/* The end that is written to closes when the program runs; else it brings the reason. */
static _Noreturn void run_program(char *const *words, int failed)
{
	int reason;

	execvp(*words, words);
	reason = errno;
	if (write(failed, &reason, sizeof(reason)) < 0)
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

static struct prb_error *start(char *const *words)
{
	prb_auto_close int failed = -1;
	int ends[2], reason;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	failed = ends[0];
	program = fork();
	if (!program)
		run_program(words, ends[1]);
	close(ends[1]);
	if (program < 0)
		return prb_error_os(errno, "cannot start a process");
	catch_signals();
	do
		n = read(failed, &reason, sizeof(reason));
	while (n < 0 && errno == EINTR);
	return n == sizeof(reason) ? cannot_run(*words, reason) : NULL;
}

struct prb_error *prb_program_record(char *const *words, prb_program_recorder *record,
				     void *context, struct prb_recording **ret)
{
	struct prb_profile_program started = {.has_ended = has_ended};
	enum prb_error_code code;
	struct prb_error *err;

	PRB_TRY(start(words));
	started.pid = program;
	err = record(context, &started, ret);
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
