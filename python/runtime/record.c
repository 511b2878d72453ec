/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Findings about a runtime, as derived facts: a snapshot has no symbols to find it by. */
#include "python/runtime/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

typedef unsigned long long number;

void prb_python_remember(struct prb_python *py, unsigned index)
{
	prb_auto_str struct prb_str key = {}, text = {};
	const struct prb_layout *l = &py->layout;

	if (!prb_target_is_recorded(py->target))
		return;
	prb_str_printf(&key, "python:%u", index);
	prb_str_printf(&text, "module %llx\nversion %s\n", (number)py->module->start, py->version);
	prb_str_printf(&text, "runtime %llx\ninterp_head %llx\ntstate_current %llx\n",
		       (number)py->runtime, (number)py->interp_head, (number)py->tstate_current);
	prb_str_printf(&text, "gc_collecting %llx\ngil_cond %llx\ngil_mutex %llx\n",
		       (number)py->gc_collecting, (number)py->gil_cond, (number)py->gil_mutex);
	prb_str_printf(&text, "gc_generation0 %llx\ngc_enabled %llx\ngc_stats %llx\n",
		       (number)py->gc_generation0, (number)py->gc_enabled, (number)py->gc_stats);
	prb_str_printf(&text, "layout %x %x %x %x %x\n", l->version, l->micro, l->free_threaded,
		       l->debug_build, l->source);
	prb_python_know_builtins(py);
	for (int i = 0; i < PRB_BUILTIN_COUNT; i++)
		prb_str_printf(&text, "%s %llx\n", prb_builtin_types[i].symbol,
			       (number)py->builtins[i]);
	prb_str_printf(&text, "damaged %llx\n", (number)py->damaged);
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		prb_str_printf(&text, "field %s %d\n", prb_layout_fields[i].name,
			       *(const int32_t *)((const char *)l + prb_layout_fields[i].place));
	if (!key.failed && !text.failed)
		prb_target_remember(py->target, prb_str_text(&key), prb_str_text(&text),
				    text.length);
}

static void set_field(struct prb_layout *layout, const char *name, int value)
{
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		if (!strcmp(prb_layout_fields[i].name, name))
			*(int32_t *)((char *)layout + prb_layout_fields[i].place) = value;
}

static void set_builtin(struct prb_python *py, const char *symbol, uint64_t address)
{
	for (int i = 0; i < PRB_BUILTIN_COUNT; i++)
		if (!strcmp(prb_builtin_types[i].symbol, symbol))
			py->builtins[i] = address;
}

/* One line; names that this version does not know mean nothing to it. */
static void take_line(struct prb_python *py, struct prb_modules *modules, const char *line)
{
	unsigned version, micro, free_threaded, debug, source;
	char name[64];
	number value;
	int offset;

	if (sscanf(line, "field %63s %d", name, &offset) == 2)
		set_field(&py->layout, name, offset);
	else if (sscanf(line, "version %31s", py->version) == 1)
		return;
	else if (sscanf(line, "layout %x %x %x %x %x", &version, &micro, &free_threaded, &debug,
			&source) == 5) {
		py->layout.version = (uint16_t)version;
		py->layout.micro = (uint8_t)micro;
		py->layout.free_threaded = free_threaded;
		py->layout.debug_build = debug;
		py->layout.source = source <= PRB_LAYOUT_TABLE ? source : PRB_LAYOUT_TABLE;
	} else if (sscanf(line, "%63s %llx", name, &value) == 2) {
		if (!strcmp(name, "module"))
			py->module = prb_modules_find(modules, value);
		else if (!strcmp(name, "runtime"))
			py->runtime = value;
		else if (!strcmp(name, "interp_head"))
			py->interp_head = value;
		else if (!strcmp(name, "tstate_current"))
			py->tstate_current = value;
		else if (!strcmp(name, "gc_collecting"))
			py->gc_collecting = value;
		else if (!strcmp(name, "gil_cond"))
			py->gil_cond = value;
		else if (!strcmp(name, "gil_mutex"))
			py->gil_mutex = value;
		else if (!strcmp(name, "gc_generation0"))
			py->gc_generation0 = value;
		else if (!strcmp(name, "gc_enabled"))
			py->gc_enabled = value;
		else if (!strcmp(name, "gc_stats"))
			py->gc_stats = value;
		else if (!strcmp(name, "damaged"))
			py->damaged = (uint32_t)value;
		else
			set_builtin(py, name, value);
	}
}

static struct prb_error *parse(struct prb_python *py, struct prb_modules *modules, char *text)
{
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		set_field(&py->layout, prb_layout_fields[i].name, PRB_ABSENT);
	for (char *line = text, *next; *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		take_line(py, modules, line);
	}
	py->builtins_known = true;
	py->layout.behaviour = prb_behaviour_find(py->layout.version);
	if (!py->module || !py->layout.behaviour)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"what the snapshot says about its Python is malformed");
	return NULL;
}

struct prb_error *prb_pythons_recall(struct prb_modules *modules, struct prb_pythons *ret)
{
	for (unsigned index = 0;; index++) {
		prb_auto_str struct prb_str key = {}, text = {};
		struct prb_python **slot;

		prb_str_printf(&key, "python:%u", index);
		if (!prb_target_recall(modules->target, prb_str_text(&key), &text) || !text.data)
			return NULL;
		slot = prb_vec_push(&ret->list);
		if (!slot)
			return prb_error_nomem();
		*slot = calloc(1, sizeof(**slot));
		if (!*slot)
			return prb_error_nomem();
		(*slot)->target = modules->target;
		PRB_TRY(parse(*slot, modules, text.data));
	}
}
