/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/ptrace/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "target/ptrace/arch.h"
#include "target/ptrace/fault_step.h"
#include "target/ptrace/seccomp.h"
#include "target/ptrace/unstopped.h"
#include "base/clock.h"

enum { NAP_NS = 500000, SHORT_NAP_NS = 100000 };

/* Seconds: we were stopped ourselves, which does not count as waiting. */
static const double standstill = 0.1;
static const double burial_timeout = 1.0;   /* for a thread that was killed to end */
static const double runnable_timeout = 1.0; /* more, for a thread that waits for a processor */
static const double turn_timeout = 1.0;	    /* for another command that has the thread */

struct status {
	char state;   /* as in stat; 0 if the thread is gone */
	pid_t tracer; /* 0: none */
	pid_t parent;
	/* Signals, bit N-1 for signal N: that wait and are not blocked; that the program blocks or
	 * handles. */
	unsigned long long pending, heeded;
};

static pid_t kept_child; /* whose exit status is not ours to take */

void prb_stop_keep_status(pid_t pid)
{
	kept_child = pid;
}

static struct status read_status(pid_t tid)
{
	char path[48], line[256];
	unsigned long long own = 0, shared = 0, blocked = 0, caught = 0;
	struct status status = {};

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	prb_auto_fclose FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "State: %c", &status.state);
		sscanf(line, "TracerPid: %d", &status.tracer);
		sscanf(line, "PPid: %d", &status.parent);
		sscanf(line, "SigPnd: %llx", &own);
		sscanf(line, "ShdPnd: %llx", &shared);
		sscanf(line, "SigBlk: %llx", &blocked);
		sscanf(line, "SigCgt: %llx", &caught);
	}
	status.pending = (own | shared) & ~blocked;
	status.heeded = blocked | caught;
	return status;
}

struct prb_error *prb_stop_seize(pid_t tid, struct prb_stop *ret)
{
	*ret = (struct prb_stop){.tid = tid};
	prb_unstopped_begin();
	prb_fault_step();
	if (!ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD)) {
		ret->seized = true;
		return NULL;
	}

	int os_errno = errno;
	prb_unstopped_end();
	if (os_errno != EPERM)
		return prb_error_os(os_errno, "cannot stop thread %d", tid);

	/* The kernel says the same of threads that end, that have a tracer, and that it protects.
	 */
	struct status status = read_status(tid);
	if (!status.state || strchr("ZX", status.state))
		return prb_error_os(ESRCH, "thread %d has ended", tid);
	/* The known thread is gone, and the one that called exec() has its tid. */
	if (status.tracer == gettid())
		return prb_error_hint(
			prb_error_create(PRB_ERROR_FAILED, "another program was executed"),
			"try again");
	ret->tracer = status.tracer;
	if (status.tracer)
		return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
						       "thread %d is being traced by process %d",
						       tid, status.tracer),
				      "stop it there, or read with --nonblocking");

	return prb_error_hint(prb_error_os(EPERM, "cannot stop thread %d", tid),
			      "ptrace is forbidden here: read with --nonblocking, or start "
			      "the container with --cap-add SYS_PTRACE or --security-opt "
			      "seccomp=unconfined");
}

struct prb_error *prb_stop_seize_after(pid_t tid, double *patience, struct prb_stop *ret)
{
	double begin = prb_clock_seconds(), end = begin + *patience;
	bool nameless =
		false; /* its tracer was gone before its name was known, or it is forbidden */

	for (;;) {
		struct prb_error *err = prb_stop_seize(tid, ret);
		double now = prb_clock_seconds();

		if (!err || err->code != PRB_ERROR_PERMISSION || (!ret->tracer && nameless) ||
		    now >= end) {
			*patience = PRB_MAX(end - now, 0.0);
			return err;
		}
		nameless = !ret->tracer;
		prb_error_destroy(err);
		nanosleep(&(struct timespec){.tv_nsec = SHORT_NAP_NS}, NULL);
	}
}

struct prb_error *prb_stop_seize_in_turn(pid_t tid, struct prb_stop *ret)
{
	double end = prb_clock_seconds() + turn_timeout;

	for (;;) {
		struct prb_error *err = prb_stop_seize(tid, ret);

		if (!err || err->code != PRB_ERROR_PERMISSION || prb_clock_seconds() > end)
			return err;
		prb_error_destroy(err);
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	}
}

struct prb_error *prb_stop_lose(struct prb_stop *stop)
{
	*stop = (struct prb_stop){.tid = stop->tid};
	prb_unstopped_end();
	return prb_error_os(ESRCH, "thread %d is gone", stop->tid);
}

