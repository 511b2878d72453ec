/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/fold.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"

static struct prb_error *fold(const struct prb_tree *tree, struct prb_number_map *first,
			      uint32_t *folded)
{
	for (size_t i = 1; i < tree->stacks.count; i++) {
		const struct prb_tree_stack *stack = &tree->stacks.items[i];
		uint32_t function = tree->frames.items[stack->frame].function;
		uint64_t key = (uint64_t)folded[stack->parent] << 32 | function;
		size_t number = i;

		if (!prb_number_map_get(first, key, &number) &&
		    !prb_number_map_put(first, key, number))
			return prb_error_nomem();
		folded[i] = (uint32_t)number;
	}
	return NULL;
}

struct prb_error *prb_fold_stacks(const struct prb_tree *tree, bool lines, uint32_t **ret)
{
	prb_auto_free uint32_t *folded = calloc(tree->stacks.count, sizeof(*folded));
	struct prb_number_map first = {};
	struct prb_error *err = NULL;

	if (!folded)
		return prb_error_nomem();
	if (lines)
		for (size_t i = 0; i < tree->stacks.count; i++)
			folded[i] = (uint32_t)i;
	else
		err = fold(tree, &first, folded);
	prb_number_map_deinit(&first);
	if (!err)
		*ret = prb_steal(&folded);
	return err;
}

size_t prb_place_count(const struct prb_tree *tree, bool lines)
{
	return lines ? tree->frames.count : tree->functions.count;
}

struct prb_place prb_place_get(const struct prb_tree *tree, bool lines, uint32_t place)
{
	uint32_t number = lines ? tree->frames.items[place].function : place;
	const struct prb_tree_function *function = &tree->functions.items[number];

	return (struct prb_place){
		function, lines ? tree->frames.items[place].line : function->first_line, lines};
}

uint32_t prb_place_of(const struct prb_tree *tree, bool lines, uint32_t stack)
{
	uint32_t frame = tree->stacks.items[stack].frame;

	return lines ? frame : tree->frames.items[frame].function;
}

struct prb_error *prb_fold_places(const struct prb_tree *tree, bool lines, uint32_t stack,
				  uint32_t **ret)
{
	uint32_t depth = tree->stacks.items[stack].depth;
	uint32_t *places = calloc(depth + 1, sizeof(*places));

	if (!places)
		return prb_error_nomem();
	for (uint32_t i = depth; i > 0; stack = tree->stacks.items[stack].parent)
		places[--i] = prb_place_of(tree, lines, stack);
	*ret = places;
	return NULL;
}
