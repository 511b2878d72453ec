/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A pool of strings, each of which it holds once.
 *
 * The frames of a dump share a few names, each many thousand times. A pool keeps one copy, which
 * lives as long as the pool; the same text gives the same address.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_BASE_POOL_H
#define PRB_BASE_POOL_H

#include <stddef.h>

#include "base/error.h"

struct prb_pool;

struct prb_error *prb_pool_create(struct prb_pool **ret) PRB_MUST_CHECK;

/** Ends the pool with all its strings; NULL is allowed. */
void prb_pool_destroy(struct prb_pool *pool);

/** The pool's copy of @p text; NULL gives NULL. */
struct prb_error *prb_pool_share(struct prb_pool *pool, const char *text,
				 const char **ret) PRB_MUST_CHECK;

#endif
