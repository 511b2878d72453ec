/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/libc/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dwarf/elf/elf.h"

enum {
	CHUNK = 64 << 10, /* what is searched for is mostly near the beginning */
	OVERLAP = 64,	  /* bytes that the longest thing searched for may have */
};

struct search {
	struct prb_target *t;
	struct prb_modules *modules;
	const struct prb_inject_arch *arch;
	struct prb_target_code *code; /* what was found */
};

static bool is_complete(const struct search *s)
{
	return s->code->gadget && s->code->trampoline && s->code->store.address;
}

/* Looks for what is still lacking in a piece of code, of a part of the C library or the vdso. */
static void search_piece(const struct search *s, const uint8_t *bytes, size_t length,
			 uint64_t address, bool part)
{
	const struct prb_inject_arch *arch = s->arch;
	const uint8_t *found = NULL;

	if (part && !s->code->gadget)
		found = memmem(bytes, length, arch->syscall_code, arch->syscall_length);
	if (found)
		s->code->gadget = address + (uint64_t)(found - bytes) + arch->syscall_offset;
	found = NULL;
	if (!s->code->trampoline)
		found = memmem(bytes, length, arch->machine->sigreturn_code,
			       arch->machine->sigreturn_length);
	if (found)
		s->code->trampoline = address + (uint64_t)(found - bytes);
	if (part && !s->code->store.address && arch->find_store(bytes, length, &s->code->store))
		s->code->store.address += address;
}

static struct prb_error *search_memory(const struct search *s, const struct prb_map *map, bool part)
{
	prb_auto_free uint8_t *chunk = malloc(CHUNK);

	if (!chunk)
		return prb_error_nomem();
	for (uint64_t at = map->start; at < map->end; at += CHUNK - OVERLAP) {
		size_t length = PRB_MIN(CHUNK, map->end - at);

		PRB_TRY(prb_mem_read(s->t->mem, at, chunk, length));
		search_piece(s, chunk, length, at, part);
		if (is_complete(s) || length < CHUNK)
			break;
	}
	return NULL;
}

/* The code of a file, with the address it is mapped at. */
struct text {
	const uint8_t *bytes;
	uint64_t address, size;
};

/* The code of a mapping; no bytes if it cannot be read. */
static struct text text_of(const struct search *s, const struct prb_map *map)
{
	struct prb_module *module = prb_modules_find(s->modules, map->start);
	struct text text = {};
	struct prb_elf *elf;
	const void *bytes = NULL;
	struct prb_error *err = module ? prb_module_elf(module, &elf) : NULL;

	if (module && !err)
		err = prb_elf_section(elf, ".text", &text.address, &text.size, &bytes);
	if (err || !bytes) {
		prb_error_destroy(err);
		return text;
	}
	text.address += module->bias;
	if (text.address >= map->start &&
	    prb_inside(text.address - map->start, text.size, map->end - map->start))
		text.bytes = bytes;
	return text;
}

/* Is it the same in memory? A debugger, or a hook, may have changed it there. */
static bool is_in_memory(const struct search *s, const struct text *text, uint64_t address)
{
	uint64_t offset = address - text->address;
	uint8_t there[OVERLAP];
	size_t length;

	if (!address || offset >= text->size)
		return true; /* not from here */
	length = PRB_MIN(sizeof(there), text->size - offset);
	struct prb_error *err = prb_mem_read(s->t->mem, address, there, length);
	bool same = !err && !memcmp(there, text->bytes + offset, length);

	prb_error_destroy(err);
	return same;
}

static bool search_file(const struct search *s, const struct prb_map *map)
{
	struct prb_target_code before = *s->code;
	struct text text = text_of(s, map);

	if (!text.bytes)
		return false;
	search_piece(s, text.bytes, text.size, text.address, true);
	if (is_in_memory(s, &text, s->code->gadget) &&
	    is_in_memory(s, &text, s->code->trampoline) &&
	    is_in_memory(s, &text, s->code->store.address))
		return true;
	*s->code = before;
	return false;
}

/* A function that does nothing but make a call has what else is found late. */
static struct prb_error *search_function(const struct search *s, const struct prb_libc *libc)
{
	enum { LONGEST = 32 };
	uint64_t address = 0, size = 0;
	uint8_t bytes[LONGEST];

	for (size_t i = 0; i < libc->parts.count && !address; i++)
		PRB_TRY(prb_module_exported_symbol((struct prb_module *)libc->parts.items[i],
						   "getuid", &address, &size));
	if (!address)
		return NULL;
	size = PRB_MIN(size, sizeof(bytes));
	struct prb_error *err = prb_mem_read(s->t->mem, address, bytes, size);
	if (!err)
		search_piece(s, bytes, size, address, true);
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
}

struct prb_error *prb_libc_find_code(struct prb_modules *modules,
				     const struct prb_inject_arch *arch, struct prb_libc *libc)
{
	const struct search s = {modules->target, modules, arch, &libc->code};
	const struct prb_map *map;

	PRB_TRY(search_function(&s, libc));
	prb_vec_each (map, &s.t->maps.list) {
		bool part = prb_libc_holds(libc, map->start);

		if (!map->exec || !map->read || (!part && strcmp(map->path, "[vdso]")))
			continue;
		if (!part || !search_file(&s, map))
			PRB_TRY(search_memory(&s, map, part));
		if (is_complete(&s))
			break;
	}
	if (libc->code.gadget && libc->code.trampoline)
		return NULL;
	return prb_error_create(PRB_ERROR_UNSUPPORTED,
				"the C library of process %d has no plain system call", s.t->pid);
}
