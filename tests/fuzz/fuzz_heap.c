/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as objects of the garbage collector: its lists, the pages of mimalloc, objects and
 * types. The input chooses a version, the address of the interpreter and members of the layout with
 * other offsets; the rest is memory, repeated over the whole address space.
 */
#include "tests/fuzz/builds.h"

#include "values/greenlets.h"
#include "values/heap/heap.h"

enum { OBJECTS = 200, NAMES = 20, READS = 500 };

/** A walk ends only where memory does. */
static void walk(struct prb_python *py, struct prb_mem *mem, uint64_t interp)
{
	struct prb_heap_object object;
	struct prb_heap *heap;
	bool more = true;
	struct prb_error *err = prb_heap_create(py, mem, interp, &heap);

	if (err) {
		prb_error_destroy(err);
		return;
	}
	for (unsigned i = 0; !err && i < OBJECTS; i++) {
		const char *name;

		err = prb_heap_next(heap, &object, &more);
		if (err || !more)
			break;
		if (object.generation > 3 || object.refcount < -1)
			abort();
		if (i < NAMES)
			err = prb_heap_type_name(heap, object.type, &name);
		if (!err && i < NAMES && !strlen(name))
			abort();
	}
	prb_error_destroy(err);
	prb_heap_destroy(heap);
}

static void sum_up(struct prb_python *py, struct prb_mem *mem, uint64_t interp)
{
	struct prb_heap_types types;
	struct prb_error *err = prb_heap_types_read(py, mem, interp, &types);
	const struct prb_heap_type *type;

	if (!err) {
		prb_vec_each (type, &types.list)
			if (!type->name || !type->count)
				abort();
		prb_heap_types_deinit(&types);
	}
	prb_error_destroy(err);
}

/** Reads each greenlet found, and another object as a greenlet. */
static void read_greenlets(struct prb_python *py, struct prb_mem *mem, uint64_t interp)
{
	struct prb_greenlets found = {}, one = {};
	struct prb_error *err = prb_greenlets_read(py, mem, interp, 0, &found);
	struct prb_greenlet *greenlet = err ? NULL : prb_vec_push(&one.list);

	prb_error_destroy(err);
	if (greenlet) {
		*greenlet = (struct prb_greenlet){.address = interp, .type_address = py->runtime};
		prb_error_destroy(prb_greenlet_stack(py, mem, greenlet));
	}
	prb_greenlets_deinit(&one);
	prb_greenlets_deinit(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct prb_python py = {.layout = input_layout(&input)};
	unsigned flags = input_u8(&input);
	uint64_t interp = (uint64_t)input_u8(&input) * 16;

	py.runtime = py.gc_generation0 = (uint64_t)input_u8(&input) * 16;
	input_move_fields(&input, &py.layout, flags >> 1 & 7);

	struct repeated_memory memory = repeat(&input, flags & 1);
	struct fact_target facts = fact_target((struct input){}, PRB_TARGET_SNAPSHOT, &memory.mem);

	memory.reads = READS;
	py.target = &facts.target;
	walk(&py, &memory.mem, interp);
	/* A walk through endless memory would not end. */
	memory.bounded = true;
	memory.reads = READS;
	sum_up(&py, &memory.mem, interp);
	memory.reads = READS;
	read_greenlets(&py, &memory.mem, interp);
	return 0;
}
