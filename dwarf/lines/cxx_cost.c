/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/cxx_cost.h"

#include <libiberty/demangle.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	MOST_CONVERSIONS = 12, /* operators, whose template arguments are read twice */
	MOST_STEPS = 1 << 22,
};

/** What it takes to print each part, in parts and letters of names; MOST_STEPS or more: too much.
 */
struct costs {
	const struct demangle_component *parts;
	uint64_t *list; /**< 0: not known yet */
	size_t count;
	uint64_t parameter; /**< of a template parameter: that of the largest argument */
	uint64_t pack;	    /**< elements of the longest pack */
};

bool prb_cxx_parses_soon(const char *symbol)
{
	size_t conversions = 0;

	/* Longer ones are refused by the library where it keeps what it reads on the stack. */
	if (strlen(symbol) * 2 > DEMANGLE_RECURSION_LIMIT)
		return false;
	for (; (symbol = strstr(symbol, "cv")); symbol++)
		conversions++;
	return conversions <= MOST_CONVERSIONS;
}

/* All are in one block. */
static bool is_part(const struct costs *costs, const struct demangle_component *part)
{
	const uintptr_t at = (uintptr_t)part, begin = (uintptr_t)costs->parts;

	return at >= begin && (at - begin) / sizeof(*part) < costs->count;
}

static uint64_t cost_of(struct costs *costs, const struct demangle_component *part);

static uint64_t cost_of_both(struct costs *costs, const struct demangle_component *part)
{
	const struct demangle_component *left = part->u.s_binary.left;
	const struct demangle_component *right = part->u.s_binary.right;

	/* This kind has no parts: what the union holds there is no component. */
	if (left && !is_part(costs, left))
		return 0;
	return (left ? cost_of(costs, left) : 0) +
	       (is_part(costs, right) ? cost_of(costs, right) : 0);
}

static uint64_t cost_of_one(struct costs *costs, const struct demangle_component *part)
{
	return is_part(costs, part) ? cost_of(costs, part) : 0;
}

static uint64_t cost_inside(struct costs *costs, const struct demangle_component *part)
{
	switch (part->type) {
	case DEMANGLE_COMPONENT_NAME:
		return (uint64_t)PRB_MAX(part->u.s_name.len, 0);
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
		return costs->parameter;
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_NUMBER:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
		return 0;
	case DEMANGLE_COMPONENT_CTOR:
		return cost_of_one(costs, part->u.s_ctor.name);
	case DEMANGLE_COMPONENT_DTOR:
		return cost_of_one(costs, part->u.s_dtor.name);
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
		return cost_of_one(costs, part->u.s_extended_operator.name);
	case DEMANGLE_COMPONENT_FIXED_TYPE:
		return cost_of_one(costs, part->u.s_fixed.length);
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG:
		return cost_of_one(costs, part->u.s_unary_num.sub);
	case DEMANGLE_COMPONENT_PACK_EXPANSION:
		return cost_of_both(costs, part) * (1 + costs->pack);
	default:
		return cost_of_both(costs, part);
	}
}

/* No deeper than there are parts. */
static uint64_t cost_of(struct costs *costs, const struct demangle_component *part)
{
	uint64_t *cost = &costs->list[part - costs->parts];

	if (!*cost) {
		*cost = MOST_STEPS; /* within itself */
		*cost = PRB_MIN(1 + cost_inside(costs, part), (uint64_t)MOST_STEPS);
	}
	return *cost;
}

static bool is_arguments(const struct costs *costs, const struct demangle_component *part)
{
	return is_part(costs, part) && part->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST;
}

/* True for parts within which parameters are those of other templates than around them. */
static bool is_scope(const struct demangle_component *part)
{
	return part->type == DEMANGLE_COMPONENT_TYPED_NAME ||
	       part->type == DEMANGLE_COMPONENT_CONVERSION;
}

/* Looks at the parts that were reached: how deep parameters can stand for others, and packs. */
static size_t look_at_parts(struct costs *costs)
{
	size_t scopes = 0;

	for (size_t i = 0; i < costs->count; i++) {
		const struct demangle_component *part = &costs->parts[i];
		uint64_t length = 0;

		if (!costs->list[i])
			continue;
		scopes += is_scope(part);
		for (; is_arguments(costs, part) && length < costs->count;
		     part = part->u.s_binary.right)
			length++;
		costs->pack = PRB_MAX(costs->pack, length);
	}
	return scopes;
}

static uint64_t largest_argument(const struct costs *costs)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < costs->count; i++) {
		const struct demangle_component *part = &costs->parts[i];

		if (costs->list[i] && is_arguments(costs, part) &&
		    is_part(costs, part->u.s_binary.left))
			largest =
				PRB_MAX(largest, costs->list[part->u.s_binary.left - costs->parts]);
	}
	return largest;
}

static uint64_t again(struct costs *costs, const struct demangle_component *tree)
{
	memset(costs->list, 0, costs->count * sizeof(*costs->list));
	return cost_of(costs, tree);
}

bool prb_cxx_prints_soon(const char *symbol, const struct demangle_component *tree,
			 const void *block)
{
	const size_t count = 2 * strlen(symbol); /* of which it allocates as many */
	prb_auto_free uint64_t *list = calloc(count, sizeof(*list));
	struct costs costs = {.parts = block, .list = list, .count = count};
	size_t scopes;
	uint64_t cost;

	if (!list || !is_part(&costs, tree))
		return false;
	cost_of(&costs, tree);
	scopes = look_at_parts(&costs);
	cost = again(&costs, tree);
	/* An argument may have parameters of the template around. */
	for (size_t i = 0; i <= scopes && cost < MOST_STEPS; i++) {
		const uint64_t argument = largest_argument(&costs);

		if (argument == costs.parameter)
			break;
		costs.parameter = argument;
		cost = again(&costs, tree);
	}
	return cost < MOST_STEPS;
}
