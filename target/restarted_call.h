/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which system call the kernel continues under the name "restart_syscall". After a stop (a
 * signal, a debugger) a sleeping thread is in that call, with the arguments as they were; the
 * number that the program had asked for is where the C library took it from: in its code, or on the
 * stack.
 */
#ifndef PRB_TARGET_RESTARTED_CALL_H
#define PRB_TARGET_RESTARTED_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Reads memory of the program; false if it cannot. */
typedef bool prb_restarted_read(void *context, uint64_t address, void *buffer, size_t length);

/**
 * Number of the call of a thread on @p machine that is in restart_syscall() before @p pc, with the
 * stack pointer @p sp; -1 if unknown. The number in the code may belong to another path through the
 * function, so it is only for display.
 */
long prb_restarted_call(uint16_t machine, uint64_t pc, uint64_t sp, prb_restarted_read *read,
			void *context);

/**
 * As above, for x86_64, where the C library takes the number from the stack: from glibc 2.41 on, in
 * calls at which a thread may be cancelled. Sure enough to make the call again.
 */
long prb_restarted_call_on_stack(uint64_t pc, uint64_t sp, prb_restarted_read *read, void *context);

#endif
