/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Rank sets as people write them: "[0-36,38-1023]". Any thread. */
#ifndef PRB_CLUSTER_JOBS_RANK_SET_H
#define PRB_CLUSTER_JOBS_RANK_SET_H

#include <stddef.h>

#include "base/str.h"
#include "base/vec.h"

struct prb_rank_set {
	PRB_VEC(long) list; /**< ascending */
};

/** Appends "0-36,38" for @p set. */
void prb_rank_set_text(struct prb_str *s, const struct prb_rank_set *set);

#endif
