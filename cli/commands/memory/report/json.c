/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing memory --json`; docs/json.md has the members. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands/memory/report/memory.h"

static void put_process(const struct prb_memory_process *p, struct prb_json *json)
{
	prb_json_open(json, "process", '{');
	prb_json_natural(json, "rss", p->rss);
	prb_json_natural(json, "peak", p->peak);
	prb_json_natural(json, "pss", p->pss);
	prb_json_natural(json, "anonymous", p->anonymous);
	prb_json_natural(json, "file", p->file);
	prb_json_natural(json, "shared", p->shared);
	prb_json_natural(json, "huge", p->huge);
	prb_json_natural(json, "swap", p->swap);
	prb_json_natural(json, "limit", p->limit);
	prb_json_natural(json, "limit_used", p->used);
	prb_json_close(json, '}');
}

static void put_gpus(const struct prb_memory *m, struct prb_json *json)
{
	const struct prb_memory_gpu *gpu;

	prb_json_text(json, "gpu_error", m->no_gpu.length ? prb_str_text(&m->no_gpu) : NULL);
	prb_json_open(json, "gpus", '[');
	prb_vec_each (gpu, &m->gpus) {
		prb_json_open(json, NULL, '{');
		prb_json_integer(json, "gpu", gpu->index);
		prb_json_text(json, "name", gpu->name[0] ? gpu->name : NULL);
		prb_json_integer(json, "bytes", gpu->own);
		prb_json_natural(json, "used", gpu->used);
		prb_json_natural(json, "total", gpu->total);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static struct prb_error *put_types(struct prb_census *census, struct prb_json *json)
{
	prb_auto_free struct prb_census_type *types = NULL;
	size_t count;

	PRB_TRY(prb_memory_types(census, &types, &count));
	prb_json_open(json, "types", '[');
	for (size_t i = 0; i < count; i++) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "type", types[i].name);
		prb_json_integer(json, "objects", (int64_t)types[i].count);
		prb_json_integer(json, "bytes", (int64_t)types[i].bytes);
		prb_json_integer(json, "owned", (int64_t)types[i].owned);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	return NULL;
}

static struct prb_error *put_tensors(struct prb_census *census, int rows, struct prb_json *json)
{
	prb_auto_free struct prb_memory_group *groups = NULL;
	prb_auto_free struct prb_census_tensor *tensors = NULL;
	prb_auto_torch_modules struct prb_torch_modules modules = {};
	size_t count;

	PRB_TRY(prb_torch_modules_read(census, &modules));
	PRB_TRY(prb_memory_groups(census, &groups, &count));
	prb_json_open(json, "tensors", '[');
	for (size_t i = 0; i < count; i++) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "device", groups[i].device);
		prb_json_natural(json, "device_index", groups[i].index);
		prb_json_text(json, "dtype", groups[i].dtype);
		prb_json_integer(json, "tensors", (int64_t)groups[i].tensors);
		prb_json_integer(json, "gradients", (int64_t)groups[i].gradients);
		prb_json_integer(json, "bytes", (int64_t)groups[i].bytes);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	PRB_TRY(prb_memory_tensors(census, &tensors, &count));
	prb_json_open(json, "largest_tensors", '[');
	for (size_t i = 0; i < PRB_MIN(count, (size_t)rows); i++) {
		const struct prb_census_tensor *t = &tensors[i];
		prb_auto_str struct prb_str path = {};

		PRB_TRY(prb_torch_path(census, &modules, t->object, &path));
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "holder", prb_str_text(&path));
		prb_json_bool(json, "gradient", t->gradient);
		prb_json_text(json, "dtype", t->dtype);
		prb_json_text(json, "device", t->device);
		prb_json_open(json, "shape", '[');
		for (uint64_t d = 0; d < PRB_MIN(t->dimensions, PRB_ARRAY_SIZE(t->shape)); d++)
			prb_json_integer(json, NULL, (int64_t)t->shape[d]);
		prb_json_close(json, ']');
		prb_json_integer(json, "bytes",
				 (int64_t)(t->storage ? t->storage_bytes : t->bytes));
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	return NULL;
}

static struct prb_error *put_census(const struct prb_memory_interpreter *i, int rows,
				    struct prb_json *json)
{
	struct prb_census_totals totals = prb_census_totals(i->census);
	struct prb_census_pools pools;

	prb_json_integer(json, "objects", (int64_t)totals.objects);
	prb_json_integer(json, "bytes", (int64_t)totals.bytes);
	prb_json_integer(json, "unheld_objects", (int64_t)totals.unheld);
	prb_json_integer(json, "unheld_bytes", (int64_t)totals.unheld_bytes);
	prb_json_integer(json, "garbage_objects", (int64_t)totals.garbage);
	prb_json_integer(json, "garbage_bytes", (int64_t)totals.garbage_bytes);
	prb_json_real(json, "seconds", totals.seconds, 6);
	prb_json_text(json, "doubt", prb_census_doubt(i->census));
	PRB_TRY(prb_census_pools(i->census, &pools));
	if (pools.pools) {
		prb_json_open(json, "small_objects", '{');
		prb_json_integer(json, "arenas", (int64_t)pools.arenas);
		prb_json_integer(json, "arena_bytes", (int64_t)pools.arena_bytes);
		prb_json_integer(json, "pools", (int64_t)pools.pools);
		prb_json_integer(json, "used", (int64_t)pools.used);
		prb_json_integer(json, "free", (int64_t)pools.free);
		prb_json_integer(json, "unused", (int64_t)pools.unused);
		prb_json_close(json, '}');
	} else {
		prb_json_null(json, "small_objects");
	}
	PRB_TRY(put_types(i->census, json));
	return put_tensors(i->census, rows, json);
}

struct prb_error *prb_memory_put_json(const struct prb_memory *m, int rows, struct prb_str *s)
{
	struct prb_json json = {.out = s};
	const struct prb_memory_interpreter *i;

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", m->target->pid);
	put_process(&m->process, &json);
	prb_memory_put_malloc_json(&m->malloc, rows, &json);
	put_gpus(m, &json);
	prb_json_text(&json, "error", m->no_python ? m->no_python->message : NULL);
	prb_json_open(&json, "interpreters", '[');
	prb_vec_each (i, &m->interpreters) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "interpreter", i->state.id);
		prb_json_text(&json, "error", i->error ? i->error->message : NULL);
		if (i->census)
			PRB_TRY(put_census(i, rows, &json));
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
	return s->failed ? prb_error_nomem() : NULL;
}
