/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Asks NCCL's RAS service, which each process of NCCL 2.24 and later has on its machine, for
 * the communicators of a job: their ranks, where these run, and how many collectives each has
 * launched. The format that is read here is that of 2.28.7 and later.
 *
 * Any process can listen at the port: the answer is untrusted. All in it is bounded and checked;
 * hosts are addresses.
 *
 * Threading: any thread.
 */
#ifndef PRB_CLUSTER_REACH_RAS_H
#define PRB_CLUSTER_REACH_RAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "cluster/reach/hosts.h"

/** Where NCCL listens if $NCCL_RAS_ADDR does not say otherwise. */
#define PRB_RAS_ADDRESS "127.0.0.1:28028"

enum { PRB_RAS_OPERATIONS = 16 };

struct prb_ras_rank {
	long rank;	    /**< its number in the communicator */
	char *host;	    /**< an address; NULL: unknown */
	long pid;	    /**< -1: unknown */
	bool missing, dead; /**< it did not answer RAS; for so long that RAS asks it no more */
	int64_t counts[PRB_RAS_OPERATIONS]; /**< collectives it has launched, by the operation */
};

struct prb_ras_communicator {
	char *name, *second; /**< "0xae94423cfbb2ef4a"; both together are unique */
	long size;
	char *operations[PRB_RAS_OPERATIONS]; /**< "AllReduce"; NULL behind the last one */
	PRB_VEC(struct prb_ras_rank) ranks;
};

struct prb_ras {
	double seconds; /**< of the monotonic clock, when it was asked */
	PRB_VEC(struct prb_ras_communicator) list;
};

struct prb_error *prb_ras_read(const char *address, struct prb_ras **ret) PRB_MUST_CHECK;
/** NULL is none. */
void prb_ras_destroy(struct prb_ras *ras);

/** Appends each host once. PRB_ERROR_NOT_FOUND if none is named. @p address: for the message. */
struct prb_error *prb_ras_hosts(const struct prb_ras *ras, const char *address,
				struct prb_hosts *ret) PRB_MUST_CHECK;

/** True if no rank has launched anything between the two answers, of the same communicator. */
bool prb_ras_is_same(const struct prb_ras_communicator *a, const struct prb_ras_communicator *b);

#endif
