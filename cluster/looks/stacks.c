/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "base/text.h"
#include "cluster/looks/thread_text.h"

enum {
	MAX_DEPTH = 512, /* frames of one stack that are merged; a note says that there are more */
	INDENT = 2,
	INDENTED = 40, /* levels beyond this are not indented further */
};

struct node {
	const char *name; /* the pool's, so that equal texts are one pointer */
	const char *wait; /* what the ranks that end here wait for, if it is the same; else NULL */
	bool waits;	  /* some rank ends here */
	struct prb_rank_set ranks, ends; /* and of them, those whose stack ends here */
	PRB_VEC(struct node *) children;
};

struct prb_merged {
	struct prb_pool *pool;
	struct node root;
	bool native; /* with all C frames */
};

static void node_deinit(struct node *node)
{
	struct node **child;

	prb_vec_each (child, &node->children) {
		node_deinit(*child);
		free(*child);
	}
	prb_vec_free(&node->children);
	prb_vec_free(&node->ranks.list);
	prb_vec_free(&node->ends.list);
}

void prb_merged_destroy(struct prb_merged *merged)
{
	if (!merged)
		return;
	node_deinit(&merged->root);
	prb_pool_destroy(merged->pool);
	free(merged);
}

static struct prb_error *note_rank(struct prb_rank_set *set, long rank)
{
	size_t count = set->list.count;
	long *place;

	/* Ranks come in ascending order; two threads of one rank may have the same frame. */
	if (count && set->list.items[count - 1] == rank)
		return NULL;
	place = prb_vec_push(&set->list);
	if (!place)
		return prb_error_nomem();
	*place = rank;
	return NULL;
}

static struct prb_error *descend(struct prb_merged *merged, struct node **at, const char *text,
				 long rank)
{
	struct node **child, *fresh;
	const char *name;

	PRB_TRY(prb_pool_share(merged->pool, text, &name));
	prb_vec_each (child, &(*at)->children) {
		if ((*child)->name != name)
			continue;
		*at = *child;
		return note_rank(&(*at)->ranks, rank);
	}
	fresh = calloc(1, sizeof(*fresh));
	child = fresh ? prb_vec_push(&(*at)->children) : NULL;
	if (!child) {
		free(fresh);
		return prb_error_nomem();
	}
	fresh->name = name;
	*child = fresh;
	*at = fresh;
	return note_rank(&fresh->ranks, rank);
}

/** "Trainer.step  train.py:41", escaped. */
static void put_frame(struct prb_str *s, const struct prb_dump_frame *frame)
{
	const char *file = frame->file ? frame->file : frame->module;
	const char *slash = file ? strrchr(file, '/') : NULL;

	prb_text_escape(s, prb_frame_name(frame));
	if (!file)
		return;
	prb_str_puts(s, "  ");
	prb_text_escape(s, slash ? slash + 1 : file);
	if (frame->line > 0)
		prb_str_printf(s, ":%d", frame->line);
}

static struct prb_error *note_end(struct prb_merged *merged, struct node *node,
				  const struct prb_dump_thread *thread, long rank)
{
	const char *text = thread->waits_for ? thread->waits_for : thread->state;
	const char *wait;

	PRB_TRY(prb_pool_share(merged->pool, text ? text : "", &wait));
	if (!node->waits)
		node->wait = wait;
	else if (node->wait != wait)
		node->wait = NULL;
	node->waits = true;
	return note_rank(&node->ends, rank);
}

/**
 * True for what the tree shows: some ranks were read with their C frames to find out what they wait
 * for, and would not be beside the others. Of these frames, only the collective is shown.
 */
static bool is_shown(const struct prb_merged *merged, const struct prb_seen *seen,
		     const struct prb_dump_frame *frame)
{
	return merged->native || frame->kind == PRB_FRAME_PYTHON || frame == seen->in_c;
}

/** How many of the @p count innermost frames are shown. */
static size_t count_shown(const struct prb_merged *merged, const struct prb_seen *seen,
			  const struct prb_dump_thread *thread, size_t count)
{
	size_t shown = 0;

	for (size_t i = 0; i < count; i++)
		shown += is_shown(merged, seen, &thread->frames.items[i]);
	return shown;
}

static struct prb_error *add_thread(struct prb_merged *merged, const struct prb_seen *seen,
				    const struct prb_dump_thread *thread)
{
	const long rank = seen->rank->rank;
	struct node *at = &merged->root;
	size_t count = thread->frames.count, depth = 0;
	prb_auto_str struct prb_str text = {};

	/* A thread of a C library. */
	if (count && !count_shown(merged, seen, thread, count))
		return NULL;

	prb_text_escape(&text, thread->name	 ? thread->name
			       : thread->os_name ? thread->os_name
						 : "(thread)");
	PRB_TRY(descend(merged, &at, prb_str_text(&text), rank));
	for (size_t i = count; i > 0; i--) {
		if (!is_shown(merged, seen, &thread->frames.items[i - 1]))
			continue;
		prb_str_truncate(&text, 0);
		if (depth++ >= MAX_DEPTH) {
			prb_str_printf(&text, "(%zu more calls)",
				       count_shown(merged, seen, thread, i));
			PRB_TRY(descend(merged, &at, prb_str_text(&text), rank));
			break;
		}
		put_frame(&text, &thread->frames.items[i - 1]);
		PRB_TRY(descend(merged, &at, prb_str_text(&text), rank));
	}
	if (thread->error) {
		prb_str_truncate(&text, 0);
		prb_str_puts(&text, "unreadable: ");
		prb_text_escape(&text, thread->error);
		PRB_TRY(descend(merged, &at, prb_str_text(&text), rank));
	}
	return text.failed ? prb_error_nomem() : note_end(merged, at, thread, rank);
}

