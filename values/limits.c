/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/limits.h"

#include <limits.h>

#include "base/checked.h"

/* Levels of containers in what has no more instances to be looked into. */
enum { CONTAINERS = 3, MAX_DEPTH = 64 };

bool prb_value_limited(const struct prb_value_limits *limits)
{
	return limits->depth || limits->max_value || limits->max_items || limits->secrets;
}

struct prb_error *prb_value_check(const struct prb_value_limits *limits)
{
	if (limits->max_value > PRB_VALUE_MOST || limits->max_items > PRB_VALUE_MOST)
		return prb_error_create(PRB_ERROR_USAGE, "no more than %d can be shown",
					PRB_VALUE_MOST);
	return NULL;
}

struct prb_repr_options prb_value_options(const struct prb_value_limits *limits,
					  const struct prb_repr_options *usual)
{
	struct prb_repr_options options = *usual;

	options.secrets |= limits->secrets;
	if (limits->depth) {
		options.max_objects = (unsigned)PRB_MIN(limits->depth, MAX_DEPTH);
		options.max_depth = options.max_objects + CONTAINERS;
	}
	if (limits->max_value)
		options.max_text = (unsigned)limits->max_value;
	if (limits->max_items)
		options.max_items = options.max_attributes = (unsigned)limits->max_items;
	options.long_attributes = limits->max_value || limits->max_items;
	/* The whole is as long as what was asked for may be. */
	if (limits->depth || limits->max_value || limits->max_items)
		options.max_total = PRB_MAX(options.max_total, PRB_VALUE_TOTAL);
	if (options.max_text > options.max_total / 2)
		options.max_total =
			options.max_text < UINT_MAX / 2 ? 2 * options.max_text : UINT_MAX;
	return options;
}
