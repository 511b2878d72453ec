/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Stops one thread for an instant.
 *
 * The thread is seized (never attached: no signal is sent to it, and a group stop stays what it
 * was) and interrupted; when it is let go, or when we die at any moment, the kernel lets it run on
 * where it was. A signal that arrives meanwhile is delivered when the thread is let go.
 *
 * unstopped.h keeps us from being stopped ourselves meanwhile, as by Ctrl-Z.
 *
 * Only threads that run should be stopped: interrupting a thread in epoll_wait() and the like
 * would make the call return EINTR. prb_stop_end() makes such a call start again.
 *
 * Threading: all calls for one thread come from the same thread of ours (a rule of ptrace).
 */
#ifndef PRB_TARGET_PTRACE_STOP_H
#define PRB_TARGET_PTRACE_STOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/task.h"
#include "target/regs.h"

struct prb_stop {
	pid_t tid;
	bool seized, stopped;
	int signal;	 /**< to be delivered when it is let go; 0: none */
	bool group_stop; /**< it was in a job-control stop, which stays in force */
	bool in_call;	 /**< it slept in a system call when it was asked to stop (arch.h) */
	bool shares;	 /**< it seems to run on our processor, when we let it */
	double begin;	 /**< CLOCK_MONOTONIC seconds when the stop was asked for */
	pid_t tracer;	 /**< the process that traces it, if that is why seizing failed; 0: none */
};

/** Becomes the tracer of @p tid; it runs on. PRB_ERROR_PERMISSION names the tracer if it has one.
 */
struct prb_error *prb_stop_seize(pid_t tid, struct prb_stop *ret) PRB_MUST_CHECK;

/** Seconds that a command waits in all for others that read the same process. */
#define PRB_STOP_PATIENCE 0.25

/**
 * As above, where another command may trace it for an instant. Waits for that as long as @p
 * patience (seconds), from which it takes what it waited; a debugger keeps its threads for longer.
 */
struct prb_error *prb_stop_seize_after(pid_t tid, double *patience,
				       struct prb_stop *ret) PRB_MUST_CHECK;

/** As above, where another tracer soon lets go of it: a command like this one, or an exec. Waits up
 * to a second for that. */
struct prb_error *prb_stop_seize_in_turn(pid_t tid, struct prb_stop *ret) PRB_MUST_CHECK;

/**
 * Leaves the exit status of @p pid, a child of ours, to be waited for by its parent, us: a tracer
 * that waits for a stop would take it. There is one such child.
 */
void prb_stop_keep_status(pid_t pid);

/** Asks it to stop, which it does within microseconds if it runs. */
struct prb_error *prb_stop_ask(struct prb_stop *stop) PRB_MUST_CHECK;

/**
 * Waits until it has. PRB_ERROR_TIMEOUT if it does not stop within @p timeout_ms of being asked
 * (it sleeps uninterruptibly in the kernel), or a second later if it waits for a processor;
 * PRB_ERROR_NO_PROCESS if it has ended.
 */
struct prb_error *prb_stop_wait(struct prb_stop *stop, int timeout_ms) PRB_MUST_CHECK;

/**
 * Waits for the thread's next stop, and gives the status as waitpid() does. PRB_ERROR_TIMEOUT after
 * @p deadline (CLOCK_MONOTONIC seconds), @p patient: or a second later if it waits for a processor
 * then; PRB_ERROR_NO_PROCESS if it has ended.
 */
struct prb_error *prb_stop_await(struct prb_stop *stop, double deadline, bool patient,
				 int *status) PRB_MUST_CHECK;

/** The error for a seized thread that has ended; nothing is left to release. */
struct prb_error *prb_stop_lose(struct prb_stop *stop) PRB_MUST_CHECK;

/** True if signals wait for this thread or its process that it does not block. */
bool prb_stop_signals_pending(pid_t tid);

/** True if the thread blocks @p signal or its program handles it. */
bool prb_stop_heeds_signal(pid_t tid, int signal);

/** Lets the stopped thread run, still traced; what came first is delivered. */
struct prb_error *prb_stop_go_on(struct prb_stop *stop) PRB_MUST_CHECK;

/** Makes a call that would return EINTR because of us start again, in the registers of the stopped
 * thread; also a sleep that the kernel would resume by a call that a seccomp filter forbids. True
 * if they have changed. */
bool prb_stop_restart_call(const struct prb_stop *stop);

/** True if the stopped thread was asleep in a system call; valid while it is stopped. */
bool prb_stop_slept(const struct prb_stop *stop);

/**
 * Fills the call that the stopped thread was asleep in, which it restarts when it is resumed, as
 * prb_task_read_call() does for a sleeping one. False if there is none, or it is not known.
 */
bool prb_stop_call(const struct prb_stop *stop, struct prb_task *ret);

/** General registers of the stopped thread. */
struct prb_error *prb_stop_registers(struct prb_stop *stop, struct prb_regs *ret) PRB_MUST_CHECK;

/** Lets it run, no longer traced; microseconds since it was last seen running into @p pause_us. */
void prb_stop_end(struct prb_stop *stop, double *pause_us);

#endif
