/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Samples summed up, by line and by stack. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/text.h"
#include "cli/commands/memory/sites/sites.h"

enum { MOST_ROWS = 2000, MOST_TEXT = 1 << 20, MOST_STACK = 1200 };

/* How many blocks of its size a sample stands for. */
static double blocks_of(const struct prb_memory_sites *sites, uint64_t bytes)
{
	double part = -expm1(-(double)bytes / (double)sites->mean);

	return part > 0 ? 1 / part : 1;
}

double prb_memory_sample_bytes(const struct prb_memory_sites *sites,
			       const struct prb_memory_sample *sample)
{
	return (double)sample->bytes * blocks_of(sites, sample->bytes);
}

static int by_bytes(const void *a, const void *b)
{
	const struct prb_memory_site *one = a, *other = b;

	return one->bytes > other->bytes ? -1 : one->bytes < other->bytes;
}

static int by_alive(const void *a, const void *b)
{
	const struct prb_memory_site *one = a, *other = b;

	return one->alive_bytes > other->alive_bytes ? -1 : one->alive_bytes < other->alive_bytes;
}

/* Adds a sample to the sum of its key. */
static struct prb_error *add(const struct prb_memory_sites *sites,
			     const struct prb_memory_sample *sample, uint64_t key,
			     struct prb_number_map *numbers, struct prb_memory_site_list *ret)
{
	double blocks = blocks_of(sites, sample->bytes), bytes = blocks * (double)sample->bytes;
	struct prb_memory_site *site = NULL;
	size_t number = 0;

	if (prb_number_map_get(numbers, key, &number))
		site = &ret->list.items[number];
	if (!site) {
		number = ret->list.count;
		site = prb_vec_push(&ret->list);
		if (!site || !prb_number_map_put(numbers, key, number))
			return prb_error_nomem();
		*site = (struct prb_memory_site){.stack = sample->stack};
	}
	site->bytes += bytes;
	site->blocks += blocks;
	site->alive_bytes += sample->alive ? bytes : 0;
	site->alive_blocks += sample->alive ? blocks : 0;
	site->samples++;
	return NULL;
}

static bool leaks(const struct prb_memory_sites *sites, const struct prb_memory_sample *sample)
{
	const struct prb_sites_facts *f = &sites->facts;

	return sample->alive &&
	       (double)(f->ended - sample->time) > PRB_MEMORY_TAIL * (double)(f->ended - f->began);
}

uint32_t prb_memory_python_caller(const struct prb_tree *tree, uint32_t stack)
{
	uint32_t at = stack;

	while (at && prb_tree_function_of(tree, at)->kind == PRB_FUNCTION_NATIVE)
		at = tree->stacks.items[at].parent;
	return at == stack || !at || prb_tree_function_of(tree, at)->kind != PRB_FUNCTION_PYTHON
		       ? 0
		       : at;
}

/* A line, and of C functions also the line of Python that called them. */
static uint64_t line_of(const struct prb_tree *tree, uint32_t stack)
{
	uint32_t caller = prb_memory_python_caller(tree, stack);

	return (caller ? (uint64_t)tree->stacks.items[caller].frame + 1 : 0) << 32 |
	       tree->stacks.items[stack].frame;
}

static struct prb_error *sum(const struct prb_memory_sites *sites, bool whole, bool leaking,
			     struct prb_memory_site_list *ret)
{
	const struct prb_memory_sample *sample;
	struct prb_number_map numbers = {};
	struct prb_error *err = NULL;

	*ret = (struct prb_memory_site_list){};
	prb_vec_each (sample, &sites->samples)
		if (!err && (!leaking || leaks(sites, sample)))
			err = add(sites, sample,
				  whole ? sample->stack
					: line_of(sites->recording->tree, sample->stack),
				  &numbers, ret);
	prb_number_map_deinit(&numbers);
	if (err)
		prb_vec_free(&ret->list);
	else if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items),
		      leaking ? by_alive : by_bytes);
	return err;
}

struct prb_error *prb_memory_sites_lines(const struct prb_memory_sites *sites,
					 struct prb_memory_site_list *ret)
{
	return sum(sites, false, false, ret);
}

struct prb_error *prb_memory_sites_stacks(const struct prb_memory_sites *sites, bool leaking,
					  struct prb_memory_site_list *ret)
{
	return sum(sites, true, leaking, ret);
}

/* "main;train;step", innermost last; of a deep one the innermost. */
static void put_stack(const struct prb_tree *tree, uint32_t stack, struct prb_str *s)
{
	prb_auto_str struct prb_str text = {};

	for (; stack && text.length < MOST_STACK; stack = tree->stacks.items[stack].parent) {
		prb_auto_str struct prb_str label = {};
		const struct prb_tree_function *f = prb_tree_function_of(tree, stack);

		prb_text_escape(&label, f->name);
		if (text.length)
			prb_str_puts(&label, ";");
		prb_str_puts(&label, prb_str_text(&text));
		prb_str_truncate(&text, 0);
		prb_str_puts(&text, prb_str_text(&label));
		text.failed |= label.failed;
	}
	if (stack)
		prb_str_puts(s, "…;");
	prb_str_puts(s, prb_str_text(&text));
	s->failed |= text.failed;
}

static void put_row(const struct prb_tree *tree, const struct prb_memory_site *site,
		    struct prb_str *s)
{
	const struct prb_tree_function *f = prb_tree_function_of(tree, site->stack);
	int32_t line = tree->frames.items[tree->stacks.items[site->stack].frame].line;

	prb_text_escape(s, f->name);
	prb_str_putc(s, '\t');
	if (prb_function_file(f))
		prb_text_escape(s, prb_function_file(f));
	prb_str_putc(s, '\t');
	if (line > 0)
		prb_str_printf(s, "%d", line);
	prb_str_printf(s, "\t%.0f\t%.0f\t%.0f\t%.0f\t", site->bytes, site->blocks,
		       site->alive_bytes, site->alive_blocks);
	put_stack(tree, site->stack, s);
}

struct prb_error *prb_memory_sites_rows(const struct prb_memory_sites *sites, struct prb_str *ret)
{
	struct prb_memory_site_list stacks;
	struct prb_memory_site others = {};
	const struct prb_memory_site *site;

	PRB_TRY(prb_memory_sites_stacks(sites, false, &stacks));
	prb_vec_each (site, &stacks.list) {
		if (site - stacks.list.items < MOST_ROWS && ret->length < MOST_TEXT) {
			if (ret->length)
				prb_str_putc(ret, '\n');
			put_row(sites->recording->tree, site, ret);
			continue;
		}
		others.bytes += site->bytes;
		others.blocks += site->blocks;
		others.alive_bytes += site->alive_bytes;
		others.alive_blocks += site->alive_blocks;
	}
	if (others.bytes > 0)
		prb_str_printf(ret, "\n<others>\t\t\t%.0f\t%.0f\t%.0f\t%.0f\t<others>",
			       others.bytes, others.blocks, others.alive_bytes,
			       others.alive_blocks);
	prb_vec_free(&stacks.list);
	return ret->failed ? prb_error_nomem() : NULL;
}
