/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The call tree: under each function what it called, the heaviest first. */
#include "cli/commands/top/top.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/recording/fold.h"

enum { MOST_INDENT = 60, MOST_NODES = 5000 };

/* Shares below it are left out, and counted. */
static const double least = 0.005;

struct tree {
	const struct prb_top *top;
	const struct prb_tree *calls;
	uint32_t *folded; /* the stack that stands for each */
	int64_t *self, *total;
	uint32_t *child, *next; /* of stacks that stand for others, and weigh anything */
	size_t nodes, hidden;
	size_t most_rows;
	int64_t whole;
};

static void tree_deinit(struct tree *t)
{
	free(t->folded);
	free(t->self);
	free(t->total);
	free(t->child);
	free(t->next);
}

static struct prb_error *tree_init(struct tree *t)
{
	size_t count = t->calls->stacks.count + 1;

	PRB_TRY(prb_fold_stacks(t->calls, t->top->lines, &t->folded));
	t->self = calloc(count, sizeof(*t->self));
	t->total = calloc(count, sizeof(*t->total));
	t->child = calloc(count, sizeof(*t->child));
	t->next = calloc(count, sizeof(*t->next));
	return t->self && t->total && t->child && t->next ? NULL : prb_error_nomem();
}

static void add_runs(struct tree *t, const struct prb_recording *r)
{
	const struct prb_profile_choice choice = {.weight = t->top->weight};
	const struct prb_run *run;

	prb_vec_each (run, &r->runs) {
		int64_t weight = prb_run_weight(run, &choice);

		if (weight <= 0 ||
		    (t->top->tid && r->threads.items[run->thread].tid != t->top->tid))
			continue;
		t->self[t->folded[run->stack]] += weight;
		t->whole += weight;
	}
}

/* Into the list of a caller's calls, the heaviest first. */
static void insert(struct tree *t, uint32_t parent, uint32_t stack)
{
	uint32_t *at = &t->child[parent];

	while (*at && t->total[*at] >= t->total[stack])
		at = &t->next[*at];
	t->next[stack] = *at;
	*at = stack;
}

/* A caller's number is lower than those of its calls. */
static void link_calls(struct tree *t)
{
	for (size_t i = t->calls->stacks.count; i-- > 1;) {
		t->total[i] += t->self[i];
		if (t->folded[i] == i && t->total[i] > 0)
			t->total[t->folded[t->calls->stacks.items[i].parent]] += t->total[i];
	}
	for (uint32_t i = 1; i < t->calls->stacks.count; i++) {
		if (t->folded[i] != i || !t->total[i])
			continue;
		if ((double)t->total[i] >= least * (double)t->whole)
			insert(t, t->folded[t->calls->stacks.items[i].parent], i);
		else
			t->hidden++;
	}
}

static void put_node(const struct tree *t, uint32_t stack, size_t depth, struct prb_str *s)
{
	struct prb_place place = prb_place_get(t->calls, t->top->lines,
					       prb_place_of(t->calls, t->top->lines, stack));
	const double whole = (double)t->whole;

	prb_str_printf(s, " %5.1f %%  %5.1f %%  ", 100 * (double)t->total[stack] / whole,
		       100 * (double)t->self[stack] / whole);
	prb_text_spaces(s, PRB_MIN(depth, (size_t)MOST_INDENT));
	prb_text_escape(s, place.function->name);
	if (prb_function_file(place.function))
		prb_str_puts(s, "  ");
	prb_function_put_place(s, place.function, place.line);
	prb_str_putc(s, '\n');
}

static bool has_match(const struct tree *t, uint32_t stack)
{
	const struct prb_tree_function *f = prb_tree_function_of(t->calls, stack);

	return prb_top_matches(t->top, f->name) || prb_top_matches(t->top, prb_function_file(f));
}

/* Whether a stack, or one that it called, matches the filter. */
static bool is_shown(const struct tree *t, uint32_t stack)
{
	uint32_t at = stack;

	if (!t->top->regex)
		return true;
	for (;;) {
		if (has_match(t, at))
			return true;
		if (t->child[at]) {
			at = t->child[at];
			continue;
		}
		while (at != stack && !t->next[at])
			at = t->folded[t->calls->stacks.items[at].parent];
		if (at == stack)
			return false;
		at = t->next[at];
	}
}

/* A stack without a match is skipped with all its calls. */
static void put_nodes(struct tree *t, struct prb_str *s)
{
	uint32_t at = t->child[0];
	size_t depth = 0;

	while (at && t->nodes < MOST_NODES) {
		bool shown = is_shown(t, at);

		if (shown && t->most_rows && t->nodes >= t->most_rows)
			t->hidden++;
		else if (shown) {
			t->nodes++;
			put_node(t, at, depth, s);
		}
		if (shown && t->child[at]) {
			at = t->child[at];
			depth++;
			continue;
		}
		while (at && !t->next[at]) {
			at = t->folded[t->calls->stacks.items[at].parent];
			depth -= at != 0;
		}
		at = at ? t->next[at] : 0;
	}
}

struct prb_error *prb_top_put_tree(const struct prb_top *top, size_t most_rows, struct prb_str *s)
{
	struct prb_recording r = prb_top_slice(top, prb_top_first_part(top), prb_top_end(top));
	__attribute__((cleanup(tree_deinit))) struct tree t = {
		.top = top, .calls = r.tree, .most_rows = most_rows};

	PRB_TRY(tree_init(&t));
	add_runs(&t, &r);
	link_calls(&t);
	prb_str_puts(s, "   total     self  call\n");
	put_nodes(&t, s);
	if (t.hidden)
		prb_str_printf(s, " … %zu more, of less than %.1f %% each\n", t.hidden,
			       100 * least);
	return NULL;
}
