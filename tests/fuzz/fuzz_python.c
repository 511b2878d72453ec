/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as the memory of an interpreter: threads, frames, code, lines, variables, names. The
 * input chooses a version, then members of its layout with other offsets (as a _Py_DebugOffsets,
 * debug information or a snapshot may claim); the rest is memory, repeated over the whole address
 * space.
 */
#include "tests/fuzz/builds.h"

#include "python/layout/debug_offsets.h"
#include "python/runtime/entered.h"
#include "python/runtime/locks.h"
#include "python/python.h"

enum { FRAMES_ASKED = 4, THREADS_ASKED = 4, DEBUG_OFFSETS = 0x10 };

static void ask_frame(struct prb_python *py, struct prb_mem *mem, const struct prb_py_frame *frame)
{
	struct prb_py_location location;
	struct prb_py_locals locals;
	struct prb_py_entered entered;
	struct prb_py_lock lock;
	struct prb_py_code code;
	uint64_t globals;
	char *name = NULL;

	struct prb_error *err = prb_python_code(py, mem, frame->code, &code);
	if (!err) {
		prb_error_destroy(prb_python_qualname(py, mem, frame, &code, &name));
		free(name);
		prb_py_code_deinit(&code);
	}
	prb_error_destroy(err);
	prb_error_destroy(prb_python_location(py, mem, frame, &location));
	prb_error_destroy(prb_python_lock(py, mem, frame, 8, &lock));
	prb_error_destroy(prb_python_entered(py, mem, frame, &entered));

	err = prb_python_locals(py, mem, frame, &locals);
	if (!err)
		prb_py_locals_deinit(&locals);
	prb_error_destroy(err);

	err = prb_python_globals(py, mem, frame, &globals);
	name = NULL;
	if (!err)
		err = prb_python_module_name(py, mem, globals, &name);
	if (!err)
		free(name);
	prb_error_destroy(err);
}

static void ask_frames(struct prb_python *py, struct prb_mem *mem, uint64_t tstate)
{
	struct prb_py_frames frames;
	struct prb_py_frame *frame;
	unsigned asked = 0;

	prb_error_destroy(prb_python_frames(py, mem, tstate, &frames));
	prb_vec_each (frame, &frames.list) {
		ask_frame(py, mem, frame);
		if (++asked == FRAMES_ASKED)
			break;
	}
	prb_py_frames_deinit(&frames);
}

static bool all_names(void *context, uint64_t pthread)
{
	(void)context;
	(void)pthread;
	return true;
}

static void ask_threads(struct prb_python *py, struct prb_mem *mem)
{
	struct prb_py_thread_names names;
	struct prb_py_threads threads;
	struct prb_error *err = prb_python_threads(py, mem, &threads);
	struct prb_py_thread *thread;
	struct prb_view *view;
	unsigned asked = 0;

	if (!err) {
		prb_vec_each (thread, &threads.list) {
			ask_frames(py, mem, thread->address);
			if (++asked == THREADS_ASKED)
				break;
		}
		prb_py_threads_deinit(&threads);
	}
	prb_error_destroy(err);

	err = prb_view_create(mem, &view);
	if (!err) {
		err = prb_python_thread_names(py, view, 0, all_names, NULL, &names);
		if (!err)
			prb_py_thread_names_deinit(&names);
		prb_view_destroy(view);
	}
	prb_error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct prb_python py = {.layout = input_layout(&input)};
	unsigned flags = input_u8(&input);

	py.runtime = (uint64_t)input_u8(&input) * 16;
	py.interp_head = (uint64_t)input_u8(&input) * 16;
	input_move_fields(&input, &py.layout, flags >> 1 & 7);

	struct repeated_memory memory = repeat(&input, flags & 1);
	struct fact_target facts = fact_target((struct input){}, PRB_TARGET_SNAPSHOT, &memory.mem);
	py.target = &facts.target;

	struct prb_error *err = NULL;
	if (flags & DEBUG_OFFSETS)
		err = prb_debug_offsets_read(&memory.mem, py.runtime, &py.layout);
	if (!err) {
		ask_threads(&py, &memory.mem);
		ask_frames(&py, &memory.mem, py.runtime);
	}
	prb_error_destroy(err);
	return 0;
}
