/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/doctor/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { PATIENCE_SECONDS = 5 };

/* Exit statuses of a reader; lower values are an errno. */
enum { NO_ERRNO = 255 };

/* A limit of 1 is what the kernel starts no program for, either. */
static void no_core(void)
{
	const struct rlimit limit = {1, 1};

	setrlimit(RLIMIT_CORE, &limit);
}

static void wait_for_end(int hold)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(hold, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

struct prb_error *prb_trial_start(struct prb_trial *ret)
{
	int hold[2];

	*ret = (struct prb_trial){.hold = -1};
	if (pipe2(hold, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	ret->pid = fork();
	if (!ret->pid) {
		close(hold[1]);
		wait_for_end(hold[0]);
	}
	close(hold[0]);
	ret->hold = hold[1];
	if (ret->pid > 0)
		return NULL;
	close(hold[1]);
	return prb_error_os(errno, "cannot start a process to try on");
}

void prb_trial_end(struct prb_trial *trial)
{
	if (trial->pid <= 0)
		return;
	close(trial->hold);
	while (waitpid(trial->pid, NULL, 0) < 0 && errno == EINTR)
		;
	trial->pid = 0;
}

int prb_trial_run(const struct prb_trial *trial, int (*attempt)(pid_t pid, const char *name),
		  const char *name)
{
	pid_t reader = fork();
	int status;

	if (reader < 0)
		return PRB_TRIAL_NOT_STARTED;
	if (!reader) {
		close(trial->hold);
		no_core();
		signal(SIGALRM, SIG_DFL);
		alarm(PATIENCE_SECONDS);
		int result = attempt(trial->pid, name);
		_exit(result >= 0 && result < NO_ERRNO ? result : NO_ERRNO);
	}
	while (waitpid(reader, &status, 0) < 0)
		if (errno != EINTR)
			return PRB_TRIAL_NOT_STARTED;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGALRM ? PRB_TRIAL_HUNG : PRB_TRIAL_KILLED;
	return WEXITSTATUS(status);
}

const char *prb_trial_text(int result)
{
	switch (result) {
	case PRB_TRIAL_KILLED:
		return "whoever tries is killed, as by a seccomp filter";
	case PRB_TRIAL_HUNG:
		return "it did not end within 5 s";
	case PRB_TRIAL_NOT_STARTED:
		return "no process could be started for it";
	case NO_ERRNO:
		return "it failed";
	}
	return strerror(result);
}
