/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing memory` as text: one screen. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/memory/report/memory.h"
#include "target/proc/process.h"
#include "target/spec/command_line.h"

enum { TENSORS = 8, COUNT_WIDTH = 12, BYTES_WIDTH = 10 };

void prb_memory_put_change(struct prb_str *s, double bytes)
{
	if (bytes >= 0)
		prb_str_putc(s, '+');
	prb_text_bytes(s, bytes);
}

void prb_memory_put_count(struct prb_str *s, int64_t count)
{
	char digits[32], *at = digits;
	int length = snprintf(digits, sizeof(digits), "%lld", (long long)llabs(count));

	if (count < 0)
		prb_str_putc(s, '-');
	for (int left = length; left > 0; left--) {
		prb_str_putc(s, *at++);
		if (left > 1 && left % 3 == 1)
			prb_str_putc(s, ',');
	}
}

void prb_memory_put_shape(struct prb_str *s, const struct prb_census_tensor *t)
{
	prb_str_printf(s, "%s (", t->dtype);
	for (uint64_t i = 0; i < PRB_MIN(t->dimensions, PRB_ARRAY_SIZE(t->shape)); i++)
		prb_str_printf(s, "%s%llu", i ? ", " : "", (unsigned long long)t->shape[i]);
	prb_str_puts(s, t->dimensions > PRB_ARRAY_SIZE(t->shape) ? ", …)"
			: t->dimensions == 1			 ? ",)"
								 : ")");
}

static void right(struct prb_str *s, const struct prb_str *text, size_t width)
{
	size_t has = prb_text_width(prb_str_text(text));

	prb_text_spaces(s, width > has ? width - has : 0);
	prb_str_puts(s, prb_str_text(text));
}

static void put_column_bytes(struct prb_str *s, double bytes)
{
	prb_auto_str struct prb_str text = {};

	prb_text_bytes(&text, bytes);
	right(s, &text, BYTES_WIDTH);
}

static void put_column_count(struct prb_str *s, int64_t count)
{
	prb_auto_str struct prb_str text = {};

	prb_memory_put_count(&text, count);
	right(s, &text, COUNT_WIDTH);
}

/** "anonymous 350 MiB · files 58 MiB"; what is not known is left out. */
static void put_part(struct prb_str *s, const char *name, int64_t bytes, bool *any)
{
	if (bytes < 0)
		return;
	prb_str_printf(s, "%s%s ", *any ? " · " : "", name);
	prb_text_bytes(s, (double)bytes);
	*any = true;
}

static void put_process(const struct prb_memory *m, struct prb_str *s)
{
	const struct prb_memory_process *p = &m->process;
	bool any = false;

	if (!p->told) {
		prb_str_printf(s, "a %s does not have the kernel's figures (RSS, control group)\n",
			       prb_target_kind_name(m->target->kind));
		return;
	}
	put_part(s, "RSS", p->rss, &any);
	put_part(s, "peak", p->peak, &any);
	put_part(s, "PSS", p->pss, &any);
	prb_str_puts(s, "\n  ");
	any = false;
	put_part(s, "anonymous", p->anonymous, &any);
	put_part(s, "files", p->file, &any);
	put_part(s, "shared", p->shared, &any);
	put_part(s, "huge pages", p->huge, &any);
	put_part(s, "swap", p->swap, &any);
	prb_str_putc(s, '\n');
	if (p->limit < 0)
		return;
	prb_str_puts(s, "  control group: ");
	prb_text_bytes(s, (double)p->used);
	prb_str_puts(s, " of ");
	prb_text_bytes(s, (double)p->limit);
	prb_str_puts(s, ", ");
	prb_text_bytes(s, (double)PRB_MAX(p->limit - p->used, (int64_t)0));
	prb_str_puts(s, " left\n");
}

static void put_gpus(const struct prb_memory *m, struct prb_str *s)
{
	const struct prb_memory_gpu *gpu;

	if (m->no_gpu.length)
		prb_str_printf(s, "  GPU: not known: %s\n", prb_str_text(&m->no_gpu));
	prb_vec_each (gpu, &m->gpus) {
		prb_str_printf(s, "  GPU %u", gpu->index);
		if (gpu->name[0]) {
			prb_str_puts(s, ", ");
			prb_text_escape(s, gpu->name);
		}
		prb_str_puts(s, ": ");
		prb_text_bytes(s, (double)gpu->own);
		if (gpu->total >= 0) {
			prb_str_puts(s, " · all processes ");
			prb_text_bytes(s, (double)gpu->used);
			prb_str_puts(s, " of ");
			prb_text_bytes(s, (double)gpu->total);
		}
		prb_str_putc(s, '\n');
	}
}

void prb_memory_put_head(const struct prb_memory *m, struct prb_str *s)
{
	struct prb_process process = {};
	prb_auto_error struct prb_error *err = NULL;

	prb_str_printf(s, "%d", (int)m->target->pid);
	if (m->target->live && m->target->local) {
		err = prb_process_describe(m->target->pid, &process);
		if (!err) {
			prb_str_puts(s, "  ");
			prb_command_line_text(s, &process);
		}
		prb_process_deinit(&process);
	} else {
		prb_str_printf(s, "  (%s)", prb_target_kind_name(m->target->kind));
	}
	prb_str_putc(s, '\n');
}

static struct prb_error *put_types(struct prb_census *census, int rows, struct prb_str *s)
{
	prb_auto_free struct prb_census_type *types = NULL;
	uint64_t count = 0, bytes = 0;
	size_t all, shown;

	PRB_TRY(prb_memory_types(census, &types, &all));
	shown = PRB_MIN(all, (size_t)rows);
	prb_str_puts(s, "       count      bytes  type\n");
	for (size_t i = 0; i < all; i++) {
		if (i >= shown) {
			count += types[i].count;
			bytes += types[i].bytes;
			continue;
		}
		put_column_count(s, (int64_t)types[i].count);
		prb_str_putc(s, ' ');
		put_column_bytes(s, (double)types[i].bytes);
		prb_str_puts(s, "  ");
		prb_text_escape(s, types[i].name);
		if (types[i].owned * 2 > types[i].bytes && types[i].owned > 1 << 20) {
			prb_str_puts(s, "  (");
			prb_text_bytes(s, (double)types[i].owned);
			prb_str_puts(s, " of it what they own)");
		}
		prb_str_putc(s, '\n');
	}
	if (all > shown) {
		put_column_count(s, (int64_t)count);
		prb_str_putc(s, ' ');
		put_column_bytes(s, (double)bytes);
		prb_str_printf(s, "  %zu other types\n", all - shown);
	}
	return NULL;
}

static struct prb_error *put_pools(struct prb_census *census, struct prb_str *s)
{
	struct prb_census_pools pools;
	uint64_t total;

	PRB_TRY(prb_census_pools(census, &pools));
	if (!pools.pools)
		return NULL;
	total = pools.arenas * pools.arena_bytes;
	prb_str_printf(s, "\nSmall-object allocator: %llu arenas, ",
		       (unsigned long long)pools.arenas);
	prb_text_bytes(s, (double)total);
	prb_str_puts(s, ": ");
	prb_text_bytes(s, (double)pools.used);
	prb_str_printf(s, " in use (%.0f %%), ",
		       total ? 100 * (double)pools.used / (double)total : 0);
	prb_text_bytes(s, (double)pools.free);
	prb_str_printf(s, " free in %llu used pools, ", (unsigned long long)pools.pools);
	prb_text_bytes(s, (double)pools.unused);
	prb_str_puts(s, " outside of them\n");
	return NULL;
}

static struct prb_error *put_groups(struct prb_census *census, struct prb_str *s)
{
	prb_auto_free struct prb_memory_group *groups = NULL;
	size_t count;

	PRB_TRY(prb_memory_groups(census, &groups, &count));
	prb_str_puts(s, "\nTensors\n       count      bytes  device  dtype\n");
	for (size_t i = 0; i < count; i++) {
		put_column_count(s, (int64_t)(groups[i].tensors + groups[i].gradients));
		prb_str_putc(s, ' ');
		put_column_bytes(s, (double)groups[i].bytes);
		prb_str_printf(s, "  %s", groups[i].device ? groups[i].device : "?");
		if (groups[i].index >= 0)
			prb_str_printf(s, ":%d", groups[i].index);
		prb_str_printf(s, "  %s", groups[i].dtype);
		if (groups[i].gradients)
			prb_str_printf(s, "  (%llu of them gradients)",
				       (unsigned long long)groups[i].gradients);
		prb_str_putc(s, '\n');
	}
	return NULL;
}

static struct prb_error *put_tensors(struct prb_census *census, struct prb_str *s)
{
	prb_auto_free struct prb_census_tensor *tensors = NULL;
	prb_auto_torch_modules struct prb_torch_modules modules = {};
	size_t count;

	PRB_TRY(prb_memory_tensors(census, &tensors, &count));
	if (!count)
		return NULL;
	PRB_TRY(prb_torch_modules_read(census, &modules));
	PRB_TRY(put_groups(census, s));
	prb_str_puts(s, "  largest\n");
	for (size_t i = 0; i < PRB_MIN(count, (size_t)TENSORS); i++) {
		const struct prb_census_tensor *t = &tensors[i];

		prb_text_spaces(s, COUNT_WIDTH + 1);
		put_column_bytes(s, (double)(t->storage ? t->storage_bytes : t->bytes));
		prb_str_puts(s, "  ");
		prb_memory_put_shape(s, t);
		prb_str_puts(s, t->gradient ? "  gradient of " : "  ");
		PRB_TRY(prb_torch_path(census, &modules, t->object, s));
		prb_str_putc(s, '\n');
	}
	return NULL;
}

static void put_unheld(const struct prb_census_totals *totals, struct prb_str *s)
{
	if (totals->garbage) {
		put_column_count(s, (int64_t)totals->garbage);
		prb_str_putc(s, ' ');
		put_column_bytes(s, (double)totals->garbage_bytes);
		prb_str_puts(s, "  of these are garbage that was not collected yet\n");
	}
	if (totals->unheld > totals->garbage) {
		put_column_count(s, (int64_t)(totals->unheld - totals->garbage));
		prb_str_putc(s, ' ');
		put_column_bytes(s, (double)totals->unheld_bytes - (double)totals->garbage_bytes);
		prb_str_puts(s, "  of these are held by C code only\n");
	}
}

static struct prb_error *put_interpreter(const struct prb_memory *m,
					 const struct prb_memory_interpreter *i, int rows,
					 struct prb_str *s)
{
	struct prb_census_totals totals;

	prb_str_puts(s, "\nPython objects");
	if (m->interpreters.count > 1)
		prb_str_printf(s, " of interpreter %lld", (long long)i->state.id);
	if (i->error) {
		prb_str_puts(s, ": ");
		prb_text_escape(s, i->error->message);
		prb_str_putc(s, '\n');
		return NULL;
	}
	totals = prb_census_totals(i->census);
	prb_str_puts(s, ": ");
	prb_memory_put_count(s, (int64_t)totals.objects);
	prb_str_puts(s, ", ");
	prb_text_bytes(s, (double)totals.bytes);
	prb_str_puts(s, " (read in ");
	prb_text_duration(s, totals.seconds);
	prb_str_puts(s, ")\n");
	if (prb_census_doubt(i->census))
		prb_str_printf(s, "  %s\n", prb_census_doubt(i->census));
	PRB_TRY(put_types(i->census, rows, s));
	put_unheld(&totals, s);
	PRB_TRY(put_pools(i->census, s));
	return put_tensors(i->census, s);
}

/** Bytes of objects that lie in anonymous memory: a mapping need not. */
static double anonymous_bytes(struct prb_census *census)
{
	struct prb_census_type type;
	uint64_t bytes = 0;

	for (size_t i = 0; prb_census_type(census, i, &type); i++)
		bytes += strcmp(type.name, "mmap.mmap") ? type.bytes : type.bytes - type.owned;
	return (double)bytes;
}

/** Appends the anonymous memory that no object explains. */
static void put_rest(const struct prb_memory *m, struct prb_str *s)
{
	const struct prb_memory_interpreter *i;
	double rest = (double)m->process.anonymous;

	prb_vec_each (i, &m->interpreters)
		rest -= i->census ? anonymous_bytes(i->census) : 0;
	/* Buffers that were never written to have no memory yet. */
	if (m->process.anonymous < 0 || !m->interpreters.count || rest < 0)
		return;
	prb_str_puts(s, "\nAnonymous memory beyond these objects: ");
	prb_text_bytes(s, rest);
	prb_str_puts(s, " (C libraries, stacks, free memory of the allocators)\n");
}

struct prb_error *prb_memory_put_text(const struct prb_memory *m, int rows, struct prb_str *s)
{
	const struct prb_memory_interpreter *i;

	prb_memory_put_head(m, s);
	put_process(m, s);
	put_gpus(m, s);
	if (m->no_python) {
		prb_str_puts(s, "\nno Python objects: ");
		prb_text_escape(s, m->no_python->message);
		prb_str_putc(s, '\n');
	}
	prb_vec_each (i, &m->interpreters)
		PRB_TRY(put_interpreter(m, i, rows, s));
	prb_memory_put_malloc(&m->malloc, s);
	put_rest(m, s);
	return s->failed ? prb_error_nomem() : NULL;
}
