/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What lies in our mapping in the target, and how the target's memory is read and written.
 *
 * One mapping: a page of code, a stack for the hijacked thread, and the mailbox
 * (injector/hijack/mailbox.h). Code of each processor knows the offsets.
 *
 * Threading: none; all of it may be called by any thread.
 */
#ifndef PRB_INJECTOR_ARCH_SCRATCH_H
#define PRB_INJECTOR_ARCH_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

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

/**
 * Opens the memory of a process, for the caller to close. It belongs to the program that runs there
 * now: after an exec, nothing is read or written any more.
 */
struct prb_error *prb_mail_open(pid_t pid, int *ret_fd) PRB_MUST_CHECK;

/** Reads and writes it. PRB_ERROR_NO_PROCESS if there is no such memory any more. */
struct prb_error *prb_mail_read(int memory, uint64_t address, void *data,
				size_t length) PRB_MUST_CHECK;
struct prb_error *prb_mail_write(int memory, uint64_t address, const void *data,
				 size_t length) PRB_MUST_CHECK;

#endif