struct waiting {
	double deadline;
	bool patient; /* may be extended once */
};

/*
 * A thread that waits for a processor stops when it gets one, which takes its time on a busy
 * machine; one asleep in the kernel may never stop.
 */
static struct prb_error *late(const struct prb_stop *stop, struct waiting *w)
{
	char state = read_status(stop->tid).state;
	bool runs = state == 'R' || state == 't'; /* or has stopped since it was asked */

	if (runs && w->patient) {
		w->patient = false;
		w->deadline += runnable_timeout;
		return NULL;
	}
	return prb_error_create(PRB_ERROR_TIMEOUT,
				runs ? "thread %d does not stop: it gets no CPU time"
				     : "thread %d does not stop: it sleeps in the kernel",
				stop->tid);
}

static bool tells_stop(const siginfo_t *info)
{
	return info->si_code == CLD_TRAPPED || info->si_code == CLD_STOPPED;
}

/*
 * As waitpid() without waiting, but -1 for an end whose status is another's to take. A traced
 * thread's stop is reported even where only ends are asked for.
 */
static pid_t take_status(pid_t tid, int *status)
{
	siginfo_t info = {};

	if (tid != kept_child)
		return waitpid(tid, status, __WALL | WNOHANG);
	if (waitid(P_PID, (id_t)tid, &info, WEXITED | WSTOPPED | __WALL | WNOHANG | WNOWAIT))
		return -1;
	if (!info.si_pid)
		return 0;
	if (!tells_stop(&info)) {
		errno = ECHILD;
		return -1;
	}
	if (waitid(P_PID, (id_t)tid, &info, WSTOPPED | __WALL | WNOHANG))
		return -1;
	*status = info.si_status << 8 | 0x7f;
	return info.si_pid;
}

/* Asks once; *got is 0 as long as it runs. */
static struct prb_error *look(struct prb_stop *stop, struct waiting *w, pid_t *got, int *status)
{
	double last = stop->begin;

	*got = take_status(stop->tid, status);
	if (*got == stop->tid)
		return NULL;
	if (*got < 0 && errno != EINTR)
		return prb_error_os(ESRCH, "thread %d is gone", stop->tid);
	*got = 0;
	stop->begin =
		prb_clock_seconds(); /* still running at this moment: the pause is not longer */
	if (stop->begin - last > standstill)
		w->deadline += stop->begin - last;
	return stop->begin > w->deadline ? late(stop, w) : NULL;
}

/*
 * Waits for the stop: a few polls, since a thread on another processor stops within microseconds;
 * then SIGCHLD, which is blocked in this thread (unstopped.h) and taken from the queue, so that no
 * handler runs. A thread that is to run where we do waits for us to sleep, the next time too.
 */
struct prb_error *prb_stop_await(struct prb_stop *stop, double deadline, bool patient, int *status)
{
	enum { POLLS = 64, SHORTEST_NAP_NS = 100000, LONGEST_NAP_NS = 1000000, NAP_SHARE = 4 };
	/* Seconds: it was not for want of our processor, if it took longer. */
	static const double polled = 200e-6, unpolled = 30e-6;
	int polls_most = stop->shares ? 0 : POLLS;
	double begin = prb_clock_seconds(), longest = stop->shares ? unpolled : polled;
	struct waiting waiting = {deadline, patient};
	sigset_t chld;
	pid_t got;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	for (int polls = 0;; polls++) {
		PRB_TRY(look(stop, &waiting, &got, status));
		if (got > 0)
			break;
		/*
		 * Another thread may have taken the signal: look again from time to time. The
		 * shorter that is, the better is known when it stopped.
		 */
		double waited = prb_clock_seconds() - begin;
		long nap = PRB_MAX((long)(waited * 1e9 / NAP_SHARE), (long)SHORTEST_NAP_NS);
		if (polls >= polls_most)
			sigtimedwait(
				&chld, NULL,
				&(struct timespec){.tv_nsec = PRB_MIN(nap, (long)LONGEST_NAP_NS)});
		stop->shares = polls >= polls_most && prb_clock_seconds() - begin < longest;
	}
	return WIFSTOPPED(*status) ? NULL : prb_stop_lose(stop);
}

struct prb_error *prb_stop_ask(struct prb_stop *stop)
{
	if (!stop->stopped)
		stop->in_call = prb_arch_in_call(stop->tid);
	stop->begin = prb_clock_seconds();
	prb_fault_step();
	if (ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL))
		return prb_error_os(errno, "cannot stop thread %d", stop->tid);
	return NULL;
}

struct prb_error *prb_stop_wait(struct prb_stop *stop, int timeout_ms)
{
	int status;

