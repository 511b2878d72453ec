/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any text as the facts that a snapshot has of modules and runtimes, then as memory; see input.h
 * for the form.
 */
#include "tests/fuzz/input.h"

#include "python/python.h"
#include "dwarf/elf/module.h"

static void ask_python(struct prb_python *py, struct prb_mem *mem)
{
	struct prb_py_threads threads;
	struct prb_py_thread *thread;
	struct prb_error *err = prb_python_threads(py, mem, &threads);

	if (!err) {
		prb_vec_each (thread, &threads.list) {
			struct prb_py_frames frames;

			prb_error_destroy(prb_python_frames(py, mem, thread->address, &frames));
			prb_py_frames_deinit(&frames);
		}
		prb_py_threads_deinit(&threads);
	}
	prb_error_destroy(err);
}

static void ask_module(struct prb_module *module)
{
	prb_auto_str struct prb_str name = {};
	uint64_t address, size;

	(void)prb_module_build_id(module);
	prb_error_destroy(prb_module_section(module, ".eh_frame_hdr", &address, &size));
	prb_error_destroy(prb_module_symbol(module, "main", &address, &size));
	prb_error_destroy(prb_module_symbol_at(module, module->start, &name, &address));
}

static void ask_pythons(struct prb_modules *modules, struct prb_mem *mem)
{
	struct prb_pythons pythons;
	struct prb_python **py;
	struct prb_view *view;
	struct prb_error *err = prb_view_create(mem, &view);

	if (!err) {
		err = prb_pythons_find(modules, view, &pythons);
		prb_view_destroy(view);
	}
	if (!err) {
		prb_vec_each (py, &pythons.list)
			ask_python(*py, mem);
		prb_pythons_deinit(&pythons);
	}
	prb_error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct repeated_memory memory = repeat(&input, false);
	struct fact_target facts = fact_target(input, PRB_TARGET_SNAPSHOT, &memory.mem);
	struct prb_modules *modules;
	struct prb_module **module;

	memory.reads = 500;
	struct prb_error *err = prb_target_refresh_maps(&facts.target);
	prb_error_destroy(err);
	err = prb_modules_create(&facts.target, &modules);
	if (!err) {
		prb_vec_each (module, &modules->list)
			ask_module(*module);
		ask_pythons(modules, &memory.mem);
		prb_modules_destroy(modules);
	}
	prb_error_destroy(err);
	prb_maps_deinit(&facts.target.maps);
	prb_str_deinit(&facts.target.maps_text);
	return 0;
}
