/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/tasks_view.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/pool.h"

enum { NONE = UINT32_MAX };

struct view {
	const struct prb_tree *old;
	struct prb_tree *tree;
	bool tasks;
	uint32_t *frames;  /* frames of the new tree by the old one's; NONE: not yet */
	uint32_t *renamed; /* stacks */
	/* By stacks of the old tree: the new stack that the first task's frames are called from;
	 * NONE while there was no task. */
	uint32_t *base;
};

static bool has_tasks(const struct prb_tree *tree)
{
	const struct prb_tree_function *function;

	prb_vec_each (function, &tree->functions)
		if (function->kind == PRB_FUNCTION_TASK)
			return true;
	return false;
}

static bool is_marker(const struct view *v, uint32_t stack)
{
	return prb_tree_function_of(v->old, stack)->kind == PRB_FUNCTION_TASK;
}

static struct prb_error *copy_frame(struct view *v, uint32_t frame, uint32_t *ret)
{
	const struct prb_tree_frame *old = &v->old->frames.items[frame];
	struct prb_tree_function function = v->old->functions.items[old->function];
	uint32_t number;

	if (v->frames[frame] == NONE) {
		if (function.kind == PRB_FUNCTION_TASK)
			function.kind = PRB_FUNCTION_NOTE;
		PRB_TRY(prb_tree_function(v->tree, &function, &number));
		PRB_TRY(prb_tree_frame(v->tree, number, old->line, &v->frames[frame]));
	}
	*ret = v->frames[frame];
	return NULL;
}

/* With tasks, only the process, where there are several, stays outside of them. */
static uint32_t outside(const struct view *v, uint32_t stack)
{
	uint32_t first = stack;

	if (!v->tasks)
		return stack;
	while (first && v->tree->stacks.items[first].parent)
		first = v->tree->stacks.items[first].parent;
	/* "4242 python3 train.py"; other notes begin with a bracket. */
	return first && prb_tree_function_of(v->tree, first)->kind == PRB_FUNCTION_NOTE &&
			       isdigit((unsigned char)*prb_tree_function_of(v->tree, first)->name)
		       ? first
		       : 0;
}

static struct prb_error *rename_stack(struct view *v, uint32_t stack)
{
	const struct prb_tree_stack *old = &v->old->stacks.items[stack];
	bool marker = is_marker(v, stack);
	uint32_t under = v->renamed[old->parent], frame;

	v->base[stack] = v->base[old->parent];
	if (marker && v->base[stack] == NONE)
		v->base[stack] = under = outside(v, under);
	else if (marker && !v->tasks)
		under = v->base[stack];
	v->renamed[stack] = under;
	if (marker && !v->tasks)
		return NULL;
	PRB_TRY(copy_frame(v, old->frame, &frame));
	return prb_tree_call(v->tree, under, frame, &v->renamed[stack]);
}

static struct prb_error *rename_all(struct view *v)
{
	v->base[0] = NONE;
	for (size_t i = 0; i < v->old->frames.count; i++)
		v->frames[i] = NONE;
	/* A caller's number is lower than those of its calls. */
	for (uint32_t i = 1; i < v->old->stacks.count; i++)
		PRB_TRY(rename_stack(v, i));
	return NULL;
}

static struct prb_error *replace(struct prb_recording *recording, struct view *v)
{
	struct prb_profile_line *line;
	struct prb_run *run;

	prb_vec_each (line, &recording->lines)
		PRB_TRY(prb_pool_share(v->tree->pool, line->file, &line->file));
	prb_vec_each (run, &recording->runs)
		run->stack = v->renamed[run->stack];
	prb_tree_destroy(recording->tree);
	recording->tree = prb_steal(&v->tree);
	return NULL;
}

struct prb_error *prb_tasks_view(struct prb_recording *recording, bool tasks,
				 uint32_t **ret_renamed)
{
	const struct prb_tree *old = recording->tree;
	prb_auto_free uint32_t *frames = NULL, *renamed = NULL, *base = NULL;
	struct view v = {.old = old, .tasks = tasks};
	struct prb_error *err;

	if (ret_renamed)
		*ret_renamed = NULL;
	if (!has_tasks(old))
		return NULL;
	v.frames = frames = calloc(old->frames.count + 1, sizeof(*frames));
	v.renamed = renamed = calloc(old->stacks.count + 1, sizeof(*renamed));
	v.base = base = calloc(old->stacks.count + 1, sizeof(*base));
	if (!frames || !renamed || !base)
		return prb_error_nomem();
	PRB_TRY(prb_tree_create(&v.tree));
	err = rename_all(&v);
	if (!err)
		err = replace(recording, &v);
	prb_tree_destroy(v.tree);
	if (!err && ret_renamed)
		*ret_renamed = prb_steal(&renamed);
	return err;
}
