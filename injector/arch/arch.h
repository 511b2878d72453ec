/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Architecture-specific parts of hijacking a thread.
 *
 * To add one: a const struct in injector/arch/NAME.c that fills in every member, and the code that
 * runs in the target, in the same file. Until then prb_inject_arch() gives NULL there, and
 * injection is refused by name.
 */
#ifndef PRB_INJECTOR_ARCH_ARCH_H
#define PRB_INJECTOR_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "injector/arch/machine.h"
#include "target/mem/mem.h"
#include "target/regs.h"

enum {
	PRB_THREAD_GENERAL_MAX = 512,	 /**< bytes of the general registers */
	PRB_THREAD_EXTENDED_MAX = 16384, /**< of all others */
	PRB_CODE_BEFORE = 32, /**< bytes before the program counter that may be asked for */
	PRB_FRAME_MAX = PRB_THREAD_EXTENDED_MAX + 2048,
};

/** Code that stores the result of a call at an address in a register, and returns. */
struct prb_store_code {
	uint64_t address; /**< 0: none */
	uint8_t base;	  /**< the register, by its DWARF number */
	int8_t offset;	  /**< added to it */
	uint8_t words;	  /**< that it takes from the stack before it returns */
};

/** Code of the target by which a hijacked thread makes calls and finds back. */
struct prb_target_code {
	uint64_t gadget;     /**< makes a system call and returns */
	uint64_t trampoline; /**< returns from signal handlers */
	struct prb_store_code store;
};

/** All that a thread has in registers. */
struct prb_thread_state {
	uint8_t general[PRB_THREAD_GENERAL_MAX] __attribute__((aligned(64)));
	uint8_t extended[PRB_THREAD_EXTENDED_MAX] __attribute__((aligned(64)));
	size_t extended_size;
	uint64_t mask; /**< of blocked signals */
	long resumed;  /**< number of the call that restart_syscall() goes on with; 0: none */
};

/** The stack contents of a hijacked thread while it runs our code. */
struct prb_nap {
	int64_t seconds, nanoseconds; /**< for how long it waits for us */
	int64_t refused; /**< the error with which memory could not be made writable; else 0 */
	uint64_t pad;	 /**< to a multiple of 16, as stacks are */
};

/**
 * Signal frames as the kernel would have written them, which lead back to where a thread was: at
 * once, or by way of a munmap() of the memory at the address in `slot`.
 *
 * `back`, `unmap` and `store` are stack pointers for code that ends in a return: to the first or
 * the second way, or to the second with what a call has returned put into the slot before. 0: not
 * to be had.
 */
struct prb_return_frame {
	uint64_t address;    /**< where all this has to lie in the target: below the red zone */
	uint64_t stack;	     /**< the stack pointer for rt_sigreturn() */
	uint64_t trampoline; /**< code that returns from handlers */
	uint64_t back, unmap, store;
	uint64_t next; /**< the one of them that the next call takes */
	uint64_t slot;
	uint64_t nap; /**< address of struct prb_nap */
	struct prb_store_code store_code;
	size_t size;
	uint8_t bytes[PRB_FRAME_MAX];
};

struct prb_inject_arch {
	const struct prb_machine *machine;

	/** Instructions that a system call is made by, with a return behind: `code` of `length`
	 * bytes, to be entered at an offset. Searched for in the C library. */
	const uint8_t *syscall_code;
	size_t syscall_length, syscall_offset;

	/** Looks for code that stores a result; false if there is none. */
	bool (*find_store)(const uint8_t *code, size_t length, struct prb_store_code *ret);

	/** The code for the target, position independent, at most PRB_SCRATCH_CODE bytes, and the
	 * offsets in it of: the hijacked thread's part with its end, the new thread's, and a
	 * function that makes a system call. */
	const uint8_t *code, *code_end;
	const uint8_t *hijack_code, *hijack_end, *thread_code, *raw_syscall_code;
	unsigned mailbox_register; /**< DWARF number of the register with the mailbox's address in
				      hijack_code */

	/** Numbers of system calls. */
	long sys_mmap, sys_mprotect, sys_munmap, sys_memfd_create, sys_write;

	/** A thread can be stopped by a breakpoint of the processor, and then be given other
	 * registers: the kernel has nothing left to do to get past it. */
	bool breakpoints;

	/** Says why this thread cannot be hijacked for the state the machine is in, or NULL. */
	const char *(*obstacle)(pid_t tid, const struct prb_thread_state *state);

	/** Reads and writes everything but the mask, of a stopped thread. */
	struct prb_error *(*save)(pid_t tid, struct prb_thread_state *ret);
	struct prb_error *(*restore_extended)(pid_t tid, const struct prb_thread_state *state);
	struct prb_error *(*restore_general)(pid_t tid, const struct prb_thread_state *state);
	void (*registers)(const struct prb_thread_state *state, struct prb_regs *ret);

	/** The number of the system call that was interrupted, with its arguments, or -1. */
	long (*call)(const struct prb_thread_state *state, uint64_t arguments[6]);

	/**
	 * The number of a call that the kernel may have noted a restart for, where registers do not
	 * show whether it has, else 0. NULL where they do.
	 */
	long (*resumable_call)(const struct prb_thread_state *state);

	/**
	 * Finds, by the @p code just before the program counter or by the stack in @p memory, which
	 * call of a thread the kernel has resumed once already: 0 if none, or unknown. May be NULL.
	 */
	long (*resumed_call)(const struct prb_thread_state *state,
			     const uint8_t code[PRB_CODE_BEFORE], int memory);

	/** Builds the frames that bring back @p state, calls that were interrupted from their
	 * start. */
	void (*frame)(const struct prb_thread_state *state, const struct prb_target_code *code,
		      struct prb_return_frame *ret);

	/** Sets a stopped thread up to make a system call by the code at @p gadget, and to go back
	 * by the frame's `next` after it. */
	struct prb_error *(*set_syscall)(pid_t tid, const struct prb_thread_state *state,
					 uint64_t gadget, const struct prb_return_frame *frame,
					 long number, const uint64_t arguments[6]);
	struct prb_error *(*syscall_result)(pid_t tid, int64_t *ret);

	/** As above, to run the hijacked thread's code, with a stack that ends at @p stack. */
	struct prb_error *(*set_hijack)(pid_t tid, const struct prb_thread_state *state,
					uint64_t code, uint64_t stack, uint64_t mailbox);

	uint64_t (*thread_pointer)(const struct prb_thread_state *state);
};

/** NULL on a machine that injection is not written for. */
const struct prb_inject_arch *prb_inject_arch(void);

#endif
