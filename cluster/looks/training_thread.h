/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finds the thread that trains. Mostly it is the main thread; the workers of Ray Train call
 * the function of the user in a thread of their own, while the main thread takes Ray's calls.
 *
 * Threading: any thread.
 */
#ifndef PRB_CLUSTER_LOOKS_TRAINING_THREAD_H
#define PRB_CLUSTER_LOOKS_TRAINING_THREAD_H

#include "cluster/looks/seen.h"

/** Sets `trains` of @p seen, a rank of which nothing has been read yet. */
struct prb_error *prb_training_thread_find(struct prb_watch *watch,
					   struct prb_seen *seen) PRB_MUST_CHECK;

/** Restricts the dump of @p options to that thread. */
void prb_training_thread_only(const struct prb_seen *seen, struct prb_dump_options *options);

#endif