	PRB_TRY(prb_stop_await(stop, stop->begin + timeout_ms / 1e3, true, &status));
	stop->stopped = true;
	if (status >> 16 == PTRACE_EVENT_STOP)
		stop->group_stop = WSTOPSIG(status) != SIGTRAP;
	else
		stop->signal = WSTOPSIG(status); /* came first; delivered when it is let go */
	return NULL;
}

bool prb_stop_signals_pending(pid_t tid)
{
	return read_status(tid).pending;
}

bool prb_stop_heeds_signal(pid_t tid, int signal)
{
	return read_status(tid).heeded >> (signal - 1) & 1;
}

bool prb_stop_slept(const struct prb_stop *stop)
{
	return stop->stopped && prb_arch_slept(stop->tid, stop->in_call);
}

bool prb_stop_call(const struct prb_stop *stop, struct prb_task *ret)
{
	return stop->stopped && prb_arch_call(stop->tid, stop->in_call, ret);
}

struct prb_error *prb_stop_registers(struct prb_stop *stop, struct prb_regs *ret)
{
	return prb_arch_registers(stop->tid, ret);
}

/* A call that a real signal has interrupted is to return EINTR, so that it is noticed. */
bool prb_stop_restart_call(const struct prb_stop *stop)
{
	if (!stop->stopped || stop->signal)
		return false;
	/* Only the kernel makes this call, so a filter may lack it. */
	if (!prb_arch_call_interrupted(stop->tid, stop->in_call) &&
	    !(prb_arch_call_resumes(stop->tid) &&
	      prb_seccomp_forbids(stop->tid, SYS_restart_syscall)))
		return false;
	return !prb_stop_signals_pending(stop->tid) && prb_arch_restart_call(stop->tid);
}

struct prb_error *prb_stop_go_on(struct prb_stop *stop)
{
	prb_stop_restart_call(stop);
	prb_fault_step();
	if (ptrace(PTRACE_CONT, stop->tid, NULL, stop->signal))
		return prb_error_os(errno, "cannot let thread %d go on", stop->tid);
	stop->stopped = false;
	stop->signal = 0;
	return NULL;
}

static int let_go(struct prb_stop *stop)
{
	prb_stop_restart_call(stop);
	prb_fault_step();
	return ptrace(PTRACE_DETACH, stop->tid, NULL, stop->signal);
}

/* Has it stopped after all, as it was asked to? */
static bool has_stopped(struct prb_stop *stop)
{
	siginfo_t info = {};

	if (waitid(P_PID, (id_t)stop->tid, &info, WSTOPPED | __WALL | WNOHANG) || !info.si_pid)
		return false;
	stop->stopped = true;
	stop->begin = prb_clock_seconds();
	/* More than a signal number means an event, or a system call. */
	stop->signal = info.si_status >> 7 ? 0 : info.si_status;
	return true;
}

/* It has died, and is buried, or it is not ours any more. */
static bool bury(pid_t tid)
{
	siginfo_t info = {};

	if (waitid(P_PID, (id_t)tid, &info, WEXITED | __WALL | WNOHANG | WNOWAIT))
		return true;
	return info.si_pid && !tells_stop(&info) &&
	       !waitid(P_PID, (id_t)tid, &info, WEXITED | __WALL | WNOHANG);
}

/*
 * Neither stopped nor resumed: it dies, or has not come to its stop yet. A thread that dies while
 * we trace it must be reaped by us: until then an exec of its program waits, or its process cannot
 * end. (A child of our own program is waited for by that.) What stops is let go.
 */
static void part_late(struct prb_stop *stop)
{
	double end = prb_clock_seconds() + burial_timeout;

	while (prb_clock_seconds() < end) {
		struct status status = read_status(stop->tid);

		if (!status.state || (has_stopped(stop) && !let_go(stop)))
			return;
		if (status.parent != getpid() && bury(stop->tid))
			return;
		if (status.state == 'Z')
			return;
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	}
}

void prb_stop_end(struct prb_stop *stop, double *pause_us)
{
	*pause_us = 0;
	if (!stop->seized)
		return;
	if (let_go(stop)) {
		prb_log("stop", 1, "cannot detach from thread %d: %s", stop->tid, strerror(errno));
		part_late(stop);
	}
	if (stop->stopped)
		*pause_us = (prb_clock_seconds() - stop->begin) * 1e6;
	prb_log("stop", 2, "thread %d stopped for %.1f µs", stop->tid, *pause_us);
	*stop = (struct prb_stop){.tid = stop->tid};
	prb_unstopped_end();
}
