/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/asyncio/layout.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf/cache/cache.h"
#include "dwarf/types/types.h"

#define FIELD(name, path) {#name, path, offsetof(struct prb_asyncio_layout, name)},
const struct prb_layout_field prb_asyncio_fields[] = {PRB_ASYNCIO_FIELDS(FIELD)};
#undef FIELD

enum { FIELDS = PRB_ARRAY_SIZE(prb_asyncio_fields) };
const unsigned prb_asyncio_field_count = FIELDS;

const char prb_asyncio_unit[] = "_asynciomodule.c";

/* The offset of each field in DWARF, PRB_ABSENT if missing. */
struct facts {
	int32_t offsets[FIELDS];
};

static int32_t *field(struct prb_asyncio_layout *layout, unsigned index)
{
	return (int32_t *)((char *)layout + prb_asyncio_fields[index].place);
}

static void overlay(const struct facts *facts, struct prb_asyncio_layout *layout)
{
	for (unsigned i = 0; i < FIELDS; i++)
		if (facts->offsets[i] != PRB_ABSENT)
			*field(layout, i) = facts->offsets[i];
}

static struct prb_error *query(struct prb_module *module, struct facts *ret)
{
	struct prb_type_query queries[FIELDS] = {};
	struct prb_elf *debug;

	PRB_TRY(prb_module_debug(module, &debug));
	for (unsigned i = 0; i < FIELDS; i++)
		queries[i].path = prb_asyncio_fields[i].path;
	PRB_TRY(prb_types_query(debug, prb_asyncio_unit, queries, FIELDS));
	for (unsigned i = 0; i < FIELDS; i++)
		ret->offsets[i] = queries[i].found ? (int32_t)queries[i].value : PRB_ABSENT;
	return NULL;
}

/* The paths that were asked for are the key: another list is not taken for this one. */
static void cache_key(struct prb_str *ret)
{
	for (unsigned i = 0; i < FIELDS; i++)
		prb_str_printf(ret, "%s;", prb_asyncio_fields[i].path);
}

/* Missing DWARF is not cached: a package with it may be installed later. */
static struct prb_error *overlay_dwarf(struct prb_module *module, struct prb_asyncio_layout *layout)
{
	prb_auto_str struct prb_str key = {};
	prb_auto_str struct prb_str id = {};
	struct prb_cache *cache = NULL;
	struct prb_error *err = NULL;
	struct facts facts;
	const void *cached;
	size_t length;

	cache_key(&key);
	if (key.failed)
		return prb_error_nomem();
	PRB_TRY(prb_module_cache_id(module, &id));
	if (id.length)
		PRB_TRY(prb_cache_open(prb_str_text(&id), "asyncio", &cache));
	if (cache && prb_cache_get(cache, key.data, key.length, &cached, &length) &&
	    length == sizeof(facts)) {
		memcpy(&facts, cached, sizeof(facts));
	} else {
		err = query(module, &facts);
		if (!err && cache && prb_module_may_keep(module))
			prb_cache_put(cache, key.data, key.length, &facts, sizeof(facts));
	}
	if (cache)
		prb_cache_close(cache);
	if (!err)
		overlay(&facts, layout);
	else
		prb_log("python", 1, "no layout of asyncio from DWARF: %s", err->message);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

/* Sizes first in each group: of the task, the interpreter's state, the thread's state. */
enum { DEBUG_WORDS = 13, MAX_OFFSET = 1 << 24 };
static const struct {
	uint16_t place;
	uint8_t word;
} debug_words[] = {
	{offsetof(struct prb_asyncio_layout, size), 0},
	{offsetof(struct prb_asyncio_layout, name), 1},
	{offsetof(struct prb_asyncio_layout, awaited_by), 2},
	{offsetof(struct prb_asyncio_layout, awaited_by_is_set), 4},
	{offsetof(struct prb_asyncio_layout, coro), 5},
	{offsetof(struct prb_asyncio_layout, node), 6},
	{offsetof(struct prb_asyncio_layout, interp_tasks), 8},
	{offsetof(struct prb_asyncio_layout, thread_running_loop), 10},
	{offsetof(struct prb_asyncio_layout, thread_running_task), 11},
	{offsetof(struct prb_asyncio_layout, thread_tasks), 12},
};

/* From 3.14 on the module describes itself; without its file the section cannot be found. */
static struct prb_error *overlay_section(struct prb_module *module, struct prb_mem *mem,
					 struct prb_asyncio_layout *layout)
{
	uint64_t address, size, words[DEBUG_WORDS];
	struct prb_error *err = prb_module_section(module, ".AsyncioDebug", &address, &size);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	if (size != sizeof(words)) {
		prb_log("python", 1, "asyncio describes itself in %llu bytes, which is unknown",
			(unsigned long long)size);
		return NULL;
	}
	PRB_TRY(prb_mem_read(mem, address, words, sizeof(words)));
	for (size_t i = 0; i < DEBUG_WORDS; i++)
		if (words[i] >= MAX_OFFSET)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"what asyncio says of its tasks is malformed");
	for (size_t i = 0; i < PRB_ARRAY_SIZE(debug_words); i++)
		*(int32_t *)((char *)layout + debug_words[i].place) =
			(int32_t)words[debug_words[i].word];
	return NULL;
}

