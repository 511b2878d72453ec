/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Hijacks one thread of a target: stops it, makes it execute calls, restores it.
 *
 * Before anything of the thread is changed, a signal frame that leads back is written below its
 * stack, as the kernel does for a handler; any code that the thread then runs ends in that frame.
 * So it finds its way back by itself when we die, at every step.
 *
 * System calls are made by an instruction that is there already, and watched by syscall stops: no
 * SIGTRAP is ever sent, so a target may block, ignore or handle that as it likes. All signals are
 * blocked meanwhile; the kernel keeps them.
 *
 * Threading: all from one thread of ours.
 */
#ifndef PRB_INJECTOR_HIJACK_HIJACK_H
#define PRB_INJECTOR_HIJACK_HIJACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/target.h"
#include "injector/arch/arch.h"
#include "target/ptrace/stop.h"

struct prb_hijack {
	const struct prb_inject_arch *arch;
	struct prb_target *target; /**< borrowed */
	int memory;		   /**< of prb_mail_open(); set by the caller like these */
	struct prb_target_code code;
	struct prb_stop stop;
	double begin;		       /**< when it was last seen running */
	double earlier_us;	       /**< how long it was stopped before, since it was taken */
	struct prb_thread_state state; /**< as it was; calls to be repeated are rewound */
	struct prb_return_frame frame;
	bool changed;	  /**< its registers are no longer those in `state` */
	bool at_event;	  /**< it is in a stop from which the kernel restarts calls */
	bool stop_signal; /**< SIGSTOP came meanwhile: to be sent again */
};

/**
 * Stops @p tid and reads its registers; nothing is changed. PRB_ERROR_TIMEOUT if it does not stop
 * in time, PRB_ERROR_FAILED if it is in a job-control stop, others of prb_stop_seize().
 */
struct prb_error *prb_hijack_take(struct prb_hijack *b, pid_t tid, int timeout_ms) PRB_MUST_CHECK;

/**
 * Makes the taken thread run to @p address and stop there; else it stops after @p timeout_ms
 * wherever it is (prb_run_to()). Its registers are read anew.
 */
struct prb_error *prb_hijack_follow(struct prb_hijack *b, uint64_t address, int timeout_ms,
				    bool *reached) PRB_MUST_CHECK;

/**
 * Maps PRB_SCRATCH_SIZE bytes for reading and execution. A thread that finds back alone unmaps
 * them, from now on until prb_hijack_run(). *ret as of prb_hijack_syscall().
 */
struct prb_error *prb_hijack_map(struct prb_hijack *b, int64_t *ret) PRB_MUST_CHECK;
struct prb_error *prb_hijack_unmap(struct prb_hijack *b, uint64_t address,
				   int64_t *ret) PRB_MUST_CHECK;

/** Makes a system call on it. *ret is what the kernel returned: a negative errno value if failed.
 */
struct prb_error *prb_hijack_syscall(struct prb_hijack *b, long number, const uint64_t arguments[6],
				     int64_t *ret) PRB_MUST_CHECK;

/**
 * Runs the hijacked thread's code at @p code until it says in the mailbox that it has left that.
 * *refused: the negative errno value with which the kernel would not make what lies behind the code
 * writable, so that it has done nothing else, and unmaps all of it; else 0. PRB_ERROR_TIMEOUT after
 * @p timeout seconds: it goes on, has been let go, and will find its way back.
 */
struct prb_error *prb_hijack_run(struct prb_hijack *b, uint64_t code, uint64_t stack,
				 uint64_t mailbox, double timeout, int64_t *refused) PRB_MUST_CHECK;

/** Puts everything back and lets it go; *pause_us: how long it was stopped. */
struct prb_error *prb_hijack_give_back(struct prb_hijack *b, double *pause_us) PRB_MUST_CHECK;

#endif
