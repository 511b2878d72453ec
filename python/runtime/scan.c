/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/runtime/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "python/layout/debug_offsets.h"

enum { MAX_DATA = 64 << 20 /* bytes of writable data that we are willing to search */ };

/* A copy of a writable mapping. */
struct data {
	uint64_t start;
	uint64_t *words;
	size_t count;
};

/* True if the word at @p address exists and equals @p value, or is just plausible if value is 0. */
static bool pointer_at(struct prb_mem *mem, uint64_t address, uint64_t *ret)
{
	prb_auto_error struct prb_error *err = prb_mem_read_u64(mem, address, ret);

	return !err && *ret >= 4096 && *ret % 8 == 0 && *ret >> 47 == 0;
}

/* An interpreter: its newest thread state points back at it, and so does that one's neighbour. */
static bool is_interpreter(struct prb_python *py, struct prb_mem *mem, uint64_t interp)
{
	const struct prb_layout *l = &py->layout;
	uint64_t thread, back;

	return pointer_at(mem, interp + (uint64_t)l->interp_threads, &thread) &&
	       pointer_at(mem, thread + (uint64_t)l->thread_interp, &back) && back == interp;
}

/* True if everything is consistent from here; a chance hit does not survive it. */
static struct prb_error *try_candidate(struct prb_python *py, struct prb_mem *mem,
				       prb_runtime_check *check, bool *ret)
{
	struct prb_error *err = check(py, mem);

	*ret = !err;
	if (!err)
		return NULL;
	py->runtime = py->interp_head = 0;
	if (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return err;
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *scan_words(struct prb_python *py, struct prb_mem *mem,
				    prb_runtime_check *check, const struct data *data, bool *ret)
{
	bool has_runtime = py->layout.behaviour->gil != PRB_GIL_STATICS;

	*ret = false;
	for (size_t i = 0; i < data->count && !*ret; i++) {
		uint64_t value = data->words[i], address = data->start + 8 * i;

		if (value < 65536 || value % 8 || value >> 47)
			continue;
		if (!is_interpreter(py, mem, value))
			continue;
		if (has_runtime)
			py->runtime = address - (uint64_t)py->layout.runtime_interpreters;
		else
			py->interp_head = address;
		PRB_TRY(try_candidate(py, mem, check, ret));
	}
	return NULL;
}

static bool is_data_of(const struct prb_map *map, const struct prb_module *module)
{
	return map->write && map->read && map->end > module->start && map->start < module->end &&
	       map->end - map->start <= MAX_DATA;
}

/* *ret->words is NULL if nothing can be read there; else the caller frees it. */
static struct prb_error *read_data(struct prb_python *py, const struct prb_map *map,
				   struct data *ret)
{
	size_t size = map->end - map->start;
	prb_auto_free uint64_t *words = malloc(size);

	*ret = (struct data){};
	if (!words)
		return prb_error_nomem();
	prb_auto_error struct prb_error *err =
		prb_mem_read(py->target->mem, map->start, words, size);
	if (!err)
		*ret = (struct data){map->start, prb_steal(&words), size / 8};
	return NULL;
}

struct prb_error *prb_runtime_scan(struct prb_python *py, struct prb_mem *mem,
				   prb_runtime_check *check)
{
	const struct prb_map *map;

	prb_vec_each (map, &py->target->maps.list) {
		struct data data;
		bool found;

		if (!is_data_of(map, py->module))
			continue;
		PRB_TRY(read_data(py, map, &data));
		struct prb_error *err = scan_words(py, mem, check, &data, &found);
		free(data.words);
		PRB_TRY(err);
		if (found) {
			prb_log("python", 1, "found the runtime by searching the data of %s",
				py->module->path);
			return NULL;
		}
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no symbols and no runtime was found",
				py->module->path);
}

struct prb_error *prb_runtime_scan_cookie(struct prb_python *py, struct prb_mem *mem)
{
	static const char cookie[] = "xdebugpy";
	const struct prb_map *map;

	prb_vec_each (map, &py->target->maps.list) {
		struct data data;
		uint32_t version;

		if (!is_data_of(map, py->module))
			continue;
		PRB_TRY(read_data(py, map, &data));
		for (size_t i = 0; i < data.count && !py->runtime; i++)
			if (!memcmp(&data.words[i], cookie, sizeof(cookie) - 1) &&
			    prb_debug_offsets_present(mem, data.start + 8 * i, &version))
				py->runtime = data.start + 8 * i;
		free(data.words);
		if (py->runtime)
			break;
	}
	return NULL;
}
