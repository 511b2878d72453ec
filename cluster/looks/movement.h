/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Changes of a rank between looks. Any thread; nothing is allocated. */
#ifndef PRB_CLUSTER_LOOKS_MOVEMENT_H
#define PRB_CLUSTER_LOOKS_MOVEMENT_H

#include <stddef.h>

#include "cluster/looks/seen.h"

/** Notes in the last of @p count looks, at least two, how each rank moved, and how long it took. */
void prb_movement_note(struct prb_round *rounds, size_t count);

#endif
