/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Peculiarities of musl as the target's C library. Internal to injector/.
 *
 * It is one file with its loader, as a rule without call frame information and without names of
 * its inner functions. So a stack cannot be unwound through it, and:
 * - words on the stack show which public function is active (safe_point.h);
 * - a thread that runs in a function without a name is not hijacked: it may be about to end, or
 *   hold the list of threads. It is led to where its caller goes on. One that sleeps there in a
 * system call may be: the inner functions that wait for other reasons wait for a lock of the
 * library, which is seen;
 * - while a program has one thread, musl takes no locks at all. The allocator, and public functions
 *   that change what a library to be loaded may use at its start, are unsafe for that. With more
 *   threads the new one waits for their locks, which pthread_create() does not need.
 *
 * Threading: as libc.h.
 */
#ifndef PRB_INJECTOR_LIBC_MUSL_H
#define PRB_INJECTOR_LIBC_MUSL_H

#include "injector/libc/libc.h"

/** If @p part is musl: notes that, its named functions, and those of them that are unsafe. */
struct prb_error *prb_libc_musl_add(struct prb_libc *libc, struct prb_module *part) PRB_MUST_CHECK;

/** Is @p pc in a function of musl that has no name? */
bool prb_libc_musl_unnamed(const struct prb_libc *libc, uint64_t pc);

/** Does the program have more threads than the one whose note is at @p self, with the addresses of
 * its neighbours at that offset? */
struct prb_error *prb_libc_musl_threads(struct prb_mem *mem, uint64_t self, size_t neighbours,
					bool *ret) PRB_MUST_CHECK;

#endif
