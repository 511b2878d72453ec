/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/c_function.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"

enum { MAX_MAPPED = 64 << 20, MAX_NAME = 120 };

/* A function in these libraries says nothing about the program: all code calls them. */
static bool is_everywhere(const char *path)
{
	static const char *const names[] = {"libc.",	  "libc-",     "ld-",	"ld.",
					    "libpthread", "libpython", "[vdso]"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return !*name;
}

static bool is_interpreter(const struct prb_reader *r, const struct prb_module *module)
{
	const struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads)
		if (thread->py && thread->py->module->start == module->start)
			return true;
	return false;
}

static struct prb_error *name_function(struct prb_module *module, uint64_t pc, struct prb_str *ret)
{
	prb_auto_str struct prb_str symbol = {};
	prb_auto_free char *readable = NULL, *brief = NULL;
	const char *name;
	const char *path = strrchr(module->path, '/');

	if (module->end - module->start <= MAX_MAPPED) {
		prb_auto_error struct prb_error *err =
			prb_module_symbol_at(module, pc, &symbol, NULL);

		if (err && err->code == PRB_ERROR_NOMEM)
			return prb_steal(&err);
		if (!err && symbol.length) {
			readable = prb_demangle(prb_str_text(&symbol));
			name = readable ? readable : prb_str_text(&symbol);
			PRB_TRY(prb_short_name(name, &brief));
			name = brief ? brief : name;
			prb_str_printf(ret, "%.*s%s", MAX_NAME, name,
				       strlen(name) > MAX_NAME ? "…" : "");
		}
	}
	if (!ret->length)
		prb_str_printf(ret, "%.*s", MAX_NAME, path ? path + 1 : module->path);
	return ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_read_c_function(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	prb_auto_str struct prb_str text = {};
	char key[32];

	if (!thread->task)
		return NULL;
	snprintf(key, sizeof(key), "in_c:%d", (int)thread->task->tid);
	if (prb_target_recall(r->target, key, &text))
		return prb_str_copy(prb_str_text(&text), &out->in_c);

	struct prb_module *module = thread->pc && out->read == PRB_READ_STOPPED
					    ? prb_modules_find(r->modules, thread->pc)
					    : NULL;
	if (!module || is_everywhere(module->path) || is_interpreter(r, module) ||
	    strcmp(out->state, "running") != 0)
		return NULL;
	PRB_TRY(name_function(module, thread->pc, &text));
	prb_target_remember(r->target, key, prb_str_text(&text), text.length);
	return prb_str_copy(prb_str_text(&text), &out->in_c);
}
