/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of modules with their times, made from a recording by module, as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/perf/torch/torch.h"

enum { NONE = UINT32_MAX, SHARE_WIDTH = 8, BOUNDS_WIDTH = 10, TIME_WIDTH = 10 };

void prb_torch_tree_deinit(struct prb_torch_tree *tree)
{
	prb_vec_free(&tree->list);
	prb_torch_verdicts_deinit(&tree->verdicts);
	prb_report_deinit(&tree->report);
}

static int compare_names(const void *a, const void *b)
{
	const struct prb_module_name *one = a, *other = b;

	return one->address < other->address ? -1 : one->address > other->address;
}

/* Path of a module relative to its parent's. */
static const char *short_path(const char *path, const char *above)
{
	size_t length = above ? strlen(above) : 0;

	return above && !strncmp(path, above, length) && path[length] == '.' ? path + length + 1
									     : path;
}

static enum prb_step_part part_named(const char *name)
{
	enum prb_step_part part = PRB_STEP_FORWARD;

	while (part < PRB_STEP_OTHER && strcmp(prb_step_part_name(part), name))
		part++;
	return part;
}

struct maker {
	const struct prb_tree *tree;
	const struct prb_module_name *names;
	const uint32_t *orders;
	size_t count;
	struct prb_torch_node *nodes; /* of each stack but the empty one */
};

static uint32_t part_above(const struct maker *m, uint32_t stack)
{
	while (m->nodes[stack].parent != NONE)
		stack = m->nodes[stack].parent;
	return m->nodes[stack].order;
}

static void describe(struct maker *m, uint32_t stack)
{
	const struct prb_tree_function *f = prb_tree_function_of(m->tree, stack);
	uint32_t parent = m->tree->stacks.items[stack].parent;
	struct prb_torch_node *node = &m->nodes[stack];
	const struct prb_module_name *name =
		m->count ? bsearch(&(struct prb_module_name){.address = f->subject}, m->names,
				   m->count, sizeof(*m->names), compare_names)
			 : NULL;

	node->parent = parent ? parent : NONE;
	node->depth = m->tree->stacks.items[stack].depth - 1;
	if (!name) {
		node->name = f->name;
		node->order = part_named(f->name);
		return;
	}
	node->path = name->path;
	node->class = name->class;
	/* Below backward; the modules that it calls are not marked again. */
	node->recomputed =
		parent && !m->nodes[parent].path && part_above(m, parent) == PRB_STEP_BACKWARD;
	node->name = short_path(name->path, parent ? m->nodes[parent].path : NULL);
	node->order = m->orders[name - m->names];
}

/*
 * The child of @p stack after @p last; equal ones in the order of their first sample. NONE: no
 * more.
 */
static uint32_t next_child(const struct maker *m, uint32_t stack, uint32_t last)
{
	uint32_t next = NONE;

	for (uint32_t i = 1; i < m->tree->stacks.count; i++) {
		uint32_t order = m->nodes[i].order;

		if (m->nodes[i].parent != stack)
			continue;
		if (last != NONE &&
		    (order < m->nodes[last].order || (order == m->nodes[last].order && i <= last)))
			continue;
		if (next == NONE || order < m->nodes[next].order)
			next = i;
	}
	return next;
}

/* Lists nodes in the order of the tree: each is followed by its descendants. */
static struct prb_error *list(const struct maker *m, uint32_t stack, uint32_t parent,
			      struct prb_torch_tree *ret)
{
	for (uint32_t i = next_child(m, stack, NONE); i != NONE; i = next_child(m, stack, i)) {
		struct prb_torch_node *added;

		/* Only other threads ran it. */
		if (!m->nodes[i].samples && !m->nodes[i].total)
			continue;
		added = prb_vec_push(&ret->list);
		if (!added)
			return prb_error_nomem();
		*added = m->nodes[i];
		added->parent = parent;
		PRB_TRY(list(m, i, (uint32_t)ret->list.count - 1, ret));
	}
	return NULL;
}

