/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as an ELF file in the memory of a process, whose file on disk cannot be opened:
 * modules, their symbols by `.dynamic`, and the search for the runtime of an interpreter. The last
 * byte chooses the name of the mapping.
 */
#include "tests/fuzz/elf_file.h"
#include "tests/fuzz/input.h"

#include "python/python.h"
#include "dwarf/elf/module.h"

enum { BASE = 0x10000, AREA = 0x10000 };

struct image {
	struct prb_mem mem;
	const uint8_t *bytes;
	size_t size;
};

static struct prb_error *image_read(struct prb_mem *mem, uint64_t address, void *buffer,
				    size_t length)
{
	const struct image *image = (const struct image *)mem;
	uint64_t offset = address - BASE;

	if (address < BASE || !prb_inside(offset, length, AREA))
		return prb_error_fault(address, length);
	memset(buffer, 0, length);
	if (offset < image->size)
		memcpy(buffer, image->bytes + offset, PRB_MIN(length, image->size - offset));
	return NULL;
}

static const struct prb_mem_ops image_ops = {.read = image_read, .destroy = repeated_destroy};

static char facts_text[4096];

static struct input facts_of(unsigned choice)
{
	static const char *const names[] = {"/usr/bin/python3.13",
					    "/usr/lib/libpython3.8.so.1.0",
					    "/usr/bin/python3",
					    "/opt/app",
					    "[vdso]",
					    ""};
	const char *name = names[choice % PRB_ARRAY_SIZE(names)];
	int inode = *name == '/' ? 42 : 0;
	int length = snprintf(facts_text, sizeof(facts_text),
			      "maps%c10000-20000 rwxp 00000000 08:01 %d %s\n%cexe%c%s%c", 0, inode,
			      name, 0, 0, name, 0);

	return (struct input){(const uint8_t *)facts_text, (size_t)length};
}

static void ask_module(struct prb_module *module)
{
	static const char *const names[] = {"first", "second", "_PyRuntime", "Py_Version", ""};
	prb_auto_str struct prb_str name = {};
	uint64_t address, size;

	(void)prb_module_build_id(module);
	prb_error_destroy(prb_module_section(module, ".eh_frame_hdr", &address, &size));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		prb_error_destroy(prb_module_symbol(module, names[i], &address, &size));
	for (uint64_t at = module->start; at < module->end && at < module->start + AREA; at += 256)
		prb_error_destroy(prb_module_symbol_at(module, at, &name, &address));
}

static void ask_modules(struct prb_modules *modules)
{
	struct prb_python_identity identity;
	struct prb_module **module;
	struct prb_pythons pythons;
	struct prb_view *view;

	prb_vec_each (module, &modules->list)
		ask_module(*module);
	prb_error_destroy(prb_python_identify(modules, &identity));

	struct prb_error *err = prb_view_create(modules->target->mem, &view);
	if (!err) {
		err = prb_pythons_find(modules, view, &pythons);
		if (!err)
			prb_pythons_deinit(&pythons);
		prb_view_destroy(view);
	}
	prb_error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image image = {.mem = {&image_ops}, .bytes = data, .size = PRB_MIN(size, AREA + 0u)};
	struct fact_target facts =
		fact_target(facts_of(size ? data[size - 1] : 0), PRB_TARGET_PROCESS, &image.mem);
	struct prb_modules *modules;
	struct prb_error *err = prb_target_refresh_maps(&facts.target);

	if (!err)
		err = prb_modules_create(&facts.target, &modules);
	if (!err) {
		ask_modules(modules);
		prb_modules_destroy(modules);
	}
	prb_error_destroy(err);
	prb_maps_deinit(&facts.target.maps);
	prb_str_deinit(&facts.target.maps_text);
	return 0;
}
