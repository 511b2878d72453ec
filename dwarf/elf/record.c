/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The modules of a target as a derived fact, so that a snapshot has them without their files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dwarf/elf/module_internal.h"

static const char key[] = "modules";

typedef unsigned long long number;

void prb_modules_remember(struct prb_modules *modules)
{
	prb_auto_str struct prb_str text = {};
	struct prb_module **slot;

	if (!prb_target_is_recorded(modules->target))
		return;
	prb_vec_each (slot, &modules->list) {
		struct prb_module *m = *slot;
		const char *build_id = prb_module_build_id(m);

		prb_str_printf(&text, "%llx %llx %llx %llx %llx %llx %d %s", (number)m->start,
			       (number)m->end, (number)m->bias, (number)m->header,
			       (number)m->unwind.address, (number)m->unwind.size, m->deleted,
			       *build_id ? build_id : "-");
		for (size_t i = 0; i < m->range_count; i++)
			prb_str_printf(&text, "%c%llx-%llx", i ? ',' : ' ',
				       (number)m->ranges[i].start, (number)m->ranges[i].end);
		prb_str_putc(&text, ' ');
		for (const char *p = m->path; *p; p++)
			prb_str_putc(&text, *p == '\n' ? '?' : *p);
		prb_str_putc(&text, '\n');
	}
	if (!text.failed)
		prb_target_remember(modules->target, key, prb_str_text(&text), text.length);
}

/* "START-END,START-END… PATH", the rest of a line, which says where the path is. */
static bool take_ranges(struct prb_module *module, char *text, char **path)
{
	number start, end;
	int used;

	for (;; text += used + 1) {
		used = 0;
		if (sscanf(text, "%16llx-%16llx%n", &start, &end, &used) != 2 || start >= end)
			return false;
		prb_module_add_range(module, start, end);
		if (text[used] == ' ') {
			*path = text + used + 1;
			return true;
		}
		if (text[used] != ',')
			return false;
	}
}

/* One line, without its newline. */
static struct prb_error *add(struct prb_modules *modules, char *line)
{
	number start, end, bias, header, unwind, size;
	char build_id[PRB_BUILD_ID_TEXT_SIZE], format[64], *path;
	int deleted, used = 0;

	snprintf(format, sizeof(format), "%%llx %%llx %%llx %%llx %%llx %%llx %%d %%%zus %%n",
		 sizeof(build_id) - 1);
	if (sscanf(line, format, &start, &end, &bias, &header, &unwind, &size, &deleted, build_id,
		   &used) != 8 ||
	    !used || start >= end)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the list of modules is malformed");

	struct prb_module *module = calloc(1, sizeof(*module));
	struct prb_module **slot = prb_vec_push(&modules->list);

	if (!module || !slot) {
		modules->list.count -= slot != NULL;
		free(module);
		return prb_error_nomem();
	}
	*slot = module;
	*module = (struct prb_module){.target = modules->target,
				      .start = start,
				      .end = end,
				      .bias = bias,
				      .header = header,
				      .unwind = {unwind, size},
				      .deleted = deleted,
				      .tried_build_id = true};
	if (strcmp(build_id, "-"))
		strcpy(module->build_id, build_id);
	if (!take_ranges(module, line + used, &path))
		return prb_error_create(PRB_ERROR_BAD_DATA, "the list of modules is malformed");
	module->path = strdup(path);
	return module->path ? NULL : prb_error_nomem();
}

struct prb_error *prb_modules_recall(struct prb_modules *modules, bool *ret)
{
	prb_auto_str struct prb_str text = {};

	*ret = prb_target_recall(modules->target, key, &text);
	for (char *line = text.data, *next; line && *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		PRB_TRY(add(modules, line));
	}
	return NULL;
}
