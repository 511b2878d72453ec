/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The stacks of all ranks, merged as a prefix tree: each node is a frame, from the outermost
 * inwards, with the ranks that have it there. Below the root are the threads by name, so that
 * thread "MainThread" of all ranks is one subtree.
 *
 * Siblings are ordered by the number of ranks, smallest first: what few ranks do is where to look.
 *
 * Threading: one thread at a time. A tree owns its texts.
 */
#ifndef PRB_CLUSTER_LOOKS_STACKS_H
#define PRB_CLUSTER_LOOKS_STACKS_H

#include "base/error.h"
#include "base/json.h"
#include "cluster/looks/seen.h"
#include "cluster/jobs/rank_set.h"

struct prb_merged;

/** Merges the stacks of @p round: of the main threads, or with @p all of all threads; the Python
 * frames and the C++ function of a collective, or with @p native all frames that were read. */
struct prb_error *prb_merged_create(const struct prb_round *round, bool all, bool native,
				    struct prb_merged **ret) PRB_MUST_CHECK;
void prb_merged_destroy(struct prb_merged *merged);

/** Appends the tree as text. A chain of frames with the same ranks names them once. */
void prb_merged_text(const struct prb_merged *merged, struct prb_str *s);

/** Appends it as an array of nodes: name, ranks, those of them whose stack ends there, children. */
void prb_merged_json(const struct prb_merged *merged, struct prb_json *json, const char *key);

#endif
