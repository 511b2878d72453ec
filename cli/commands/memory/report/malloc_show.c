/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory handed out by glibc's allocator, and its growth, as text and as JSON. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dwarf/elf/module.h"
#include "cli/commands/memory/report/memory.h"
#include "profile/recording/tree.h"

enum {
	HEAD = 8,      /* bytes of a chunk that are not the caller's */
	SMALL = 100,   /* less than one part of so many is not worth a row */
	LEAST = 65536, /* nor is less growth at all */
	WIDTH = 11,
};

static bool is_missing_some(const struct prb_malloc *m)
{
	return m->unseen || m->other_sizes;
}

/* Appends what the figures leave out. */
static void put_missing(const struct prb_malloc *m, struct prb_str *s)
{
	if (m->unseen) {
		prb_str_puts(s, "  ");
		prb_text_bytes(s, (double)m->unseen);
		prb_str_printf(s, " of mappings were not searched for large blocks: %s\n",
			       m->unseen_why);
	}
	if (m->other_sizes) {
		prb_str_puts(s, "  ");
		prb_memory_put_count(s, (int64_t)m->other_sizes);
		prb_str_puts(s, " blocks are in no row: there are over 65,536 sizes\n");
	}
}

void prb_memory_put_malloc(const struct prb_malloc *m, struct prb_str *s)
{
	if (!m->known) {
		if (m->reason)
			prb_str_printf(s, "\nmalloc: not known: %s\n", m->reason);
		return;
	}
	prb_str_printf(s, "\nmalloc: %u arena%s, ", m->arenas, m->arenas == 1 ? "" : "s");
	prb_text_bytes(s, (double)m->bytes);
	prb_str_puts(s, ": ");
	prb_memory_put_count(s, (int64_t)m->blocks);
	prb_str_puts(s, " blocks of ");
	prb_text_bytes(s, (double)m->used);
	prb_str_puts(s, ", ");
	prb_text_bytes(s, (double)(m->bytes - PRB_MIN(m->used, m->bytes)));
	prb_str_puts(s, " free; ");
	prb_memory_put_count(s, (int64_t)m->mapped_blocks);
	prb_str_puts(s, " large blocks of ");
	prb_text_bytes(s, (double)m->mapped_bytes);
	prb_str_puts(s, " beside\n");
	put_missing(m, s);
}

/* A size of which there are more blocks than before. */
struct change {
	struct prb_malloc_size was;
	const struct prb_malloc_size *now;
	int64_t blocks, bytes;
};

static int by_bytes(const void *a, const void *b)
{
	const struct change *one = a, *other = b;

	return one->bytes > other->bytes ? -1 : one->bytes < other->bytes;
}

static int64_t all_bytes(const struct prb_malloc *m)
{
	return (int64_t)(m->used + m->mapped_bytes);
}

/* Block sizes that grew, the most first. Freed by the caller. */
static struct prb_error *changes(const struct prb_malloc *before, const struct prb_malloc *after,
				 struct change **ret, size_t *ret_count)
{
	const struct prb_malloc_size *size;
	prb_auto_free struct change *list = calloc(after->sizes.count + 1, sizeof(*list));
	size_t count = 0;

	if (!list)
		return prb_error_nomem();
	prb_vec_each (size, &after->sizes) {
		const struct prb_malloc_size was = prb_malloc_size(before, size->size);
		const int64_t more = (int64_t)(size->blocks - was.blocks);

		if (more > 0)
			list[count++] =
				(struct change){was, size, more, more * (int64_t)size->size};
	}
	qsort(list, count, sizeof(*list), by_bytes);
	*ret = prb_steal(&list);
	*ret_count = count;
	return NULL;
}

/*
 * True if it is certain that most of the blocks that came begin with the word of most that there
 * are: of two kinds of objects of one size only one may leak. A vote says how many there are at
 * least, and how many there can have been.
 */
static bool is_of_growth(const struct change *change)
{
	const struct prb_malloc_size *was = &change->was, *now = change->now;
	const uint64_t most = was->word == now->word ? (was->blocks + was->votes) / 2
						     : (was->blocks - was->votes) / 2;

	return now->votes > most && 2 * (now->votes - most) > (uint64_t)change->blocks;
}

/* The library whose address most new blocks begin with, as those of C++ objects do. */
static const char *module_of(const struct prb_memory *m, const struct change *change)
{
	const struct prb_module *module = m->modules && is_of_growth(change)
						  ? prb_modules_find(m->modules, change->now->word)
						  : NULL;

	return module && *module->path ? module->path : NULL;
}

static void put_right(struct prb_str *s, const struct prb_str *text)
{
	prb_text_right(s, prb_str_text(text), WIDTH);
}

static struct prb_error *put_change(const struct prb_memory *m, const struct change *change,
				    struct prb_str *s)
{
	prb_auto_str struct prb_str blocks = {}, bytes = {};
	const char *module = module_of(m, change);
	prb_auto_free char *name = NULL;
	uint64_t most = change->now->size - HEAD;

