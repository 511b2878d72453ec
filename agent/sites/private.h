/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by sites.c, buffer.c, hooks.c and walk.c. Internal to agent/sites/. */
#ifndef PRB_AGENT_SITES_PRIVATE_H
#define PRB_AGENT_SITES_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sites/sites.h"
#include "agent/sites_format.h"

/** Two words for each frame, innermost first. */
struct prba_sites_stack {
	uint64_t words[2 * PRB_SITES_FRAMES];
	unsigned count;
	bool more; /**< there are others */
};

/**
 * The registers of the calling function, which are its caller's but for pc and stack pointer, or
 * lie on the stack from there on: pc, stack pointer, callee-saved registers. Entries that a machine
 * lacks stay unchanged.
 */
static inline __attribute__((always_inline)) void prba_sites_registers(
	uint64_t ret[PRB_SITES_REGISTERS])
{
#if defined(__x86_64__)
	__asm__ volatile("leaq 0(%%rip), %%rax\n\t"
			 "movq %%rax, 0(%0)\n\t"
			 "movq %%rsp, 8(%0)\n\t"
			 "movq %%rbx, 16(%0)\n\t"
			 "movq %%rbp, 24(%0)\n\t"
			 "movq %%r12, 32(%0)\n\t"
			 "movq %%r13, 40(%0)\n\t"
			 "movq %%r14, 48(%0)\n\t"
			 "movq %%r15, 56(%0)"
			 :
			 : "r"(ret)
			 : "rax", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("adr x9, .\n\t"
			 "mov x10, sp\n\t"
			 "stp x9, x10, [%0]\n\t"
			 "stp x19, x20, [%0, 16]\n\t"
			 "stp x21, x22, [%0, 32]\n\t"
			 "stp x23, x24, [%0, 48]\n\t"
			 "stp x25, x26, [%0, 64]\n\t"
			 "stp x27, x28, [%0, 80]\n\t"
			 "stp x29, x30, [%0, 96]"
			 :
			 : "r"(ret)
			 : "x9", "x10", "memory");
#else
#error "no registers for this architecture"
#endif
}

/* walk.c */

extern uint64_t prba_sites_recipe[PRB_SITES_RECIPE];

/** The calling thread's state if it holds the main interpreter's GIL, else NULL. */
const void *prba_sites_thread(void);
/**
 * The frames of the calling thread, whose state that is. @p careful: through the kernel, so that a
 * recipe that is wrong does no harm; false if something could not be read.
 */
bool prba_sites_walk(const void *thread, bool careful, struct prba_sites_stack *ret);

/* buffer.c */

/** One thread at a time, in free-threaded builds; else nothing: the GIL does that. */
void prba_sites_lock(void);
void prba_sites_unlock(void);
/** 0 or an errno value. To be called when the recipe is known. */
int prba_sites_open(uint64_t mean);
/** The buffer goes, and what is held is released if it is of this interpreter. */
void prba_sites_close(void);
/** In a child after fork(): the same, without calling Python. */
void prba_sites_drop(void);
/** NULL: there is none. */
struct prb_sites_header *prba_sites_header(void);
/** The caller holds prba_sites_lock(). */
void prba_sites_allocated(const void *block, size_t size, const void *thread);
/** A block that was sampled is about to be freed; true if it was. */
bool prba_sites_freed(const void *block);
/** Bytes that were requested. For any thread. */
void prba_sites_count(int64_t bytes, bool other);
/** Writes the sums into the header. */
void prba_sites_tell_count(void);

/**
 * By address: 0: no such block was sampled. Each free() looks, so what counts is how much of it
 * comes into the caches: neighbours are neighbours, and one byte is of 64.
 */
enum { PRBA_SITES_FILTER = 1 << 17, PRBA_SITES_GRAIN = 6 };
extern uint8_t prba_sites_filter[PRBA_SITES_FILTER] __attribute__((visibility("hidden")));

static inline size_t prba_sites_hash(const void *block)
{
	return (uintptr_t)block >> PRBA_SITES_GRAIN & (PRBA_SITES_FILTER - 1);
}

/* hooks.c */

/** NULL, or why they cannot be installed. Their counts go to the buffer. */
const char *prba_sites_install(uint64_t mean);
/** False if others call them: they stay, and do nothing. */
bool prba_sites_remove(void);
/** They do nothing from now on. */
void prba_sites_silence(void);

#endif
