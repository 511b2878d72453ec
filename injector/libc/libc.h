/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The C library of a target: the functions that injection needs, and the code in which a
 * thread must not be hijacked because it may hold a lock there.
 *
 * Symbols come from the target's own files, found through its maps, or from its memory.
 *
 * Threading: one thread at a time. Borrows the modules.
 */
#ifndef PRB_INJECTOR_LIBC_LIBC_H
#define PRB_INJECTOR_LIBC_LIBC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "dwarf/elf/module.h"
#include "injector/arch/arch.h"

/** The purpose of a hijack, which decides which locks the thread must not hold. */
enum prb_hijack_purpose {
	PRB_HIJACK_CREATE, /**< create a thread, which does the rest and may wait for locks */
	PRB_HIJACK_CALL,   /**< call functions of the C library itself, on behalf of a debugger */
};

/** Code of one kind; `what` is static text: "in malloc". */
struct prb_unsafe_range {
	uint64_t start, end;
	const char *what;
	bool brief; /**< it never waits in the kernel, but for its lock */
	bool lone;  /**< unsafe only while the program has no other thread (musl.h) */
};

struct prb_libc {
	enum prb_hijack_purpose purpose;
	uint64_t pthread_create, pthread_self, pthread_detach, munmap;
	uint64_t dlopen, dlsym, dlerror;
	uint64_t dlclose;     /**< 0 if there is none */
	bool internal_dlopen; /**< the one inside libc of glibc before 2.34: no dlerror() */
	bool before_2_34, before_2_33, before_2_26; /**< glibc: it makes other system calls */
	struct prb_target_code code;
	uint64_t join; /**< pthread_join(), with its end; 0 if there is none */
	uint64_t join_end;
	PRB_VEC(struct prb_unsafe_range) unsafe;  /**< sorted by start */
	bool musl;				  /**< musl.h has what that means */
	PRB_VEC(struct prb_unsafe_range) named;	  /**< musl: its public functions, sorted */
	PRB_VEC(const struct prb_module *) parts; /**< libc, libpthread, libdl, loader */
};

/**
 * Finds everything but `code` (code.h). PRB_ERROR_UNSUPPORTED if the target has no C library
 * that can load: statically linked, or none that we know.
 */
struct prb_error *prb_libc_find(struct prb_modules *modules, enum prb_hijack_purpose purpose,
				struct prb_libc *ret) PRB_MUST_CHECK;
void prb_libc_deinit(struct prb_libc *libc);

/** Is this address in the C library, code or data? */
bool prb_libc_holds(const struct prb_libc *libc, uint64_t address);

/** The unsafe code that @p pc is in, or NULL. */
const struct prb_unsafe_range *prb_libc_unsafe_range(const struct prb_libc *libc, uint64_t pc);

/** Why a thread that has a frame at @p pc must not be hijacked; NULL if it may. */
const char *prb_libc_unsafe(const struct prb_libc *libc, uint64_t pc);

#endif
