/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The mapping in the target, and the calls that the new thread executes from it.
 *
 * One mapping: a page of code, a stack for the hijacked thread, and the mailbox. The new thread
 * waits at the mailbox for functions to call and leaves their results there. It waits without being
 * woken (some hundred short sleeps), and when nothing comes any more, because we were killed or
 * told it to end, it closes the descriptor, unmaps all of this and ends. (It unmaps nothing if it
 * is not known that the hijacked thread has left the code.)
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_INJECTOR_MAILBOX_H
#define PRB_INJECTOR_MAILBOX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/target.h"
#include "target/ptrace/stop.h"

enum {
	PRB_MAIL_IDLE,
	PRB_MAIL_REQUEST, /**< set by us: make the calls */
	PRB_MAIL_DONE,	  /**< set by the thread: the results are there */
	PRB_MAIL_QUIT,	  /**< set by us */

	PRB_HIJACK_LEFT = 1, /**< pthread_create() has returned, and the thread left this memory */

	PRB_HIJACK_NAP_NS = 100000000, /**< after that it gives us up */

	PRB_MAIL_ARGUMENTS = 6,
	PRB_MAIL_CALLS = 4, /**< that it makes without our help */
#ifdef __aarch64__
	PRB_SCRATCH_CODE = 64 << 10, /**< whole pages, which have up to 64 KiB there */
#else
	PRB_SCRATCH_CODE = 4096, /**< a page */
#endif
	PRB_SCRATCH_STACK = 64 << 10,
	PRB_SCRATCH_DATA = 16384,
	PRB_SCRATCH_SIZE = PRB_SCRATCH_CODE + PRB_SCRATCH_STACK + PRB_SCRATCH_DATA,
	PRB_SCRATCH_TEXT = 12288, /**< bytes of the data for strings: a path, and more */
};

/** A call that the thread makes, as it lies in the target. */
struct prb_mail_call {
	uint64_t function;			/* 0 */
	uint64_t arguments[PRB_MAIL_ARGUMENTS]; /* 8 */
	uint64_t result;			/* 56 */
	/** Where else the result is put: offsets into the list, as PRB_MAIL_FUNCTION() gives them;
	 * 0: nowhere. Addresses in the target. */
	uint64_t also[2]; /* 64 */
	uint64_t always;  /* 80: 0: the next one is not made if this one returns 0 */
	uint64_t next;	  /* 88: its address; 0: none; set by prb_mail_run() */
};

/** The function, or an argument, of the call at @p index of a list. */
#define PRB_MAIL_FUNCTION(index) ((index) * sizeof(struct prb_mail_call))
#define PRB_MAIL_ARGUMENT(index, n)                                             \
	(PRB_MAIL_FUNCTION(index) + offsetof(struct prb_mail_call, arguments) + \
	 (n) * sizeof(uint64_t))

/** As it lies in the target; the code of arch/ knows the offsets. */
struct prb_mailbox {
	uint32_t state;		/* 0 */
	uint32_t hijack_state;	/* 4: PRB_HIJACK_… */
	uint64_t create;	/* 8: pthread_create() */
	int64_t create_result;	/* 16 */
	uint64_t thread;	/* 24: its pthread_t */
	uint64_t frame;		/* 32: stack pointer that leads back */
	uint64_t munmap;	/* 40 */
	uint64_t base, size;	/* 48, 56: of the mapping */
	int64_t fd;		/* 64: descriptor that the thread closes at its end, or -1 */
	uint64_t trampoline;	/* 72: code that returns from handlers */
	uint64_t nap;		/* 80: address of struct prb_nap */
	int64_t short_sleep[2]; /* 88 */
	int64_t long_sleep[2];	/* 104 */
	uint64_t entry;		/* 120: where the new thread begins */
	uint64_t tid;		/* 128: of the new thread, as the target's namespace numbers it */
	uint64_t self, detach;	/* 136, 144: pthread_self(), pthread_detach() */
	uint64_t unmap;		/* 152: as frame, where there is no new thread to unmap this */
	uint64_t gadget;	/* 160: code that makes a system call and returns */
	struct prb_mail_call calls[PRB_MAIL_CALLS]; /* 168 */
};

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

/**
 * Opens the memory of a process, for the caller to close. It stays that of the program that runs
 * there now: once that has executed another one, nothing is read or written any more.
 */
struct prb_error *prb_mail_open(pid_t pid, int *ret_fd) PRB_MUST_CHECK;

/** Reads and writes it. PRB_ERROR_NO_PROCESS if there is no such memory any more. */
struct prb_error *prb_mail_read(int memory, uint64_t address, void *data,
				size_t length) PRB_MUST_CHECK;
struct prb_error *prb_mail_write(int memory, uint64_t address, const void *data,
				 size_t length) PRB_MUST_CHECK;

/** Waits for the thread's first step and learns its number. */
struct prb_error *prb_mail_meet(struct prb_mail *mail, double deadline) PRB_MUST_CHECK;

/**
 * Makes the thread stand, unless it stands already, until the next call: it cannot give us up
 * while we write. (We could have stood still ourselves for so long that it did, and the program
 * put something else in that place.) PRB_ERROR_NO_PROCESS if it is gone or about to go.
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
 * Has the thread make @p count calls (at most PRB_MAIL_CALLS), the first one for certain, and waits
 * for the results until @p deadline (prb_clock_seconds()); those of calls not made, or not yet, are
 * 0. PRB_ERROR_TIMEOUT leaves it going on with them; PRB_ERROR_FAILED: the process was stopped by
 * job control; PRB_ERROR_NO_PROCESS.
 */
struct prb_error *prb_mail_run(struct prb_mail *mail, struct prb_mail_call *calls, size_t count,
			       double deadline) PRB_MUST_CHECK;

/** As above, for one call. */
struct prb_error *prb_mail_call(struct prb_mail *mail, uint64_t function,
				const uint64_t arguments[PRB_MAIL_ARGUMENTS], double deadline,
				uint64_t *ret) PRB_MUST_CHECK;

/** Tells the thread to end, and waits until it has, and the mapping is gone. */
struct prb_error *prb_mail_quit(struct prb_mail *mail, double deadline) PRB_MUST_CHECK;

#endif
