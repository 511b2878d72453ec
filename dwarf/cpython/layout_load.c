/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/cpython/layout_load.h"

#include <stdlib.h>
#include <string.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/log.h"
#include "dwarf/cache/cache.h"
#include "dwarf/cpython/debug_offsets.h"
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
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (unsigned i = 0; i < prb_layout_field_count; i++)
		for (const char *p = prb_layout_fields[i].path; *p; p++)
			hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
	return hash;
}

/* What DWARF says of each field, PRB_ABSENT where it has none. */
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

/* From the disk cache, or from DWARF itself. */
static struct prb_error *dwarf_values(struct prb_module *module, int32_t *values)
{
	size_t size = prb_layout_field_count * sizeof(*values), length;
	const char *build_id = prb_module_build_id(module);
	uint64_t hash = fields_hash();
	struct prb_cache *cache = NULL;
	const void *cached;

	if (*build_id)
		PRB_TRY(prb_cache_open(build_id, "layout", &cache));

	struct prb_error *err = NULL;
	if (cache && prb_cache_get(cache, &hash, sizeof(hash), &cached, &length) &&
	    length == size) {
		memcpy(values, cached, size);
	} else {
		err = query(module, values);
		if (!err && cache)
			prb_cache_put(cache, &hash, sizeof(hash), values, size);
	}
	if (cache)
		prb_cache_close(cache);
	return err;
}

static struct prb_error *overlay_dwarf(struct prb_module *module, struct prb_layout *layout)
{
	prb_auto_free int32_t *values = calloc(prb_layout_field_count, sizeof(*values));

	if (!values)
		return prb_error_nomem();

	struct prb_error *err = dwarf_values(module, values);
	if (err) {
		prb_log("python", 1, "no layout from DWARF: %s", err->message);
		if (err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err);
		return NULL;
	}
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		if (values[i] != PRB_ABSENT)
			*field(layout, i) = values[i];
	layout->source = PRB_LAYOUT_DWARF;
	return NULL;
}

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

struct prb_error *prb_layout_load(struct prb_module *module, struct prb_mem *mem, uint64_t runtime,
				  uint32_t hexversion, struct prb_layout *ret)
{
	uint16_t version = (uint16_t)(hexversion >> 16);
	const struct prb_behaviour *behaviour = prb_behaviour_find(version);
	bool debug = is_debug_build(module), offsets = false, free_threaded = false;
	uint32_t ignored;

	if (!behaviour)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "Python %u.%u is not supported",
						       version >> 8, version & 0xff),
				      "CPython 3.4 to 3.15 are");
	if (runtime && prb_debug_offsets_present(mem, runtime, &ignored)) {
		uint64_t flag;

		offsets = true;
		PRB_TRY(prb_mem_read_u64(mem, runtime + 16, &flag));
		free_threaded = flag != 0;
	}

	const struct prb_layout *table = prb_layout_table(version, free_threaded, debug);
	if (table) {
		*ret = *table;
	} else {
		memset(ret, 0, sizeof(*ret));
		for (unsigned i = 0; i < prb_layout_field_count; i++)
			*field(ret, i) = PRB_ABSENT;
	}
	ret->behaviour = behaviour;
	ret->version = version;
	ret->micro = hexversion & 0xffff ? (uint8_t)(hexversion >> 8) : 255;
	ret->debug_build = debug;
	ret->free_threaded = free_threaded;
	ret->source = PRB_LAYOUT_TABLE;
	PRB_TRY(overlay_dwarf(module, ret));
	if (offsets)
		PRB_TRY(prb_debug_offsets_read(mem, runtime, ret));
	return NULL;
}
