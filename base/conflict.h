/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Errors that say that the target's present state excludes the request: it is paused or
 * traced by somebody else, it is not paused, or its agent is absent. The same request may succeed
 * later. Such an error has the errno EBUSY, whatever its code is.
 *
 * Threading: as base/error.h.
 */
#ifndef PRB_BASE_CONFLICT_H
#define PRB_BASE_CONFLICT_H

#include "base/error.h"

/** Makes a PRB_ERROR_OS for a conflict, with that message and nothing appended. */
struct prb_error *prb_conflict_create(const char *format, ...) PRB_MUST_CHECK PRB_PRINTF(1, 2)
	__attribute__((returns_nonnull));

/** Marks an error of another code, such as PRB_ERROR_PERMISSION. Returns @p err. */
struct prb_error *prb_conflict_mark(struct prb_error *err) PRB_MUST_CHECK;

bool prb_conflict_is(const struct prb_error *err);

#endif
