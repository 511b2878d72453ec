/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What differs between the architectures of targets, as data.
 *
 * Code for the machine that we run on is in target/ptrace/arch/ and injector/arch/. Threading: any.
 */
#ifndef PRB_TARGET_ARCHITECTURE_H
#define PRB_TARGET_ARCHITECTURE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

/* The architecture that this program is compiled for. */
#if defined(__x86_64__)
#define PRB_HOST_ARCHITECTURE EM_X86_64
#elif defined(__aarch64__)
#define PRB_HOST_ARCHITECTURE EM_AARCH64
#else
#error "this architecture has no PRB_HOST_ARCHITECTURE: see docs/howto/add-architecture.md"
#endif

struct prb_architecture {
	uint16_t number;	/**< of ELF: EM_X86_64 */
	const char *name;	/**< as in `uname -m` */
	const char *bfd;	/**< libbfd's name of its object files */
	uint8_t sp, fp, ra;	/**< DWARF numbers: stack pointer, frame pointer, return address */
	uint8_t thread_pointer; /**< DWARF number, as in debuggers */
	uint8_t instruction;	/**< bytes of the shortest one */
	bool pushes;		/**< a call leaves its return address on the stack, not in `ra` */
};

/** NULL for a machine that is not supported. */
const struct prb_architecture *prb_architecture_find(uint16_t number);

#endif
