/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Walks over the collector's lists in memory made by hand: valid lists, and lists as in a process
 * that changes them, or in a damaged core. A walk always ends, and reports missing objects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/heap/heap.h"
#include "python/layout/layout.h"
#include "target/mem/blocks.h"

enum {
	BASE = 0x100000,
	SIZE = 1 << 20,
	INTERP = BASE + 64,
	TYPE = BASE + 0x8000, /* the type of all objects, including itself */
	NAME = BASE + 0x9000,
	NODES = BASE + 0x10000,
	NODE_SIZE = 64,
	OBJECTS = 1000,
};

#define PY_TYPE (UINT64_C(1) << 31)

static struct source {
	struct prb_mem mem;
	size_t reads;
	uint64_t hole;	 /* a missing page; 0: none */
	uint64_t random; /* not 0: some of the bytes read are changed */
	uint8_t bytes[SIZE];
} source;

static struct prb_python py;

static uint64_t next_random(void)
{
	source.random ^= source.random << 13;
	source.random ^= source.random >> 7;
	source.random ^= source.random << 17;
	return source.random;
}

static struct prb_error *read_source(struct prb_mem *mem, uint64_t address, void *buffer,
				     size_t length)
{
	(void)mem;
	source.reads++;
	if (address < BASE || !prb_inside(address - BASE, length, SIZE) ||
	    (source.hole && address < source.hole + 4096 && address + length > source.hole))
		return prb_error_fault(address, length);
	memcpy(buffer, source.bytes + (address - BASE), length);
	if (source.random)
		for (size_t at = next_random() % 4000; at < length; at += 1 + next_random() % 4000)
			((uint8_t *)buffer)[at] ^= (uint8_t)(1 << next_random() % 8);
	return NULL;
}

static const struct prb_mem_ops source_ops = {.read = read_source};

static void put(uint64_t address, uint64_t value)
{
	memcpy(source.bytes + (address - BASE), &value, sizeof(value));
}

static uint64_t node(size_t index)
{
	return NODES + index * NODE_SIZE;
}

static uint64_t head(unsigned generation)
{
	return INTERP + (uint64_t)(py.layout.interp_gc + py.layout.gc_generations) +
	       generation * (uint64_t)py.layout.generation_size;
}

static void link_nodes(uint64_t first, uint64_t second)
{
	put(first, second);
	put(second + 8, first | 1); /* with a flag, like the collector's */
}

static void make_type(void)
{
	const struct prb_layout *l = &py.layout;

	put(TYPE + (uint64_t)l->object_type, TYPE);
	put(TYPE + (uint64_t)l->type_flags, PY_TYPE);
	put(TYPE + (uint64_t)l->type_basicsize, 40);
	put(TYPE + (uint64_t)l->type_name, NAME);
	memcpy(source.bytes + (NAME - BASE), "some.Thing", sizeof("some.Thing"));
}

/* OBJECTS objects in the oldest generation, none in the others. */
static int setup(void **state)
{
	uint64_t last;

	(void)state;
	memset(&source, 0, sizeof(source));
	source.mem.ops = &source_ops;
	py = (struct prb_python){.layout = *prb_layout_table(0x030c, false, false)};
	py.layout.behaviour = prb_behaviour_find(py.layout.version);
	make_type();
	for (unsigned i = 0; i <= PRB_GC_GENERATIONS; i++) {
		last = i < PRB_GC_GENERATIONS
			       ? head(i)
			       : INTERP + (uint64_t)(py.layout.interp_gc + py.layout.gc_permanent);
		link_nodes(last, last);
	}
	put(INTERP + (uint64_t)(py.layout.interp_gc + py.layout.gc_generation0), head(0));
	last = head(2);
	for (size_t i = 0; i < OBJECTS; i++) {
		uint64_t object = node(i) + (uint64_t)py.layout.gc_head_size;

		put(object + (uint64_t)py.layout.object_refcnt, 3);
		put(object + (uint64_t)py.layout.object_type, TYPE);
		link_nodes(last, node(i));
		last = node(i);
	}
	link_nodes(last, head(2));
	return 0;
}

