/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Limits of the text of a value, as a user gives them. Pure functions. */
#ifndef PRB_VALUES_LIMITS_H
#define PRB_VALUES_LIMITS_H

#include "python/repr/core/repr.h"

/** 0 means the default. */
struct prb_value_limits {
	int depth;     /**< levels of instances and containers */
	int max_value; /**< characters of a text */
	int max_items; /**< items, and attributes, of each */
	bool secrets;  /**< also what an object's own class hides */
};

enum {
	PRB_VALUE_TOTAL = 20000,    /**< bytes of a value, where a limit is the user's own */
	PRB_VALUE_MOST = 100 << 20, /**< that a limit of a text or of items can be */
};

/** Whether there is one. */
bool prb_value_limited(const struct prb_value_limits *limits);

/** PRB_ERROR_USAGE if one is too large. */
struct prb_error *prb_value_check(const struct prb_value_limits *limits) PRB_MUST_CHECK;

/** @p usual with the limits that are given. */
struct prb_repr_options prb_value_options(const struct prb_value_limits *limits,
					  const struct prb_repr_options *usual);

#endif
