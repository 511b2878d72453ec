/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/traps.h"

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

struct check {
	struct prb_modules *modules;
	const struct prb_inject_arch *arch;
	unsigned count;
	struct prb_str where;	 /* what has them */
	struct prb_str commands; /* of gdb, that put back what was there */
};

static void note(struct check *c, struct prb_module *part, uint64_t address, const uint8_t *was)
{
	const char *type = c->arch->trap_length == 1 ? "char" : "int";
	prb_auto_str struct prb_str name = {};
	uint64_t value = 0, start = 0;
	struct prb_error *err;

	if (c->count++ >= MAX_TRAPS)
		return;
	for (size_t i = c->arch->trap_length; i > 0; i--)
		value = value << BYTE_BITS | was[i - 1];
	err = prb_module_symbol_at(part, address, &name, &start);
	prb_str_printf(&c->where, "%s%s", c->where.length ? ", " : "",
		       err ? "a function without a name" : prb_str_text(&name));
	prb_error_destroy(err);
	prb_str_printf(&c->commands, " -ex \"set var *(unsigned %s *)%#" PRIx64 " = %#" PRIx64 "\"",
		       type, address, value);
}

/** Where the bytes in memory are a trap, and those of the file are not. */
static void compare(struct check *c, struct prb_module *part, uint64_t address,
		    const uint8_t *there, const uint8_t *was, size_t length)
{
	const uint8_t *trap = c->arch->trap;
	size_t width = c->arch->trap_length;

	if (!memcmp(there, was, length))
		return;
	for (size_t i = 0; i + width <= length; i += width)
		if (!memcmp(there + i, trap, width) && memcmp(was + i, trap, width) != 0)
			note(c, part, address + i, was + i);
}

static struct prb_error *check_part(struct check *c, struct prb_module *part)
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

		err = prb_mem_read(c->modules->target->mem, there, chunk, length);
		if (!err)
			compare(c, part, there, chunk, (const uint8_t *)text + at, length);
	}
	if (err && err->code == PRB_ERROR_NO_PROCESS)
		return err;
	prb_error_destroy(err);
	return NULL;
}

static void check_deinit(struct check *c)
{
	prb_str_deinit(&c->where);
	prb_str_deinit(&c->commands);
}

struct prb_error *prb_traps_check(struct prb_modules *modules, const struct prb_inject_arch *arch,
				  const struct prb_libc *libc)
{
	__attribute__((cleanup(check_deinit))) struct check c = {.modules = modules, .arch = arch};
	int pid = (int)modules->target->pid;

	for (size_t i = 0; i < libc->parts.count; i++) {
		struct prb_module *part = (struct prb_module *)libc->parts.items[i];
		uint64_t address, size;

		/* What debuggers are told by is in the loader, which musl is itself. */
		PRB_TRY(prb_module_exported_symbol(part, "_dl_debug_state", &address, &size));
		if (address)
			PRB_TRY(check_part(&c, part));
	}
	if (!c.count)
		return NULL;
	return prb_error_hint(
		prb_error_create(
			PRB_ERROR_UNSUPPORTED,
			"the dynamic loader of process %d has a breakpoint that a "
			"debugger has left, in %s: loading a library would kill the process",
			pid, prb_str_text(&c.where)),
		"the debugger was killed; 'gdb -p %d -batch%s' puts it back", pid,
		prb_str_text(&c.commands));
}
