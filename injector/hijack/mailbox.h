/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The mapping in the target, and the calls that the new thread executes from it.
 *
 * One mapping: a page of code, a stack for the hijacked thread, and the mailbox. The new thread
 * waits at the mailbox for functions to call and leaves their results there. It waits without being
 * woken (some hundred short sleeps), and when no request comes any more, because we were killed or
 * asked it to end, it closes the descriptor, unmaps all of this and ends. (It unmaps nothing if it
 * is not known that the hijacked thread has left the code.)
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_INJECTOR_HIJACK_MAILBOX_H
#define PRB_INJECTOR_HIJACK_MAILBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "injector/arch/scratch.h"
#include "target/target.h"
#include "target/ptrace/stop.h"

/** A mailbox in the target, as we use it. */
struct prb_mail {
	struct prb_target *target; /**< borrowed */
	int memory;		   /**< of prb_mail_open(); borrowed */
	uint64_t code, code_end;   /**< where the thread is while it waits for us */
	uint64_t address;	   /**< of the mailbox */
	uint64_t text;		   /**< of PRB_SCRATCH_TEXT bytes for strings */
	uint64_t raw_syscall;	   /**< code that makes a system call: (number, five arguments) */
	pid_t tid;		   /**< of the thread; 0 before prb_mail_meet() */
	double patience; /**< seconds more, after a deadline, for a thread that would go on if there
			    were a processor or a page for it */
	struct prb_stop stop; /**< of it, while it is held */
};

/** Waits for the thread's first step and learns its number. */
struct prb_error *prb_mail_meet(struct prb_mail *mail, double deadline) PRB_MUST_CHECK;

/**
 * Stops the thread, unless it is stopped already, until the next call: it cannot give us up while
 * we write. (We could have been stopped for so long that it did, and the program mapped something
 * else there.) PRB_ERROR_NO_PROCESS if it is gone or about to go.
 */
struct prb_error *prb_mail_hold(struct prb_mail *mail) PRB_MUST_CHECK;
void prb_mail_release(struct prb_mail *mail);

/** Puts bytes into the text area at @p offset and gives their address in the target. Holds. */
struct prb_error *prb_mail_bytes(struct prb_mail *mail, size_t offset, const void *bytes,
				 size_t length, uint64_t *ret) PRB_MUST_CHECK;

/** As above, for a string. */
struct prb_error *prb_mail_text(struct prb_mail *mail, size_t offset, const char *text,
				uint64_t *ret) PRB_MUST_CHECK;

/** Has the thread close @p fd, a descriptor of the target, at its end. Holds. */
struct prb_error *prb_mail_close_at_end(struct prb_mail *mail, int64_t fd) PRB_MUST_CHECK;

/**
 * Makes the thread do @p count calls (at most PRB_MAIL_CALLS), the first one for certain, and waits
 * for the results until @p deadline (prb_clock_seconds()); results of calls not made, or not yet,
 * are 0. PRB_ERROR_TIMEOUT leaves it going on with them; PRB_ERROR_FAILED: the process was stopped
 * by job control; PRB_ERROR_NO_PROCESS.
 */
struct prb_error *prb_mail_run(struct prb_mail *mail, struct prb_mail_call *calls, size_t count,
			       double deadline) PRB_MUST_CHECK;

/** As above, for one call. */
struct prb_error *prb_mail_call(struct prb_mail *mail, uint64_t function,
				const uint64_t arguments[PRB_MAIL_ARGUMENTS], double deadline,
				uint64_t *ret) PRB_MUST_CHECK;

/** Ends the thread, and waits until it has ended and the mapping is gone. */
struct prb_error *prb_mail_quit(struct prb_mail *mail, double deadline) PRB_MUST_CHECK;

#endif