/* Walks the heap; returns the number of objects. *doubt: some were missing. */
static size_t walk(bool *doubt)
{
	struct prb_heap *heap;
	struct prb_heap_object object;
	bool more = true;
	size_t count = 0;

	*doubt = true;
	prb_auto_error struct prb_error *err = prb_heap_create(&py, &source.mem, INTERP, &heap);
	if (err)
		return 0;
	while (!err) {
		err = prb_heap_next(heap, &object, &more);
		if (err || !more)
			break;
		count++;
		assert_true(count <= 100 * OBJECTS);
	}
	*doubt = err || prb_heap_doubt(heap) != NULL;
	prb_heap_destroy(heap);
	return count;
}

static void test_whole(void **state)
{
	struct prb_heap_types types;

	(void)state;
	assert_null(prb_heap_types_read(&py, &source.mem, INTERP, &types));
	assert_null(types.doubt);
	assert_int_equal(types.list.count, 1);
	assert_string_equal(types.list.items[0].name, "some.Thing");
	assert_int_equal(types.list.items[0].count, OBJECTS);
	assert_int_equal(types.list.items[0].bytes, OBJECTS * (40 + 16));
	assert_int_equal(types.list.items[0].references, OBJECTS * 3);
	prb_heap_types_deinit(&types);
}

/* While back pointers are invalid, a list may lead into a circle. */
static void test_circle(void **state)
{
	bool doubt;

	(void)state;
	put(INTERP + (uint64_t)(py.layout.interp_gc + py.layout.gc_collecting), 1);
	put(node(700), node(200));
	size_t count = walk(&doubt);
	assert_true(count >= 700 && count <= 4 * OBJECTS);
	assert_true(doubt);
}

static void test_broken_links(void **state)
{
	static const uint64_t targets[] = {0, 8, 3, UINT64_MAX - 7, BASE + SIZE - 8, NODES + 4, 1};
	bool doubt;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(targets); i++) {
		setup(state);
		put(node(300), targets[i]);
		assert_int_equal(walk(&doubt), 301);
		assert_true(doubt);
	}
}

static void test_broken_objects(void **state)
{
	bool doubt;

	(void)state;
	put(node(300) + (uint64_t)(py.layout.gc_head_size + py.layout.object_type), NAME);
	assert_int_equal(walk(&doubt), 300);
	assert_true(doubt);
}

/* Objects that were moved to another generation lead to its head. */
static void test_astray(void **state)
{
	bool doubt;

	(void)state;
	link_nodes(node(499), head(1));
	assert_int_equal(walk(&doubt), 500);
	assert_true(doubt);
}

static void test_hole(void **state)
{
	bool doubt;

	(void)state;
	source.hole = node(640) & ~UINT64_C(4095);
	size_t count = walk(&doubt);
	assert_true(count > 500 && count < 641);
	assert_true(doubt);
}

/* The collector uses the back pointers for other data while it works. */
static void test_collecting(void **state)
{
	bool doubt;

	(void)state;
	put(INTERP + (uint64_t)(py.layout.interp_gc + py.layout.gc_collecting), 1);
	for (size_t i = 0; i < OBJECTS; i++)
		put(node(i) + 8, 0x1234);
	assert_int_equal(walk(&doubt), OBJECTS);
	assert_true(doubt);
}

/* An object is freed between the read of its block and of the next one's. */
static void test_removed_behind_our_back(void **state)
{
	struct prb_heap_object object;
	struct prb_heap *heap;
	bool more = true;
	size_t count = 0;

	(void)state;
	assert_null(prb_heap_create(&py, &source.mem, INTERP, &heap));
	for (; count < 500; count++)
		assert_null(prb_heap_next(heap, &object, &more));
	/* 497 to 503 are freed, and their memory is garbage; 500 to 503 were not visited yet. */
	link_nodes(node(496), node(504));
	memset(source.bytes + (node(497) - BASE), 0xdb, 7 * NODE_SIZE);
	/* Flush the cache: reading other blocks drops them. */
	for (uint64_t at = BASE; at < BASE + SIZE; at += 4096) {
		uint8_t byte;

		assert_null(prb_mem_read_u8(prb_heap_mem(heap), at, &byte));
	}
	for (;;) {
		assert_null(prb_heap_next(heap, &object, &more));
		if (!more)
			break;
		count++;
	}
	/* If the cache still had them, they are reported as of an instant ago. */
	assert_true(count == OBJECTS - 4 || count == OBJECTS);
	assert_null(prb_heap_doubt(heap));
	prb_heap_destroy(heap);
}

