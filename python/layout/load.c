/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/layout/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "dwarf/cache/cache.h"
#include "python/layout/debug_offsets.h"
#include "python/layout/tables.h"
#include "dwarf/types/types.h"

/* All the types we need are in the compilation unit of the eval loop, in every version. */
static const char unit[] = "ceval.c";

static int32_t *field(struct prb_layout *layout, unsigned index)
{
	return (int32_t *)((char *)layout + prb_layout_fields[index].place);
}

/* Changes whenever the list of fields does, so that an old cache is not taken for a new one. */
static uint64_t fields_hash(void)
{
	uint64_t hash = PRB_HASH_START;

	for (unsigned i = 0; i < prb_layout_field_count; i++)
		hash = prb_hash_text(hash, prb_layout_fields[i].path);
	return hash;
}

/* The offset of each field in DWARF, PRB_ABSENT if missing. */
static struct prb_error *query(struct prb_module *module, int32_t *values)
{
	struct prb_elf *debug;

	PRB_TRY(prb_module_debug(module, &debug));

	prb_auto_free struct prb_type_query *queries =
		calloc(prb_layout_field_count, sizeof(*queries));
	if (!queries)
		return prb_error_nomem();
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		queries[i].path = prb_layout_fields[i].path;
	PRB_TRY(prb_types_query(debug, unit, queries, prb_layout_field_count));
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		values[i] = queries[i].found ? (int32_t)queries[i].value : PRB_ABSENT;
	return NULL;
}

/* Facts from a build's files, kept in the disk cache. */
struct facts {
	int32_t debug_build; /* 0 or 1 */
	int32_t dwarf;	     /* 0: no DWARF was found, `offsets` mean nothing */
	int32_t offsets[];   /* one for each field, PRB_ABSENT where DWARF has none */
};

/* Functions and variables that only a build with Py_DEBUG exports. */
static bool is_debug_build(struct prb_module *module)
{
	static const char *const marks[] = {"_Py_RefTotal", "_Py_NegativeRefcount"};
	uint64_t address, size;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		prb_auto_error struct prb_error *err =
			prb_module_symbol(module, marks[i], &address, &size);

		if (!err)
			return true;
	}
	return false;
}

static struct prb_error *find_facts(struct prb_module *module, struct facts *facts)
{
	facts->debug_build = is_debug_build(module);

	struct prb_error *err = query(module, facts->offsets);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	if (err)
		prb_log("python", 1, "no layout from DWARF: %s", err->message);
	facts->dwarf = !err;
	prb_error_destroy(err);
	return NULL;
}

/* Missing DWARF is not cached: a package with it may be installed later. */
static struct prb_error *load_facts(struct prb_module *module, struct facts *facts)
{
	size_t size = sizeof(*facts) + prb_layout_field_count * sizeof(facts->offsets[0]), length;
	prb_auto_str struct prb_str id = {};
	uint64_t hash = fields_hash();
	struct prb_cache *cache = NULL;
	const void *cached;

	PRB_TRY(prb_module_cache_id(module, &id));
	if (id.length)
		PRB_TRY(prb_cache_open(prb_str_text(&id), "layout", &cache));

	struct prb_error *err = NULL;
	if (cache && prb_cache_get(cache, &hash, sizeof(hash), &cached, &length) &&
	    length == size) {
		memcpy(facts, cached, size);
	} else {
		err = find_facts(module, facts);
		if (!err && cache && facts->dwarf && prb_module_may_keep(module))
			prb_cache_put(cache, &hash, sizeof(hash), facts, size);
	}
	if (cache)
		prb_cache_close(cache);
	return err;
}

static void overlay_dwarf(const struct facts *facts, struct prb_layout *layout)
{
	if (!facts->dwarf)
		return;
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		if (facts->offsets[i] != PRB_ABSENT)
			*field(layout, i) = facts->offsets[i];
	layout->source = PRB_LAYOUT_DWARF;
}

/* The built-in table, or all fields absent. */
static void start_with_table(struct prb_layout *layout, uint16_t machine, uint16_t version,
			     bool free_threaded, bool debug_build)
{
	const struct prb_layout *table = prb_layout_table(version, free_threaded, debug_build);

	if (table) {
		*layout = *table;
		prb_layout_adjust(layout, machine);
		return;
	}
	memset(layout, 0, sizeof(*layout));
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		*field(layout, i) = PRB_ABSENT;
}

struct prb_error *prb_layout_load(struct prb_module *module, struct prb_mem *mem, uint64_t runtime,
				  uint32_t hexversion, struct prb_layout *ret)
{
	uint16_t version = (uint16_t)(hexversion >> 16);
	const struct prb_behaviour *behaviour = prb_behaviour_find(version);
	uint32_t ignored;
	bool offsets = runtime && prb_debug_offsets_present(mem, runtime, &ignored);
	uint64_t free_threaded = 0;

	if (!behaviour)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "Python %u.%u is not supported",
						       version >> 8, version & 0xff),
				      "CPython 3.4 to 3.15 are");
	if (offsets)
		PRB_TRY(prb_mem_read_u64(mem, runtime + 16, &free_threaded));

	prb_auto_free struct facts *facts =
		calloc(1, sizeof(*facts) + prb_layout_field_count * sizeof(facts->offsets[0]));
	if (!facts)
		return prb_error_nomem();
	PRB_TRY(load_facts(module, facts));

	start_with_table(ret, module->target->machine, version, free_threaded, facts->debug_build);
	ret->behaviour = behaviour;
	ret->version = version;
	ret->micro = hexversion & 0xffff ? (uint8_t)(hexversion >> 8) : 255;
	ret->debug_build = facts->debug_build;
	ret->free_threaded = free_threaded;
	ret->source = PRB_LAYOUT_TABLE;
	overlay_dwarf(facts, ret);
	return offsets ? prb_debug_offsets_read(mem, runtime, ret) : NULL;
}