static int by_count(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;

	if (x->ranks.list.count != y->ranks.list.count)
		return x->ranks.list.count < y->ranks.list.count ? -1 : 1;
	return (x->ranks.list.items[0] > y->ranks.list.items[0]) -
	       (x->ranks.list.items[0] < y->ranks.list.items[0]);
}

static void sort(struct node *node)
{
	struct node **child;

	if (node->children.count)
		qsort(node->children.items, node->children.count, sizeof(struct node *), by_count);
	prb_vec_each (child, &node->children)
		sort(*child);
}

static struct prb_error *add_rank(struct prb_merged *merged, const struct prb_seen *seen, bool all)
{
	const struct prb_dump_thread *thread;

	if (!seen->dump)
		return NULL;
	if (!all)
		return seen->main ? add_thread(merged, seen, seen->main) : NULL;
	prb_vec_each (thread, &seen->dump->threads)
		PRB_TRY(add_thread(merged, seen, thread));
	return NULL;
}

struct prb_error *prb_merged_create(const struct prb_round *round, bool all, bool native,
				    struct prb_merged **ret)
{
	struct prb_merged *merged = calloc(1, sizeof(*merged));
	const struct prb_seen *seen;
	struct prb_error *err;

	if (!merged)
		return prb_error_nomem();
	merged->native = native;
	err = prb_pool_create(&merged->pool);
	prb_vec_each (seen, &round->list)
		if (!err)
			err = add_rank(merged, seen, all);
	if (err) {
		prb_merged_destroy(merged);
		return err;
	}
	sort(&merged->root);
	*ret = merged;
	return NULL;
}

static bool same_ranks(const struct node *a, const struct node *b)
{
	/* A child's ranks are among its parent's. */
	return a->ranks.list.count == b->ranks.list.count;
}

/** "1021:[0-36,38-1023]" */
static void put_set(struct prb_str *s, const struct prb_rank_set *set)
{
	prb_str_printf(s, "%zu:[", set->list.count);
	prb_rank_set_text(s, set);
	prb_str_putc(s, ']');
}

static void put_node(const struct node *node, const struct node *parent, unsigned depth,
		     size_t width, struct prb_str *s)
{
	struct node *const *child;
	bool alone = parent && same_ranks(parent, node);
	prb_auto_str struct prb_str ranks = {};

	if (!alone)
		put_set(&ranks, &node->ranks);
	prb_text_column(s, prb_str_text(&ranks), width);
	prb_text_spaces(s, INDENT * (depth < INDENTED ? depth : INDENTED) + 2);
	prb_str_puts(s, node->name);
	if (node->waits && node->wait && *node->wait) {
		prb_str_puts(s, "   ");
		prb_text_escape(s, node->wait);
	}
	prb_str_putc(s, '\n');
	prb_vec_each (child, &node->children)
		put_node(*child, node, depth + (node->children.count > 1 || !parent), width, s);
}

/** The widest rank set, up to a limit: longer ones push their line to the right. */
static size_t set_width(const struct node *node)
{
	prb_auto_str struct prb_str text = {};
	struct node *const *child;
	size_t widest;

	put_set(&text, &node->ranks);
	widest = text.length;
	prb_vec_each (child, &node->children) {
		size_t width = set_width(*child);

		widest = width > widest ? width : widest;
	}
	return widest < 24 ? widest : 24;
}

void prb_merged_text(const struct prb_merged *merged, struct prb_str *s)
{
	struct node *const *thread;
	size_t width = set_width(&merged->root);

	prb_vec_each (thread, &merged->root.children)
		put_node(*thread, NULL, 0, width, s);
}

static void put_ranks(const struct prb_rank_set *set, struct prb_json *json, const char *key)
{
	const long *rank;

	prb_json_open(json, key, '[');
	prb_vec_each (rank, &set->list)
		prb_json_integer(json, NULL, *rank);
	prb_json_close(json, ']');
}

static void put_json(const struct node *node, struct prb_json *json)
{
	struct node *const *child;

	prb_json_open(json, NULL, '{');
	prb_json_text(json, "name", node->name);
	put_ranks(&node->ranks, json, "ranks");
	put_ranks(&node->ends, json, "ends");
	prb_json_text(json, "waits_for", node->waits ? node->wait : NULL);
	prb_json_open(json, "children", '[');
	prb_vec_each (child, &node->children)
		put_json(*child, json);
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

void prb_merged_json(const struct prb_merged *merged, struct prb_json *json, const char *key)
{
	struct node *const *child;

	prb_json_open(json, key, '[');
	prb_vec_each (child, &merged->root.children)
		put_json(*child, json);
	prb_json_close(json, ']');
}
