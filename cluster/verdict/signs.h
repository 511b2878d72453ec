/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The signs that a verdict rests on, each with the source that it came from, and the one rule
 * that lowers a confidence which they do not support: it is high only if two sources agree.
 *
 * Threading: one thread at a time. All texts are escaped.
 */
#ifndef PRB_CLUSTER_VERDICT_SIGNS_H
#define PRB_CLUSTER_VERDICT_SIGNS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

/** Where a sign comes from. Two signs of one source count once, unless they are of two ranks. */
enum prb_sign_source {
	PRB_SIGN_WAITERS,   /**< stacks and arguments of the ranks that wait */
	PRB_SIGN_STACK,	    /**< the stack of the rank that is named */
	PRB_SIGN_SCHEDULER, /**< what the kernel counts: sleep and processor time */
	PRB_SIGN_STATE,	    /**< the state of a process: stopped, frozen, ended */
	PRB_SIGN_OWNER,	    /**< the owner of a lock, a file lock, a pipe */
	PRB_SIGN_RECORDER,  /**< torch's flight recorder */
	PRB_SIGN_RAS,	    /**< NCCL's RAS service */
	PRB_SIGN_END,	    /**< an exit status, a log, a crash record, a counter of the kernel */
};

struct prb_sign {
	enum prb_sign_source source;
	long rank; /**< of which it is; -1: of several */
	struct prb_str text;
};

struct prb_signs {
	PRB_VEC(struct prb_sign) list;
};

void prb_signs_deinit(struct prb_signs *signs);

/**
 * Adds a sign, whose text the caller then appends to *text; a second one of the same source and
 * rank is added to the first one.
 */
struct prb_error *prb_signs_add(struct prb_signs *signs, enum prb_sign_source source, long rank,
				struct prb_str **text) PRB_MUST_CHECK;

/** "waiting ranks", "own stack", …: static. */
const char *prb_sign_source_name(enum prb_sign_source source);

/** The confidence that @p signs support: @p wanted, or "medium" for a "high" that has but one. */
const char *prb_signs_confidence(const struct prb_signs *signs, const char *wanted);

/** Appends one line for each, "own stack: rank 2 …", ended by a line feed. */
void prb_signs_put(const struct prb_signs *signs, struct prb_str *s);

#endif
