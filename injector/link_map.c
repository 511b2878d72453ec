/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A library that the target has loaded already: opens another handle, and closes it again. */
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "injector/inject_private.h"

enum {
	NOW = 2,
	NOLOAD = 4,
	MAX_MAPS = 65536, /* objects of a process; more are a cycle */
	MAX_NAME = 4096,
};

/* struct r_debug and struct link_map of <link.h>, in the target. */
struct debug {
	uint64_t version, maps;
};
struct map {
	uint64_t bias, name, dynamic, next, previous;
};

/* The loader's note for debuggers: where its list of objects begins. 0: there is none. */
static struct prb_error *find_list(struct prb_target *t, const struct prb_libc *libc, bool *musl,
				   uint64_t *ret)
{
	struct debug debug = {};

	*ret = 0;
	for (size_t i = 0; i < libc->parts.count && !*ret; i++) {
		struct prb_module *part = (struct prb_module *)libc->parts.items[i];
		uint64_t address, size;
		struct prb_error *err = prb_module_symbol(part, "_r_debug", &address, &size);

		*musl = prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
		if (*musl) {
			err = prb_module_symbol(part, "_dl_debug_addr", &address, &size);
			if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
				continue;
			PRB_TRY(err);
			err = prb_mem_read_u64(t->mem, address, &address);
		}
		PRB_TRY(err);
		PRB_TRY(prb_mem_read(t->mem, address, &debug, sizeof(debug)));
		*ret = debug.maps;
	}
	return NULL;
}

/* The object's note in the list, and its name there. */
static struct prb_error *find_map(struct prb_target *t, uint64_t list, uint64_t bias, uint64_t *ret,
				  struct prb_str *name)
{
	struct map map;

	*ret = 0;
	for (unsigned n = 0; list && n < MAX_MAPS; n++, list = map.next) {
		PRB_TRY(prb_mem_read(t->mem, list, &map, sizeof(map)));
		if (map.bias != bias)
			continue;
		*ret = list;
		return prb_mem_read_cstr(t->mem, map.name, MAX_NAME, name);
	}
	return NULL;
}

bool prb_handle_has_name(struct prb_modules *modules, const struct prb_libc *libc, const char *name)
{
	struct prb_mem *memory = modules->target->mem;
	uint64_t list;
	bool musl = false, found = false;
	struct map map;
	struct prb_error *err = find_list(modules->target, libc, &musl, &list);

	for (unsigned n = 0; !err && list && n < MAX_MAPS && !found; n++, list = map.next) {
		prb_auto_str struct prb_str own = {};

		err = prb_mem_read(memory, list, &map, sizeof(map));
		if (!err)
			err = prb_mem_read_cstr(memory, map.name, MAX_NAME, &own);
		found = !err && !strcmp(prb_str_text(&own), name);
	}
	/* It may change while it is read. */
	prb_error_destroy(err);
	return found;
}

struct prb_error *prb_handle_open(const struct prb_library *library, struct prb_modules *modules,
				  const struct prb_libc *libc, struct prb_mail *mail,
				  double deadline, uint64_t *ret)
{
	const struct prb_module *module = prb_library_loaded(library, modules);
	prb_auto_str struct prb_str name = {};
	uint64_t list, map, address;
	bool musl = false;

	*ret = 0;
	if (!module || libc->internal_dlopen)
		return NULL;
	PRB_TRY(find_list(modules->target, libc, &musl, &list));
	PRB_TRY(find_map(modules->target, list, module->bias, &map, &name));
	if (name.failed)
		return prb_error_nomem();
	if (!map || !name.length)
		return NULL;
	if (musl) { /* its handles are these notes, and it counts nothing */
		*ret = map;
		return NULL;
	}
	PRB_TRY(prb_mail_text(mail, 0, prb_str_text(&name), &address));
	PRB_TRY(prb_mail_call(mail, libc->dlopen,
			      (const uint64_t[PRB_MAIL_ARGUMENTS]){address, NOW | NOLOAD}, deadline,
			      ret));
	prb_log("inject", 2, "dlopen(%s) again = %#llx", prb_str_text(&name),
		(unsigned long long)*ret);
	return NULL;
}

struct prb_error *prb_handle_close(const struct prb_libc *libc, struct prb_mail *mail,
				   double deadline, uint64_t handle)
{
	uint64_t result;

	if (!handle || !libc->dlclose)
		return NULL;
	return prb_mail_call(mail, libc->dlclose, (const uint64_t[PRB_MAIL_ARGUMENTS]){handle},
			     deadline, &result);
}
