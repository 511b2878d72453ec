/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What exactly a rank waits in: the arguments of the collective that its main thread has
 * called. Read from the variables of its frame, and from torch's lists of process groups.
 *
 * Threading: one thread at a time. A call owns its texts.
 */
#ifndef PRB_CLUSTER_LOOKS_CALL_H
#define PRB_CLUSTER_LOOKS_CALL_H

#include <stdbool.h>

#include "base/error.h"
#include "cluster/looks/seen.h"

struct prb_call {
	long peer;     /**< the peer of a send or receive, or the root of the collective; -1 */
	long tag;      /**< of a send or receive; -1: unknown */
	char *group;   /**< name of the process group; NULL: all ranks, or unknown */
	char *members; /**< ranks of that group, "0-3,7"; NULL: all ranks, or unknown */
	bool known;    /**< the members are known */
	char *data;    /**< the tensor: "(4,) float32"; NULL if unknown */
};

/** NULL is none. */
void prb_call_destroy(struct prb_call *call);

/** Reads the call that @p seen is in; leaves `call` NULL if it is in none. */
struct prb_error *prb_call_read(struct prb_watch *watch, struct prb_seen *seen) PRB_MUST_CHECK;

/**
 * True if both are calls of one process group: of the same ranks, and not of two names. Either may
 * be NULL: of a group that is not known.
 */
bool prb_call_same_group(const struct prb_call *a, const struct prb_call *b);

/** True if both have called it from the same line; false if that is unknown of one. */
bool prb_call_same_place(const struct prb_seen *a, const struct prb_seen *b);

#endif
