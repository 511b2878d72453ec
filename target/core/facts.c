/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /proc files of the process, reconstructed from the core. */
#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/core/file.h"

static uint64_t segment_end(const struct core_segment *s)
{
	return s->address + s->size;
}

/* A name for memory without a file, as the kernel gives. */
static const char *special_name(const struct core *core, uint64_t start, uint64_t end)
{
	static const struct {
		uint64_t type;
		const char *name;
	} inside[] = {{AT_SYSINFO_EHDR, "[vdso]"}, {AT_RANDOM, "[stack]"}};
	uint64_t address;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(inside); i++)
		if (core_auxv(core, inside[i].type, &address) && address >= start && address < end)
			return inside[i].name;
	return "";
}

/* One line; @p s or @p m may be NULL, not both. */
static void put_map(const struct core *core, uint64_t start, uint64_t end,
		    const struct core_segment *s, const struct core_mapping *m, struct prb_str *ret)
{
	/*
	 * gdb leaves mappings of files that were not changed out of the core altogether: most are
	 * code, none can have been written to.
	 */
	prb_str_printf(ret, "%08" PRIx64 "-%08" PRIx64 " %c%c%cp %08" PRIx64 " 00:00 %" PRIu64 " ",
		       start, end, !s || s->read ? 'r' : '-', s && s->write ? 'w' : '-',
		       !s || s->exec ? 'x' : '-', m ? m->offset + (start - m->start) : 0,
		       m ? m->file : 0);
	for (const char *p = m ? m->path : special_name(core, start, end); *p; p++) {
		if (*p == '\n')
			prb_str_puts(ret, "\\012");
		else
			prb_str_putc(ret, *p);
	}
	prb_str_putc(ret, '\n');
}

void core_make_maps(struct core *core, struct prb_str *ret)
{
	size_t i = 0, j = 0;

	/* Both lists are sorted and without overlap; lines end where either changes. */
	for (uint64_t at = 0;;) {
		while (i < core->segments.count && segment_end(&core->segments.items[i]) <= at)
			i++;
		while (j < core->mappings.count && core->mappings.items[j].end <= at)
			j++;

		const struct core_segment *s =
			i < core->segments.count ? &core->segments.items[i] : NULL;
		const struct core_mapping *m =
			j < core->mappings.count ? &core->mappings.items[j] : NULL;
		if (!s && !m)
			return;
		uint64_t first_s = s ? s->address : UINT64_MAX, first_m = m ? m->start : UINT64_MAX;
		uint64_t first = PRB_MIN(first_s, first_m);
		if (first > at)
			at = first;

		bool in_s = s && s->address <= at, in_m = m && m->start <= at;
		uint64_t end_s = in_s ? segment_end(s) : first_s, end_m = in_m ? m->end : first_m;
		uint64_t end = PRB_MIN(end_s, end_m);
		put_map(core, at, end, in_s ? s : NULL, in_m ? m : NULL, ret);
		at = end;
	}
}

/* Arguments from the stack; else the 80 characters of NT_PRPSINFO, which joins them by spaces. */
static struct prb_error *put_cmdline(struct core *core, struct prb_str *ret)
{
	size_t before = ret->length;
	struct prb_error *err = core_stack_strings(core, false, ret);

	if (!err || !core->arguments[0])
		return err;
	prb_error_destroy(err);
	prb_str_truncate(ret, before);
	for (const char *p = core->arguments; *p; p++)
		prb_str_putc(ret, *p == ' ' ? '\0' : *p);
	prb_str_putc(ret, '\0');
	return NULL;
}

struct prb_error *core_read_fact(struct prb_target *t, const char *name, struct prb_str *ret)
{
	struct core *core = (struct core *)t;
	const struct core_fact *fact = core_fact(core, name);

	if (fact) {
		prb_str_append(ret, fact->text, fact->length);
		return NULL;
	}
	if (!strncmp(name, "task/", 5))
		return core_task_fact(core, name, ret);
	if (!strcmp(name, "maps")) {
		core_make_maps(core, ret);
		return NULL;
	}
	if (!strcmp(name, "cmdline"))
		return put_cmdline(core, ret);
	if (!strcmp(name, "environ"))
		return core_stack_strings(core, true, ret);
	if (!strcmp(name, "auxv") && core->auxv) {
		prb_str_append(ret, core->auxv, core->auxv_size);
		return NULL;
	}
	if (!strcmp(name, "comm") && core->have_info) {
		prb_str_printf(ret, "%s\n", core->name);
		return NULL;
	}
	if (!strcmp(name, "stat"))
		return core_task_stat(core, t->pid, ret);
	return core_not_told(name);
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return x < y ? -1 : x > y;
}

struct prb_error *core_list_fact(struct prb_target *t, const char *name, struct prb_str *ret)
{
	struct core *core = (struct core *)t;

	if (strcmp(name, "task"))
		return core_list_facts(core, name, ret) ? NULL : core_not_told(name);
	if (!core->threads.count)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND, "the core file has no threads"),
			"it may be truncated: gdb writes the threads at its end");
	prb_auto_free pid_t *tids = malloc(core->threads.count * sizeof(*tids));
	if (!tids)
		return prb_error_nomem();
	for (size_t i = 0; i < core->threads.count; i++)
		tids[i] = core->threads.items[i].tid;
	qsort(tids, core->threads.count, sizeof(*tids), compare_tids);
	for (size_t i = 0; i < core->threads.count; i++)
		if (i == 0 || tids[i] != tids[i - 1])
			prb_str_printf(ret, "%d\n", tids[i]);
	return NULL;
}
