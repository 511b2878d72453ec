/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of JIT code in jitdump files: whose file it is, and what reading costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/native/jitdump.h"

enum { PID = 42, LOADS = 20000, AT_ONCE = 1 << 14, SIZE = 16 };

static struct prb_jitdump dump;

static void append(const void *bytes, size_t size)
{
	assert_int_equal(write(dump.names.fd, bytes, size), size);
}

static void begin(uint32_t pid)
{
	const uint32_t header[10] = {0x4A695444, 1, sizeof(header), 62, 0, pid};

	prb_jitdump_init(&dump);
	dump.pid = PID;
	dump.names.fd = memfd_create("jitdump", MFD_CLOEXEC);
	assert_true(dump.names.fd >= 0);
	append(header, sizeof(header));
}

static void load(uint64_t address, uint64_t index)
{
	const struct {
		uint32_t id, size;
		uint64_t timestamp;
		uint32_t pid, tid;
		uint64_t vma, address, size_of_code, index;
		char name[8];
	} record = {0, sizeof(record), 0, PID, PID, address, address, SIZE, index, "made"};

	append(&record, sizeof(record));
}

static void move(uint64_t from, uint64_t to, uint64_t index)
{
	const struct {
		uint32_t id, size;
		uint64_t timestamp;
		uint32_t pid, tid;
		uint64_t vma, old, address, size_of_code, index;
	} record = {1, sizeof(record), 0, PID, PID, to, from, to, SIZE, index};

	append(&record, sizeof(record));
}

static int teardown(void **state)
{
	(void)state;
	prb_jitdump_deinit(&dump);
	return 0;
}

static void test_many_records_are_read_in_parts(void **state)
{
	(void)state;
	begin(PID);
	for (uint64_t i = 0; i < LOADS; i++)
		load(i * SIZE, i);
	assert_null(prb_jitdump_read(&dump));
	assert_int_equal(dump.names.symbols.count, AT_ONCE);
	assert_null(prb_perf_map_find(&dump.names, (LOADS - 1) * SIZE));
	assert_null(prb_jitdump_read(&dump));
	assert_int_equal(dump.names.symbols.count, LOADS);
	assert_string_equal(prb_perf_map_find(&dump.names, (LOADS - 1) * SIZE), "made");
}

static void test_moved_code_shares_its_name(void **state)
{
	(void)state;
	begin(PID);
	load(0x1000, 7);
	assert_null(prb_jitdump_read(&dump));
	const size_t length = dump.names.text.count;

	for (uint64_t i = 1; i <= 100; i++)
		move(0x1000 * i, 0x1000 * (i + 1), 7);
	move(0x1000, 0x900000, 8);
	assert_null(prb_jitdump_read(&dump));
	assert_string_equal(prb_perf_map_find(&dump.names, 0x1000 * 101), "made");
	assert_null(prb_perf_map_find(&dump.names, 0x900000));
	assert_int_equal(dump.names.text.count, length);
}

static void test_of_another_process(void **state)
{
	(void)state;
	begin(PID + 1);
	load(0x1000, 7);
	assert_null(prb_jitdump_read(&dump));
	assert_true(dump.bad);
	assert_null(prb_perf_map_find(&dump.names, 0x1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_many_records_are_read_in_parts, teardown),
		cmocka_unit_test_teardown(test_moved_code_shares_its_name, teardown),
		cmocka_unit_test_teardown(test_of_another_process, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
