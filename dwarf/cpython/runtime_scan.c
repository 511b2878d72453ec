/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/cpython/runtime_scan.h"

#include <stdlib.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/log.h"

enum { MAX_DATA = 64 << 20 /* bytes of writable data that we are willing to search */ };

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

/* Whether the whole walk succeeds from here; a chance hit does not survive it. */
static bool walk_succeeds(struct prb_python *py, struct prb_mem *mem)
{
	struct prb_py_threads threads;
	prb_auto_error struct prb_error *err = prb_python_threads(py, mem, &threads);

	if (err)
		return false;
	prb_py_threads_deinit(&threads);
	return true;
}

static bool scan_words(struct prb_python *py, struct prb_mem *mem, uint64_t start,
		       const uint64_t *words, size_t count)
{
	bool has_runtime = py->layout.version >= 0x0307;

	for (size_t i = 0; i < count; i++) {
		uint64_t value = words[i], address = start + 8 * i;

		if (value < 65536 || value % 8 || value >> 47)
			continue;
		if (!is_interpreter(py, mem, value))
			continue;
		if (has_runtime)
			py->runtime = address - (uint64_t)py->layout.runtime_interpreters;
		else
			py->interp_head = address;
		if (walk_succeeds(py, mem))
			return true;
		py->runtime = py->interp_head = 0;
	}
	return false;
}

struct prb_error *prb_runtime_scan(struct prb_python *py, struct prb_mem *mem)
{
	const struct prb_map *map;

	prb_vec_each (map, &py->target->maps.list) {
		size_t size = map->end - map->start;

		if (!map->write || !map->read || map->end <= py->module->start ||
		    map->start >= py->module->end || size > MAX_DATA)
			continue;

		prb_auto_free uint64_t *words = malloc(size);
		if (!words)
			return prb_error_nomem();
		prb_auto_error struct prb_error *err =
			prb_mem_read(py->target->mem, map->start, words, size);
		if (err)
			continue;
		if (scan_words(py, mem, map->start, words, size / 8)) {
			prb_log("python", 1, "found the runtime by searching %s", map->path);
			return NULL;
		}
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no symbols and no runtime was found",
				py->module->path);
}
