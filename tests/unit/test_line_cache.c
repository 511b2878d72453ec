/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cache of a debugger's reads: every byte is right, however reads end, and calls are few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/debugger/line_cache.h"
#include "target/mem/view.h"

enum { BASE = 0x10000, PAGES = 64, SIZE = PAGES * PRB_PAGE_SIZE, MANY = 20000 };

/* Memory with a gap, and a reader with adjustable behaviour. */
static struct stub {
	unsigned char bytes[SIZE];
	size_t gap, gap_end; /* offsets of the missing part */
	bool whole;	     /* reads the whole request, or nothing */
	bool boasts;	     /* claims to have read more than requested */
	long call_ns;	     /* duration of each call */
	size_t calls, total;
} stub;

static size_t read_stub(void *context, uint64_t address, void *buffer, size_t length)
{
	size_t offset = (size_t)(address - BASE), there;

	(void)context;
	stub.calls++;
	if (stub.call_ns)
		nanosleep(&(struct timespec){.tv_nsec = stub.call_ns}, NULL);
	if (address < BASE || offset >= SIZE || (offset >= stub.gap && offset < stub.gap_end))
		return 0;
	there = offset < stub.gap ? stub.gap - offset : SIZE - offset;
	there = PRB_MIN(there, length);
	if (stub.whole && there < length)
		return 0;
	memcpy(buffer, stub.bytes + offset, there);
	stub.total += there;
	return stub.boasts && there == length ? length * 3 : there;
}

static struct prb_debugger debugger = {.read = read_stub};
static struct prb_line_cache cache;
static struct prb_maps maps; /* empty, unless a test adds mappings */

static int setup(void **state)
{
	(void)state;
	stub = (struct stub){.gap = SIZE, .gap_end = SIZE};
	srandom(1);
	for (size_t i = 0; i < SIZE; i++)
		stub.bytes[i] = (unsigned char)random();
	assert_null(prb_line_cache_init(&cache, &debugger, &maps));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	prb_line_cache_deinit(&cache);
	return 0;
}

static bool is_there(size_t offset, size_t length)
{
	return offset + length <= SIZE && (offset + length <= stub.gap || offset >= stub.gap_end);
}

static void check_random_reads(void)
{
	static unsigned char buffer[3 * PRB_PAGE_SIZE];

	for (int i = 0; i < MANY; i++) {
		size_t offset = (size_t)random() % SIZE;
		size_t length = (size_t)random() % (i % 10 ? 100 : sizeof(buffer));
		struct prb_error *err = prb_line_cache_read(&cache, BASE + offset, buffer, length);

		if (length && !is_there(offset, length)) {
			assert_non_null(err);
			assert_true(prb_error_catch(&err, PRB_ERROR_FAULT));
			continue;
		}
		assert_null(err);
		assert_memory_equal(buffer, stub.bytes + offset, length);
	}
}

static void test_every_byte_is_right(void **state)
{
	(void)state;
	check_random_reads();
	assert_true(stub.total <= SIZE + PRB_PAGE_SIZE);
}

/* The gap begins and ends within lines: the available part of those is read. */
static void test_around_what_is_not_there(void **state)
{
	(void)state;
	stub.gap = 20 * PRB_PAGE_SIZE + 100;
	stub.gap_end = 23 * PRB_PAGE_SIZE + 1000;
	check_random_reads();
	stub.whole = true;
	check_random_reads();
}

static void test_a_reader_that_reads_all_or_nothing(void **state)
{
	(void)state;
	stub.gap = 20 * PRB_PAGE_SIZE;
	stub.gap_end = 23 * PRB_PAGE_SIZE;
	stub.whole = true;
	check_random_reads();
}

static void test_a_reader_that_claims_too_much(void **state)
{
	(void)state;
	stub.boasts = true;
	check_random_reads();
}

static void test_addresses_at_the_end(void **state)
{
	struct prb_error *err;
	char byte[16];

	(void)state;
	for (uint64_t back = 1; back < 2 * PRB_PAGE_SIZE; back += 7) {
		err = prb_line_cache_read(&cache, 0 - back, byte, sizeof(byte));
		assert_true(prb_error_catch(&err, PRB_ERROR_FAULT));
	}
	assert_null(prb_line_cache_read(&cache, UINT64_MAX, byte, 0));
}

static void touch_each_page(void)
{
	char byte[8];

	for (size_t offset = 0; offset < SIZE; offset += PRB_PAGE_SIZE / 4)
		assert_null(prb_line_cache_read(&cache, BASE + offset, byte, sizeof(byte)));
}

static void test_where_calls_are_dear_pages_are_read(void **state)
{
	(void)state;
	stub.call_ns = 10000000; /* far above what a busy scheduler adds */
	touch_each_page();
	assert_true(stub.calls <= PAGES / 2 + 2 * PRB_LINE_TRIALS + 2);
}

/* Reads from @p start on, @p step bytes further each time; returns the number of calls. */
static size_t walk(size_t start, long step, size_t count)
{
	size_t before = stub.calls;
	unsigned char bytes[8];

	for (size_t i = 0; i < count; i++) {
		size_t offset = start + (size_t)step * i;

		assert_null(prb_line_cache_read(&cache, BASE + offset, bytes, sizeof(bytes)));
		assert_memory_equal(bytes, stub.bytes + offset, sizeof(bytes));
	}
	return stub.calls - before;
}