	if (module)
		PRB_TRY(prb_memory_class_name(m, change->now->word, &name));
	prb_str_putc(&blocks, '+');
	prb_memory_put_count(&blocks, change->blocks);
	prb_memory_put_change(&bytes, (double)change->bytes);
	put_right(s, &blocks);
	put_right(s, &bytes);
	prb_str_puts(s, "  blocks of up to ");
	prb_memory_put_count(s, (int64_t)most);
	prb_str_puts(s, " bytes");
	if (name) {
		prb_str_puts(s, ", most of them objects of ");
		prb_text_escape(s, name);
		prb_str_puts(s, " [");
		prb_text_escape(s, prb_tree_short_path(module));
		prb_str_putc(s, ']');
	} else if (module) {
		prb_str_puts(s, ", which begin with an address of ");
		prb_text_escape(s, prb_tree_short_path(module));
	}
	prb_str_putc(s, '\n');
	return NULL;
}

struct prb_error *prb_memory_put_malloc_growth(const struct prb_memory *before,
					       const struct prb_memory *after, int rows,
					       struct prb_str *s)
{
	prb_auto_free struct change *list = NULL;
	const struct prb_malloc *missing;
	size_t count;

	if (!before->malloc.known || !after->malloc.known) {
		const struct prb_malloc *unknown =
			after->malloc.known ? &before->malloc : &after->malloc;

		if (unknown->reason && after->target->live)
			prb_str_printf(s, "\nmalloc: not known: %s\n", unknown->reason);
		return NULL;
	}
	missing = is_missing_some(&after->malloc) ? &after->malloc : &before->malloc;
	PRB_TRY(changes(&before->malloc, &after->malloc, &list, &count));
	if (!count || list[0].bytes < LEAST) {
		if (is_missing_some(missing))
			prb_str_puts(s, "\nmalloc: no growth was found\n");
		put_missing(missing, s);
		return NULL;
	}
	prb_str_puts(s, "\n     blocks      bytes  by malloc, for Python's larger objects, too: ");
	prb_memory_put_change(s, (double)(all_bytes(&after->malloc) - all_bytes(&before->malloc)));
	prb_str_putc(s, '\n');
	put_missing(missing, s);
	for (size_t i = 0; i < PRB_MIN(count, (size_t)rows); i++)
		if (list[i].bytes >= list[0].bytes / SMALL)
			PRB_TRY(put_change(after, &list[i], s));
	return NULL;
}

static void put_size(const struct prb_malloc_size *size, struct prb_json *json)
{
	prb_json_integer(json, "block_bytes", (int64_t)(size->size - HEAD));
	prb_json_integer(json, "now_blocks", (int64_t)size->blocks);
	prb_json_integer(json, "now_bytes", (int64_t)(size->blocks * size->size));
}

static struct prb_error *put_origin(const struct prb_memory *m, const struct change *change,
				    struct prb_json *json)
{
	const char *module = module_of(m, change);
	prb_auto_free char *name = NULL;

	if (module)
		PRB_TRY(prb_memory_class_name(m, change->now->word, &name));
	prb_json_text(json, "begin_in", module);
	prb_json_text(json, "class", name);
	return NULL;
}

struct prb_error *prb_memory_put_malloc_growth_json(const struct prb_memory *before,
						    const struct prb_memory *after, int rows,
						    struct prb_json *json)
{
	prb_auto_free struct change *list = NULL;
	size_t count;

	if (!before->malloc.known || !after->malloc.known) {
		prb_json_null(json, "malloc");
		return NULL;
	}
	PRB_TRY(changes(&before->malloc, &after->malloc, &list, &count));
	prb_json_open(json, "malloc", '{');
	prb_json_integer(json, "bytes", all_bytes(&after->malloc) - all_bytes(&before->malloc));
	prb_json_integer(json, "unseen_bytes",
			 (int64_t)PRB_MAX(before->malloc.unseen, after->malloc.unseen));
	prb_json_open(json, "sizes", '[');
	for (size_t i = 0; i < PRB_MIN(count, (size_t)rows); i++) {
		prb_json_open(json, NULL, '{');
		prb_json_integer(json, "blocks", list[i].blocks);
		prb_json_integer(json, "bytes", list[i].bytes);
		put_size(list[i].now, json);
		PRB_TRY(put_origin(after, &list[i], json));
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_json_close(json, '}');
	return NULL;
}

void prb_memory_put_malloc_json(const struct prb_malloc *m, int rows, struct prb_json *json)
{
	static const struct prb_malloc none = {};
	prb_auto_free struct change *list = NULL;
	size_t count = 0;

	prb_json_open(json, "malloc", '{');
	prb_json_text(json, "error", m->known ? NULL : m->reason);
	if (m->known) {
		prb_error_destroy(changes(&none, m, &list, &count));
		prb_json_integer(json, "arenas", m->arenas);
		prb_json_integer(json, "bytes", (int64_t)m->bytes);
		prb_json_integer(json, "blocks", (int64_t)m->blocks);
		prb_json_integer(json, "used", (int64_t)m->used);
		prb_json_integer(json, "mapped_blocks", (int64_t)m->mapped_blocks);
		prb_json_integer(json, "mapped_bytes", (int64_t)m->mapped_bytes);
		prb_json_bool(json, "unseen", m->unseen);
		prb_json_integer(json, "unseen_bytes", (int64_t)m->unseen);
		prb_json_integer(json, "blocks_of_other_sizes", (int64_t)m->other_sizes);
		prb_json_open(json, "sizes", '[');
		for (size_t i = 0; i < PRB_MIN(count, (size_t)rows); i++) {
			prb_json_open(json, NULL, '{');
			put_size(list[i].now, json);
			prb_json_close(json, '}');
		}
		prb_json_close(json, ']');
	}
	prb_json_close(json, '}');
}