static void start_with_table(const struct prb_layout *python, struct prb_asyncio_layout *layout)
{
	const struct prb_asyncio_layout *table = prb_asyncio_table_find(python);

	for (unsigned i = 0; i < FIELDS; i++)
		*field(layout, i) = PRB_ABSENT;
	if (table)
		*layout = *table;
	layout->version = python->version;
	layout->free_threaded = python->free_threaded;
}

/* The members of a task must lie within it. */
static bool fits(const struct prb_asyncio_layout *l)
{
	const int32_t needed[] = {l->loop, l->callback, l->callbacks, l->state, l->waiter, l->coro};
	const int32_t optional[] = {l->name, l->exception, l->awaited_by, l->node};

	if (l->size <= 0 || l->size > 4096)
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(needed); i++)
		if (needed[i] <= 0 || needed[i] > l->size - 4)
			return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(optional); i++)
		if (optional[i] < PRB_ABSENT || optional[i] > l->size - 8)
			return false;
	return l->awaited_by_is_set >= PRB_ABSENT && l->awaited_by_is_set < l->size;
}

static void fact_key(const struct prb_python *py, char *ret, size_t size)
{
	snprintf(ret, size, "asyncio:%llx", (unsigned long long)py->runtime);
}

static void remember(struct prb_python *py, struct prb_asyncio_layout *layout)
{
	prb_auto_str struct prb_str text = {};
	char key[40];

	if (!prb_target_is_recorded(py->target))
		return;
	for (unsigned i = 0; i < FIELDS; i++)
		prb_str_printf(&text, "%s %d\n", prb_asyncio_fields[i].name, *field(layout, i));
	fact_key(py, key, sizeof(key));
	if (!text.failed)
		prb_target_remember(py->target, key, prb_str_text(&text), text.length);
}

static bool recall(struct prb_python *py, struct prb_asyncio_layout *layout)
{
	prb_auto_str struct prb_str text = {};
	char key[40], name[40];
	int value, used;

	fact_key(py, key, sizeof(key));
	if (!prb_target_recall(py->target, key, &text))
		return false;
	for (const char *p = prb_str_text(&text);
	     sscanf(p, "%39s %d\n%n", name, &value, &used) == 2; p += used)
		for (unsigned i = 0; i < FIELDS; i++)
			if (!strcmp(prb_asyncio_fields[i].name, name))
				*field(layout, i) = value;
	return true;
}

struct prb_error *prb_asyncio_layout_load(struct prb_python *py, struct prb_mem *mem,
					  struct prb_module *module, struct prb_asyncio_layout *ret)
{
	if (!py->layout.behaviour->asyncio)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"asyncio tasks are read from Python 3.7 on, this is %s",
					py->version);
	start_with_table(&py->layout, ret);
	if (!recall(py, ret) && module) {
		PRB_TRY(overlay_dwarf(module, ret));
		PRB_TRY(overlay_section(module, mem, ret));
	}
	if (!fits(ret))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"nothing tells how the asyncio tasks of Python %s lie in "
					"memory",
					py->version);
	remember(py, ret);
	return NULL;
}