static void end_trials(void)
{
	for (int i = 0; i < 2 * PRB_LINE_TRIALS; i++)
		walk(SIZE - (size_t)(2 * i + 1) * PRB_PAGE_SIZE, 0, 1);
	cache.line_ns = 1;
	cache.far_ns = 8;
}

/* A remote stub, with which bytes cost nothing. */
static void be_far_away(void)
{
	end_trials();
	cache.line_ns = cache.far_ns = 1000000;
}

static void test_who_goes_on_to_neighbours_gets_more_with_each_call(void **state)
{
	(void)state;
	end_trials();
	assert_true(walk(0, 100, 4 * PRB_PAGE_SIZE / 100) <= 8);
	assert_true(walk(12 * PRB_PAGE_SIZE - 8, -100, 4 * PRB_PAGE_SIZE / 100) <= 8);
	stub.total = 0;
	assert_int_equal(walk(13 * PRB_PAGE_SIZE, 3 * PRB_LINE_SIZE, 8), 8);
	assert_int_equal(stub.total, 8 * PRB_LINE_SIZE);
}

/* Bytes cost nearly nothing: two pages at once, unless the other one is missing. */
static void test_the_other_page_may_not_be_there(void **state)
{
	(void)state;
	be_far_away();
	stub.whole = true;
	stub.gap = 11 * PRB_PAGE_SIZE;
	stub.gap_end = 13 * PRB_PAGE_SIZE;
	assert_int_equal(walk(6 * PRB_PAGE_SIZE, PRB_PAGE_SIZE / 4, 8), 1);
	assert_int_equal(walk(10 * PRB_PAGE_SIZE, PRB_PAGE_SIZE / 4, 4), 2);
	assert_int_equal(walk(14 * PRB_PAGE_SIZE - 8, 0, 1), 2);
}

/* The frames of a thread lie anywhere in their chunk: half of two windows would be two requests. */
static void test_what_lies_across_windows_takes_no_more_than_one(void **state)
{
	unsigned char bytes[6000];
	size_t start = 8 * PRB_PAGE_SIZE - sizeof(bytes) / 2;

	(void)state;
	be_far_away();
	stub.calls = stub.total = 0;
	assert_null(prb_line_cache_read(&cache, BASE + start, bytes, sizeof(bytes)));
	assert_memory_equal(bytes, stub.bytes + start, sizeof(bytes));
	assert_int_equal(stub.calls, 1);
	assert_int_equal(stub.total, 2 * PRB_PAGE_SIZE);
}

/* Unmapped neighbours are not read ahead: that costs a request, and another one without them. */
static void test_what_is_mapped_nowhere_is_not_asked_for(void **state)
{
	char text[100];

	(void)state;
	be_far_away();
	stub.whole = true;
	stub.gap = 8 * PRB_PAGE_SIZE;
	stub.gap_end = 9 * PRB_PAGE_SIZE;
	snprintf(text, sizeof(text),
		 "%zx-%zx rw-p 00000000 00:00 0\n%zx-%zx rw-p 00000000 00:00 0\n", (size_t)BASE,
		 BASE + stub.gap, BASE + stub.gap_end, (size_t)BASE + SIZE);
	assert_null(prb_maps_parse(text, &maps));
	assert_int_equal(walk(stub.gap - 8, 0, 1), 1);
	assert_int_equal(walk(stub.gap_end, 0, 1), 1);
	prb_maps_deinit(&maps);
	maps = (struct prb_maps){};
}

/* The memory ahead may be missing. */
static void test_what_goes_on_may_end(void **state)
{
	(void)state;
	end_trials();
	stub.gap = 10 * PRB_PAGE_SIZE + PRB_LINE_SIZE;
	stub.gap_end = 12 * PRB_PAGE_SIZE - PRB_LINE_SIZE;
	for (int whole = 0; whole < 2; whole++) {
		stub.whole = whole;
		walk(stub.gap - 8, -100, 40);
		walk(stub.gap - PRB_PAGE_SIZE, 100, 40);
		walk(stub.gap_end + PRB_PAGE_SIZE - 8, -100, 40);
		prb_line_cache_deinit(&cache);
		assert_null(prb_line_cache_init(&cache, &debugger, &maps));
		stub.whole = false;
		end_trials();
	}
}

static void test_what_is_kept_is_bounded(void **state)
{
	size_t before;
	char byte;

	(void)state;
	assert_null(prb_line_cache_read(&cache, BASE, &byte, 1));
	before = stub.calls;
	assert_null(prb_line_cache_read(&cache, BASE, &byte, 1));
	assert_int_equal(stub.calls, before);
	cache.count = PRB_LINES_MAX;
	assert_null(prb_line_cache_read(&cache, BASE + SIZE / 2, &byte, 1));
	assert_true(cache.count <= PRB_PAGE_SIZE / PRB_LINE_SIZE);
	assert_null(prb_line_cache_read(&cache, BASE, &byte, 1));
	assert_int_equal(byte, (char)stub.bytes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_byte_is_right, setup, teardown),
		cmocka_unit_test_setup_teardown(test_around_what_is_not_there, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_reader_that_reads_all_or_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_reader_that_claims_too_much, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_addresses_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_where_calls_are_dear_pages_are_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_who_goes_on_to_neighbours_gets_more_with_each_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_other_page_may_not_be_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_what_lies_across_windows_takes_no_more_than_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_mapped_nowhere_is_not_asked_for, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_goes_on_may_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_kept_is_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
