/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/libc/loader_breakpoints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/elf/elf.h"

enum {
	CHUNK = 64 << 10,
	MAX_TRAPS = 16,
	BYTE_BITS = 8,
};

struct search {
	struct prb_modules *modules;
	const struct prb_machine *machine;
	unsigned count;
	prb_trap_handler *handler;
	void *context;
};

static struct prb_error *found(struct search *s, struct prb_module *part, uint64_t address,
			       const uint8_t *was)
{
	prb_auto_str struct prb_str name = {};
	struct prb_trap trap = {.address = address, .length = s->machine->trap_length};
	uint64_t start = 0;
	struct prb_error *err;

	if (s->count++ >= MAX_TRAPS)
		return NULL;
	for (size_t i = trap.length; i > 0; i--)
		trap.original = trap.original << BYTE_BITS | was[i - 1];
	err = prb_module_symbol_at(part, address, &name, &start);
	trap.function = err ? NULL : prb_str_text(&name);
	prb_error_destroy(err);
	return s->handler(s->context, &trap);
}

/* Finds a trap in memory where the file has none. */
static struct prb_error *compare(struct search *s, struct prb_module *part, uint64_t address,
				 const uint8_t *there, const uint8_t *was, size_t length)
{
	const uint8_t *trap = s->machine->trap;
	size_t width = s->machine->trap_length;

	if (!memcmp(there, was, length))
		return NULL;
	for (size_t i = 0; i + width <= length; i += width)
		if (!memcmp(there + i, trap, width) && memcmp(was + i, trap, width) != 0)
			PRB_TRY(found(s, part, address + i, was + i));
	return NULL;
}

static struct prb_error *search_part(struct search *s, struct prb_module *part)
{
	prb_auto_free uint8_t *chunk = malloc(CHUNK);
	uint64_t address, size;
	const void *text = NULL;
	struct prb_elf *elf;
	struct prb_error *err = prb_module_elf(part, &elf);

	if (!chunk)
		err = err ? err : prb_error_nomem();
	if (!err)
		err = prb_elf_section(elf, ".text", &address, &size, &text);
	for (uint64_t at = 0; !err && text && at < size; at += CHUNK) {
		size_t length = PRB_MIN(CHUNK, size - at);
		uint64_t there = address + part->bias + at;

		err = prb_mem_read(s->modules->target->mem, there, chunk, length);
		if (!err)
			err = compare(s, part, there, chunk, (const uint8_t *)text + at, length);
	}
	if (err && (err->code == PRB_ERROR_NO_PROCESS || err->code == PRB_ERROR_NOMEM))
		return err;
	prb_error_destroy(err);
	return NULL;
}

struct prb_error *prb_loader_breakpoints_find(struct prb_modules *modules,
					      const struct prb_machine *machine,
					      const struct prb_libc *libc,
					      prb_trap_handler *handler, void *context)
{
	struct search s = {modules, machine, 0, handler, context};

	for (size_t i = 0; i < libc->parts.count; i++) {
		struct prb_module *part = (struct prb_module *)libc->parts.items[i];
		uint64_t address, size;

		/* The debuggers' hook is in the loader, which in musl is libc itself. */
		PRB_TRY(prb_module_exported_symbol(part, "_dl_debug_state", &address, &size));
		if (address)
			PRB_TRY(search_part(&s, part));
	}
	return NULL;
}

struct told {
	struct prb_str where;	 /* what has them */
	struct prb_str commands; /* of gdb, that put back what was there */
};

static void told_deinit(struct told *t)
{
	prb_str_deinit(&t->where);
	prb_str_deinit(&t->commands);
}

static struct prb_error *tell(void *context, const struct prb_trap *trap)
{
	struct told *t = context;

	prb_str_printf(&t->where, "%s%s", t->where.length ? ", " : "",
		       trap->function ? trap->function : "a function without a name");
	prb_str_printf(&t->commands, " -ex \"set var *(unsigned %s *)%#" PRIx64 " = %#" PRIx64 "\"",
		       trap->length == 1 ? "char" : "int", trap->address, trap->original);
	return NULL;
}

struct prb_error *prb_loader_breakpoints_check(struct prb_modules *modules,
					       const struct prb_machine *machine,
					       const struct prb_libc *libc)
{
	__attribute__((cleanup(told_deinit))) struct told t = {};
	int pid = (int)modules->target->pid;

	PRB_TRY(prb_loader_breakpoints_find(modules, machine, libc, tell, &t));
	if (!t.where.length)
		return NULL;
	return prb_error_hint(
		prb_error_create(
			PRB_ERROR_UNSUPPORTED,
			"the dynamic loader of process %d has a breakpoint that a "
			"debugger has left, in %s: loading a library would kill the process",
			pid, prb_str_text(&t.where)),
		"the debugger was killed; 'gdb -p %d -batch%s' puts it back", pid,
		prb_str_text(&t.commands));
}
