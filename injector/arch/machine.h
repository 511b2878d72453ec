/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Facts about a target's processor for the rules of hijacking.
 *
 * Unlike struct prb_inject_arch this is there for every processor, whatever ours is: a debugger may
 * hold a process of another machine. To add one: a const struct in arch/NAME_machine.c.
 *
 * Threading: constants.
 */
#ifndef PRB_INJECTOR_ARCH_MACHINE_H
#define PRB_INJECTOR_ARCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/mem/mem.h"

struct prb_machine {
	uint16_t machine; /**< ELF e_machine */

	/**
	 * The instruction that enters the kernel, and the instructions that return from a signal
	 * handler.
	 */
	const uint8_t *enter_code, *sigreturn_code;
	size_t enter_length, sigreturn_length;
	/** The instruction that debuggers set as a breakpoint. */
	const uint8_t *trap;
	size_t trap_length;

	long sys_futex;
	/**
	 * The kernel sets a stopped thread back to the instruction of a call that it will repeat;
	 * else the result shows it, as that of an interrupted call, or of a call not begun yet.
	 */
	bool sets_back;
	unsigned result; /**< DWARF number of the register with the result of a call */
	unsigned link;	 /**< of the one with the return address; result if there is none */

	/** True if the @p length bytes before an address end in a call of a function. */
	bool (*ends_in_call)(const uint8_t *before, size_t length);

	/** Address of what the C library notes of the thread with this thread pointer, or of a part
	 * of that; 0 if it is no thread of the library. */
	struct prb_error *(*thread)(uint64_t pointer, struct prb_mem *mem, bool musl,
				    uint64_t *ret);
	size_t musl_neighbours; /**< where musl's note has the addresses of the two beside it */
};

/** NULL if nothing is known of that processor. */
const struct prb_machine *prb_machine(uint16_t machine);

extern const struct prb_machine prb_machine_x86_64, prb_machine_aarch64;

#endif
