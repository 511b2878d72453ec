/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Instructions of the target's C library that a hijacked thread uses for calls and for its
 * return. Internal to injector/.
 *
 * Threading: as libc.h.
 */
#ifndef PRB_INJECTOR_LIBC_CODE_H
#define PRB_INJECTOR_LIBC_CODE_H

#include "injector/libc/libc.h"

/**
 * Fills libc->code, once its parts are known: from the library's files, and only what is in memory
 * as well; where that is another or there are no files, from memory. The vdso may have what returns
 * from signal handlers. PRB_ERROR_UNSUPPORTED if there is no plain system call.
 */
struct prb_error *prb_libc_find_code(struct prb_modules *modules,
				     const struct prb_inject_arch *arch,
				     struct prb_libc *libc) PRB_MUST_CHECK;

#endif
