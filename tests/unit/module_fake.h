/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A target made of this program's own memory, for tests of modules.
 */
#ifndef TESTS_UNIT_MODULE_FAKE_H
#define TESTS_UNIT_MODULE_FAKE_H

#include "elf_helpers.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/checked.h"
#include "dwarf/elf/module.h"

/* Puts the headers on a page without code; the default on x86_64 only. */
#define SEPARATE_CODE "-shared -fPIC -Wl,-z,separate-code"

static const char library[] = "static int hidden(int x) { return x * 3; }\n"
			      "int (*volatile indirect)(int) = hidden;\n"
			      "int visible(int x) { return indirect(x) + 1; }\n"
			      "__asm__(\".text\\n.globl assembled\\nassembled: .skip 32\\n\");\n";

/** A target made of our own memory, whose files are those of our folder, or none at all. */
struct fake {
	struct prb_target target;
	bool files;    /* mapped files can be opened */
	unsigned maps; /* number of mapped files opened */
};

static inline struct prb_error *fake_open_file(struct prb_target *t, const char *path, int *ret_fd)
{
	prb_auto_free char *inside = prb_format("%s/root%s", folder, path);

	(void)t;
	*ret_fd = open(inside, O_RDONLY | O_CLOEXEC);
	/* With another root, our folder is still at its own path. */
	if (*ret_fd < 0 && !strncmp(path, folder, strlen(folder)))
		*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? prb_error_create(PRB_ERROR_NOT_FOUND, "%s does not exist", path)
			   : NULL;
}

static inline struct prb_error *fake_open_map(struct prb_target *t, const struct prb_map *map,
					      int *ret_fd)
{
	struct fake *fake = (struct fake *)t;

	fake->maps++;
	*ret_fd = fake->files ? open(map->path, O_RDONLY | O_CLOEXEC) : -1;
	return *ret_fd < 0 ? prb_error_create(PRB_ERROR_UNSUPPORTED, "there are no files") : NULL;
}

static const struct prb_target_ops fake_ops = {.open_file = fake_open_file,
					       .open_map = fake_open_map};

static inline void read_own_maps(struct prb_maps *maps)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_fclose FILE *file = fopen("/proc/self/maps", "r");
	char line[4096];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		prb_str_puts(&text, line);
	assert_ok(prb_maps_parse(prb_str_text(&text), maps));
}

static inline void fake_init(struct fake *fake, bool files)
{
	const Elf64_Ehdr *own = (const void *)getauxval(AT_SYSINFO_EHDR);

	*fake = (struct fake){.files = files};
	fake->target.ops = &fake_ops;
	fake->target.live = true;
	fake->target.machine = own->e_machine;
	assert_ok(prb_mem_live_create(0, &fake->target.mem));
	read_own_maps(&fake->target.maps);
}

static inline void fake_deinit(struct fake *fake)
{
	prb_maps_deinit(&fake->target.maps);
	prb_mem_destroy(fake->target.mem);
}

static inline struct prb_modules *modules_of(struct prb_target *target)
{
	struct prb_modules *modules;

	assert_ok(prb_modules_create(target, &modules));
	return modules;
}

/** Calls every function with each module; any result will do. */
static inline void ask_all(struct prb_modules *modules, uint64_t inside)
{
	struct prb_module **module;
	uint64_t address, size;

	prb_vec_each (module, &modules->list) {
		prb_auto_str struct prb_str name = {};

		assert_true(strlen(prb_module_build_id(*module)) < PRB_BUILD_ID_TEXT_SIZE);
		prb_error_destroy(prb_module_symbol(*module, "visible", &address, &size));
		prb_error_destroy(prb_module_symbol_at(*module, inside, &name, &address));
		prb_error_destroy(prb_module_section(*module, ".dynamic", &address, &size));
	}
}

#endif