static struct prb_error *make(struct maker *m, const struct prb_by_module *by,
			      const struct prb_profile_choice *choice, struct prb_torch_tree *ret)
{
	const struct prb_run *run;

	for (uint32_t i = 1; i < m->tree->stacks.count; i++)
		describe(m, i);
	prb_vec_each (run, &by->recording->runs) {
		m->nodes[run->stack].self += prb_run_weight(run, choice);
		m->nodes[run->stack].samples += run->samples;
	}
	/* Callers have lower numbers than callees. */
	for (size_t i = m->tree->stacks.count; i-- > 1;) {
		m->nodes[i].total += m->nodes[i].self;
		if (m->nodes[i].parent == NONE)
			continue;
		m->nodes[m->nodes[i].parent].total += m->nodes[i].total;
		m->nodes[m->nodes[i].parent].samples += m->nodes[i].samples;
	}
	return list(m, NONE, NONE, ret);
}

struct prb_error *prb_torch_tree_make(const struct prb_by_module *by,
				      const struct prb_module_name *names, const uint32_t *orders,
				      size_t count, const struct prb_profile_choice *choice,
				      struct prb_torch_tree *ret)
{
	const struct prb_tree *tree = by->recording->tree;
	prb_auto_free struct prb_torch_node *nodes = calloc(tree->stacks.count + 1, sizeof(*nodes));
	struct maker m = {
		.tree = tree, .names = names, .orders = orders, .count = count, .nodes = nodes};

	*ret = (struct prb_torch_tree){.steps = by->steps, .unknown = by->unknown};
	if (!nodes)
		return prb_error_nomem();
	PRB_TRY(prb_report_make(by->recording, choice, &ret->report));

	struct prb_error *err = make(&m, by, choice, ret);
	if (err)
		prb_torch_tree_deinit(ret);
	return err;
}

static void put_share(struct prb_str *s, double share)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%.1f %%", 100 * share);
	prb_text_right(s, prb_str_text(&text), SHARE_WIDTH);
}

static void put_bounds(struct prb_str *s, struct prb_share share)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%.0f–%.0f %%", 100 * share.low, 100 * share.high);
	prb_text_right(s, prb_str_text(&text), BOUNDS_WIDTH);
}

/* Empty if steps were not counted: of a least number only a longest step follows. */
static void put_per_step(struct prb_str *s, int64_t ns, const struct prb_torch_tree *tree)
{
	prb_auto_str struct prb_str text = {};

	if (tree->steps && tree->steps_exact)
		prb_text_duration(&text, (double)ns / 1e9 / (double)tree->steps);
	prb_text_right(s, prb_str_text(&text), TIME_WIDTH);
}

static void put_node(const struct prb_torch_tree *tree, const struct prb_torch_node *node,
		     struct prb_str *s)
{
	put_share(s, prb_report_share(&tree->report, node->total).share);
	put_bounds(s, prb_report_share(&tree->report, node->total));
	put_share(s, prb_report_share(&tree->report, node->self).share);
	put_per_step(s, node->total, tree);
	prb_text_spaces(s, 2 + 2 * node->depth);
	prb_text_escape(s, node->name);
	if (node->class) {
		prb_str_puts(s, ": ");
		prb_text_escape(s, node->class);
	}
	if (node->recomputed)
		prb_str_puts(s, " (recomputed)");
	if (node->order == PRB_STEP_COMMUNICATION && !node->path && tree->ranks &&
	    tree->ranks->late.rank && !tree->ranks->own)
		prb_str_printf(s, ": mostly waiting for rank %ld",
			       tree->ranks->late.rank->rank->rank);
	prb_str_putc(s, '\n');
}

static void put_head(const struct prb_recording *r, const struct prb_torch_tree *tree,
		     const struct prb_profile_choice *choice, struct prb_str *s)
{
	const char *end = prb_profile_end_text(r->end);
	uint64_t steps = tree->steps;

	prb_str_printf(s, "%d  ", (int)r->pid);
	prb_text_escape(s, r->command ? r->command : "");
	prb_str_puts(s, "\nPython ");
	prb_text_escape(s, r->python ? r->python : "?");
	prb_str_puts(s, " · ");
	prb_text_duration(s, (double)r->duration / 1e9);
	prb_str_printf(s, " · %llu samples of %zu thread%s · ",
		       (unsigned long long)tree->report.taken, r->threads.count,
		       r->threads.count == 1 ? "" : "s");
	if (!steps)
		prb_str_puts(s, "no step was seen");
	else
		prb_str_printf(s, "%s%llu step%s", tree->steps_exact ? "" : "at least ",
			       (unsigned long long)steps, steps == 1 ? "" : "s");
	if (steps && tree->steps_exact) {
		prb_str_puts(s, " of ");
		prb_text_duration(s, (double)r->duration / 1e9 / (double)steps);
	}
	prb_str_printf(s, " · %s%s%s\n", prb_weight_words[choice->weight].mode, end ? " · " : "",
		       end ? end : "");
}

