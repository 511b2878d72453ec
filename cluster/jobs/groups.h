/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The process groups of torch.distributed in a process, read from outside.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_JOBS_GROUPS_H
#define PRB_CLUSTER_JOBS_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "python/python.h"
#include "target/target.h"

struct prb_group {
	uint64_t object; /**< address of the ProcessGroup */
	char *name;	 /**< torch's name of it; NULL if unknown */
	char *members;	 /**< its global ranks, "0-3,7"; NULL if they could not be read */
	size_t size;	 /**< how many they are */
};

struct prb_groups {
	PRB_VEC(struct prb_group) list; /**< in the order of their creation */
	long rank, world_size; /**< of the process in the first one, which has all ranks; -1:
				  unknown */
};

/**
 * Reads the groups of @p target; none if it does not use torch.distributed. @p pythons: as for
 * prb_inside_each().
 */
struct prb_error *prb_groups_read(struct prb_target *target, const struct prb_pythons *pythons,
				  struct prb_groups *ret) PRB_MUST_CHECK;
void prb_groups_deinit(struct prb_groups *groups);

#endif