static void test_lies(void **state)
{
	unsigned rounds = getenv("PROBING_LONG") ? 2000 : 100;
	bool doubt;

	(void)state;
	for (unsigned i = 0; i < rounds; i++) {
		source.random = 88172645463325252u + i;
		walk(&doubt);
	}
}

/* A layout that an old snapshot, or a stripped build, leaves unknown. */
static void test_unknown_layout(void **state)
{
	struct prb_gc gc;

	(void)state;
	py.layout.interp_gc = PRB_ABSENT;
	struct prb_error *err = prb_gc_read(&py, &source.mem, INTERP, &gc);
	assert_true(prb_error_catch(&err, PRB_ERROR_UNSUPPORTED));
	assert_null(err);
}

static void test_blocks(void **state)
{
	struct prb_blocks *blocks;
	uint64_t value;

	(void)state;
	assert_null(prb_blocks_create(&source.mem, &blocks));
	put(NODES, 42);
	assert_null(prb_mem_read_u64(prb_blocks_mem(blocks), NODES, &value));
	assert_int_equal(value, 42);
	size_t reads = source.reads;
	put(NODES, 43);
	assert_null(prb_mem_read_u64(prb_blocks_mem(blocks), NODES, &value));
	assert_int_equal(value, 42); /* from the cache */
	assert_int_equal(source.reads, reads);
	prb_blocks_forget(blocks, NODES + 8);
	assert_null(prb_mem_read_u64(prb_blocks_mem(blocks), NODES, &value));
	assert_int_equal(value, 43);
	/* Across the end of a page, also of pages adjacent in the cache. */
	put(NODES + 0x1000 - 4, 0x1122334455667788);
	prb_blocks_forget(blocks, NODES);
	assert_non_null(prb_blocks_at(blocks, NODES + 0x1000 - 4, 8));
	assert_null(prb_blocks_at(blocks, NODES + 0x10000 - 4, 8));
	assert_null(prb_mem_read_u64(prb_blocks_mem(blocks), NODES + 0x1000 - 4, &value));
	assert_int_equal(value, 0x1122334455667788);
	/* Sequential reads get ever larger pieces, other reads single pages. */
	prb_blocks_drop(blocks);
	reads = source.reads;
	for (uint64_t at = NODES; at < NODES + 0x8000; at += 0x1000)
		assert_non_null(prb_blocks_at(blocks, at, 8));
	assert_int_equal(source.reads, reads + 4);
	assert_non_null(prb_blocks_at(blocks, NODES + 0xf000, 8));
	assert_int_equal(source.reads, reads + 5);
	/* A missing page, also when it is read together with others. */
	prb_blocks_drop(blocks);
	source.hole = NODES + 0x2000;
	struct prb_error *err = prb_mem_read_u64(prb_blocks_mem(blocks), NODES + 0x2000, &value);
	assert_true(prb_error_catch(&err, PRB_ERROR_FAULT));
	prb_blocks_forget(blocks, NODES + 0x2000);
	assert_non_null(prb_blocks_at(blocks, NODES, 8));
	assert_non_null(prb_blocks_at(blocks, NODES + 0x1000, 8));
	assert_null(prb_blocks_at(blocks, NODES + 0x2000, 8));
	assert_non_null(prb_blocks_at(blocks, NODES + 0x3000, 8));
	prb_blocks_destroy(blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_whole, setup),
		cmocka_unit_test_setup(test_circle, setup),
		cmocka_unit_test_setup(test_broken_links, setup),
		cmocka_unit_test_setup(test_broken_objects, setup),
		cmocka_unit_test_setup(test_astray, setup),
		cmocka_unit_test_setup(test_hole, setup),
		cmocka_unit_test_setup(test_collecting, setup),
		cmocka_unit_test_setup(test_removed_behind_our_back, setup),
		cmocka_unit_test_setup(test_lies, setup),
		cmocka_unit_test_setup(test_unknown_layout, setup),
		cmocka_unit_test_setup(test_blocks, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