struct prb_error *prb_torch_tree_text(const struct prb_recording *r,
				      const struct prb_torch_tree *tree,
				      const struct prb_profile_choice *choice, struct prb_str *s)
{
	const double least = 0.005;
	const struct prb_torch_node *node;
	size_t hidden = 0;

	prb_torch_verdicts_text(&tree->verdicts, s);
	put_head(r, tree, choice, s);
	prb_str_puts(s, "\n   total      95 %    self  per step  module\n");
	prb_vec_each (node, &tree->list) {
		if (prb_report_share(&tree->report, node->total).share < least && node->path)
			hidden++;
		else
			put_node(tree, node, s);
	}
	if (hidden)
		prb_str_printf(s, "%zu modules with less than 0.5 %% each are not shown\n", hidden);
	if (tree->unknown)
		prb_str_puts(s, "some modules that ran were gone when their names were read: their "
				"time is that of what called them\n");
	prb_str_puts(s, "cost: ");
	prb_str_printf(s, "%llu stops, longest %.0f µs · own CPU %.1f %%\n",
		       (unsigned long long)r->cost.stops, r->cost.pause_max,
		       r->duration > 0 ? 100 * (double)r->cost.own_cpu / (double)r->duration : 0);
	return s->failed ? prb_error_nomem() : NULL;
}

static void put_share_json(struct prb_json *json, const struct prb_torch_tree *tree,
			   const struct prb_torch_node *node)
{
	struct prb_share share = prb_report_share(&tree->report, node->total);

	prb_json_real(json, "share", share.share, 6);
	prb_json_real(json, "share_low", share.low, 6);
	prb_json_real(json, "share_high", share.high, 6);
	prb_json_real(json, "self_share", prb_report_share(&tree->report, node->self).share, 6);
}

struct prb_error *prb_torch_tree_json(const struct prb_recording *r,
				      const struct prb_torch_tree *tree,
				      const struct prb_profile_choice *choice, struct prb_str *s)
{
	struct prb_json json = {.out = s};
	const struct prb_torch_node *node;

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", r->pid);
	prb_json_text(&json, "command", r->command);
	prb_json_text(&json, "python", r->python);
	prb_json_real(&json, "timestamp", r->started, 6);
	prb_json_integer(&json, "duration_ns", r->duration);
	prb_json_text(&json, "mode", prb_weight_words[choice->weight].mode);
	prb_json_integer(&json, "weight_ns", tree->report.weight);
	prb_json_integer(&json, "samples", (int64_t)tree->report.taken);
	prb_json_real(&json, "independent_samples", tree->report.samples, 1);
	prb_json_integer(&json, "steps", (int64_t)tree->steps);
	prb_json_bool(&json, "steps_exact", tree->steps_exact);
	prb_json_text(&json, "ended", prb_profile_end_text(r->end));
	prb_torch_verdicts_json(&tree->verdicts, &json);
	prb_json_open(&json, "nodes", '[');
	prb_vec_each (node, &tree->list) {
		prb_json_open(&json, NULL, '{');
		prb_json_natural(&json, "parent",
				 node->parent == NONE ? -1 : (int64_t)node->parent);
		prb_json_text(&json, "name", node->name);
		prb_json_text(&json, "path", node->path);
		prb_json_text(&json, "class", node->class);
		prb_json_bool(&json, "recomputed", node->recomputed);
		prb_json_integer(&json, "self_ns", node->self);
		prb_json_integer(&json, "total_ns", node->total);
		prb_json_integer(&json, "samples", (int64_t)node->samples);
		put_share_json(&json, tree, node);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_integer(&json, "unknown_ns", tree->unknown);
	prb_json_integer(&json, "stops", (int64_t)r->cost.stops);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
	return s->failed ? prb_error_nomem() : NULL;
}
