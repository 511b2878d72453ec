/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/hijack/run_to.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/ptrace/fault_step.h"
#include "base/clock.h"
#include "injector/hijack/mailbox.h"

enum {
	STOP_TIMEOUT_MS = 400,
	SIGNALS_MAX = 10000, /* that are passed on meanwhile */
};

struct run {
	struct prb_stop *stop;
	int fd;	    /* of the breakpoint */
	int signal; /* that it sends */
	bool asked; /* to stop, wherever it is */
	bool reached;
	double deadline;
};

/* A signal that is ignored by default and not blocked. */
static int choose_signal(pid_t tid)
{
	static const int harmless[] = {SIGURG, SIGWINCH, SIGCHLD};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(harmless); i++)
		if (!prb_stop_heeds_signal(tid, harmless[i]))
			return harmless[i];
	return 0;
}

static struct prb_error *no_breakpoint(const struct run *run)
{
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "no breakpoint for thread %d: %s",
				run->stop->tid, strerror(errno));
}

static struct prb_error *set_breakpoint(struct run *run, uint64_t address)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_X,
		.bp_addr = address,
		.bp_len = sizeof(long),
		.sample_period = 1,
		.wakeup_events = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct f_owner_ex owner = {F_OWNER_TID, run->stop->tid};

	run->signal = choose_signal(run->stop->tid);
	if (!run->signal)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"no signal can be sent to thread %d unnoticed",
					run->stop->tid);
	prb_fault_step();
	run->fd = (int)syscall(SYS_perf_event_open, &attr, run->stop->tid, -1, -1,
			       PERF_FLAG_FD_CLOEXEC);
	if (run->fd < 0 || fcntl(run->fd, F_SETOWN_EX, &owner) ||
	    fcntl(run->fd, F_SETSIG, run->signal) || fcntl(run->fd, F_SETFL, O_RDONLY | O_ASYNC))
		return no_breakpoint(run);
	prb_fault_step();
	return ioctl(run->fd, PERF_EVENT_IOC_ENABLE, 0) ? no_breakpoint(run) : NULL;
}

static bool is_ours(const struct run *run, int signal)
{
	siginfo_t info;

	return signal == run->signal && !ptrace(PTRACE_GETSIGINFO, run->stop->tid, NULL, &info) &&
	       info.si_fd == run->fd;
}

static struct prb_error *ask(struct run *run)
{
	run->asked = true;
	run->deadline = prb_clock_seconds() + STOP_TIMEOUT_MS / 1e3;
	return prb_stop_ask(run->stop);
}

/* One stop on the way. *done: the thread is stopped as it is to be left. */
static struct prb_error *take_stop(struct run *run, int status, bool *done)
{
	struct prb_stop *stop = run->stop;

	stop->stopped = true;
	if (status >> 16 == PTRACE_EVENT_STOP) {
		stop->group_stop = WSTOPSIG(status) != SIGTRAP;
		*done = run->asked || stop->group_stop;
		return *done ? NULL : prb_stop_go_on(stop);
	}
	stop->signal = WSTOPSIG(status);
	if (is_ours(run, stop->signal)) {
		stop->signal = 0;
		run->reached = true;
		*done = !run->asked; /* else it goes no further than to the stop asked for */
	}
	return *done ? NULL : prb_stop_go_on(stop);
}

/* In any case the thread is stopped in the end, if it still exists. */
static struct prb_error *wait_for_it(struct run *run)
{
	bool done = false;
	int status;

	for (int stops = 0; !done; stops++) {
		struct prb_error *err =
			prb_stop_await(run->stop, run->deadline, run->asked, &status);
		bool late = !run->asked && prb_error_catch(&err, PRB_ERROR_TIMEOUT);

		PRB_TRY(err);
		if (late || (stops == SIGNALS_MAX && !run->asked))
			PRB_TRY(ask(run));
		if (!late)
			PRB_TRY(take_stop(run, status, &done));
	}
	return NULL;
}

struct prb_error *prb_run_to(struct prb_stop *stop, uint64_t address, int timeout_ms, bool *reached)
{
	struct run run = {.stop = stop, .fd = -1};

	*reached = false;
	/* It runs meanwhile: the first breakpoint of a machine takes milliseconds to set. */
	PRB_TRY(prb_stop_go_on(stop));

	struct prb_error *err = set_breakpoint(&run, address);
	run.deadline = prb_clock_seconds() + (err ? 0 : timeout_ms / 1e3);
	struct prb_error *late = wait_for_it(&run);
	if (run.fd >= 0)
		close(run.fd);
	*reached = run.reached && !stop->group_stop;
	if (late)
		prb_error_destroy(err);
	return late ? late : err;
}
