/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What the files of Kineto's traces share. */
#ifndef PRB_PROFILE_KINETO_PRIVATE_H
#define PRB_PROFILE_KINETO_PRIVATE_H

#include "profile/kineto/trace.h"

/** Adds the module of a range to the list, and its number to the event. */
struct prb_error *prb_kineto_take_apart(struct prb_kineto *trace,
					struct prb_kineto_event *event) PRB_MUST_CHECK;

/** Operations on numbers that an operator does, from the shapes of its inputs; 0: unknown. */
int64_t prb_kineto_flops(const struct prb_kineto_event *event);

#endif
