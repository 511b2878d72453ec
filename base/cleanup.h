/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Scope guards: the resources of a function are released on every way out.
 *
 * `prb_auto_free char *s = …;` frees at the end of the scope; prb_steal(&s) takes it out again
 * to hand it to the caller. The guards run in reverse order of declaration.
 */
#ifndef PRB_BASE_CLEANUP_H
#define PRB_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

static inline void prb_free_guard(void *p)
{
	free(*(void **)p);
}

/** Forgets the descriptor: its number may be another file's at once. */
static inline void prb_close_guard(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void prb_fclose_guard(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void prb_closedir_guard(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static inline void prb_error_guard(struct prb_error **err)
{
	prb_error_destroy(*err);
}

#define prb_auto_free __attribute__((cleanup(prb_free_guard)))
#define prb_auto_close __attribute__((cleanup(prb_close_guard)))
#define prb_auto_fclose __attribute__((cleanup(prb_fclose_guard)))
#define prb_auto_closedir __attribute__((cleanup(prb_closedir_guard)))
#define prb_auto_error __attribute__((cleanup(prb_error_guard)))

/** Takes a pointer out of its guarded variable, which becomes NULL. */
#define prb_steal(pointer)                                      \
	({                                                      \
		__typeof__(*(pointer)) prb_stolen = *(pointer); \
		*(pointer) = NULL;                              \
		prb_stolen;                                     \
	})

/** Takes a descriptor out of its guarded variable, which becomes -1. */
static inline int prb_steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

/** Returns from the calling function with the error of @p expression, if there is one. */
#define PRB_TRY(expression)                                     \
	do {                                                    \
		struct prb_error *prb_try_error = (expression); \
		if (prb_try_error)                              \
			return prb_try_error;                   \
	} while (0)

#endif
