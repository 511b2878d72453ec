/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rings, written by the agent's functions and read while they are written: each row has a checksum
 * of its cells and its text, which shows torn or invented rows. PROBING_KILLS is the number of
 * killed writers, and of killed readers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/inside/python.h"
#include "agent/rings/write.h"
#include "base/cleanup.h"
#include "agent/inside/python_table.h"
#include "rings/ring.h"

enum { COLUMNS = 4, THREADS = 64, ROWS = 2000, SMALL = 65536, SHORT_KILLS = 50 };

/* Without Python, which could request that the environment is ignored. */
struct prba_python_table prba_python;
bool prba_python_find(void)
{
	return false;
}

static char folder[] = "/tmp/probing-rings-XXXXXX";
static const struct prb_ring_range always = PRB_RING_ALWAYS;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
	(void)st;
	(void)kind;
	(void)walk;
	return remove(path);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	return setenv("PROBING_DATA_DIR", folder, 1);
}

static int teardown(void **state)
{
	(void)state;
	return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static intptr_t make(const char *table, uint64_t bytes)
{
	intptr_t ring = probing_ring_create(
		table, "writer integer, count integer, text text, sum integer", bytes);

	assert_true(ring > 0);
	return ring;
}

static int64_t sum_of(int64_t writer, int64_t count, const char *text, size_t length)
{
	uint64_t sum = (uint64_t)writer * 1000003 ^ (uint64_t)count;

	for (size_t i = 0; i < length; i++)
		sum = sum * 31 + (unsigned char)text[i];
	return (int64_t)sum;
}

/** Appends row @p count of a writer; some have a long text, which takes several slots. */
static int append(intptr_t ring, int64_t writer, int64_t count)
{
	char text[400];
	size_t length = count % 7 ? (size_t)(count % 5) : (size_t)(count % sizeof(text));

	memset(text, 'a' + (int)(count % 26), sizeof(text));
	const struct probing_cell cells[COLUMNS] = {
		{.kind = PROBING_INTEGER, .integer = writer},
		{.kind = PROBING_INTEGER, .integer = count},
		{.kind = PROBING_TEXT, .length = (uint32_t)length, .text = text},
		{.kind = PROBING_INTEGER, .integer = sum_of(writer, count, text, length)},
	};
	return probing_ring_append(ring, 0, cells);
}

static struct prb_ring *open_ring(const char *path)
{
	struct prb_ring *ring;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(prb_ring_open(fd, path, &ring));
	return ring;
}

/** Reads all rows, and checks the checksum of each; returns their number. */
static size_t check_rows(struct prb_ring *ring, int64_t *newest)
{
	struct prb_ring_item row;
	size_t count = 0;
	bool more;

	for (;;) {
		assert_null(prb_ring_next_chunk(ring, &always, &more));
		if (!more)
			break;
		while (prb_ring_next_row(ring, &row)) {
			assert_int_equal(row.cells[3],
					 sum_of((int64_t)row.cells[0], (int64_t)row.cells[1],
						row.texts[2], row.lengths[2]));
			if (newest)
				*newest = (int64_t)row.cells[1];
			count++;
		}
	}
	/* The row at the end of a truncated file may be incomplete. */
	assert_true(ring->damaged <= (ring->missing > 0));
	return count;
}

static size_t count_rows(const char *path)
{
	prb_auto_ring struct prb_ring *ring = open_ring(path);

	return check_rows(ring, NULL);
}

static void test_row(void **state)
{
	intptr_t handle = probing_ring_create("user.one", "a integer, b real [ms], c text", SMALL);
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_ring_item row;
	double half = 0;
	bool more;

	(void)state;
	assert_true(handle > 0);
	int64_t name = probing_ring_intern(handle, "name", 4);
	assert_true(name > 0);
	assert_int_equal(probing_ring_intern(handle, "name", 4), name);
	const struct probing_cell cells[] = {
		{.kind = PROBING_NULL},
		{.kind = PROBING_REAL, .real = 0.5},
		{.kind = PROBING_INTERNED, .integer = name},
	};
	assert_int_equal(probing_ring_append(handle, 5000000000, cells), 0);
	ring = open_ring(probing_ring_path(handle));
	assert_string_equal(ring->header.schema, "user");
	assert_string_equal(ring->header.name, "one");
	assert_string_equal(ring->columns[1].unit, "ms");
	assert_null(prb_ring_next_chunk(ring, &always, &more));
	assert_true(more && prb_ring_next_row(ring, &row));
	memcpy(&half, &row.cells[1], sizeof(half));
	assert_true(half == 0.5 && row.nulls == 1 && row.time == 5000000000);
	assert_int_equal(row.pid, getpid());
	assert_int_equal(row.tid, gettid());
	assert_int_equal(row.lengths[2], 4);
	assert_memory_equal(row.texts[2], "name", 4);
	assert_false(prb_ring_next_row(ring, &row));
}

static void test_refusals(void **state)
{
	static const char *const tables[] = {"one", "user.", ".one", "user.a/b", "user.../x", ""};
	static const char *const columns[] = {"",      "a", "a blob", "a integer,", "a integer [ms",
					      "9 text"};
	char large[60000] = "";
	const struct probing_cell wrong[] = {{.kind = PROBING_TEXT, .length = 1, .text = "x"}};
	const struct probing_cell too_long[] = {
		{.kind = PROBING_TEXT, .length = sizeof(large), .text = large}};

	(void)state;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		assert_int_equal(probing_ring_create(tables[i], "a integer", 0), -EINVAL);
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		assert_int_equal(probing_ring_create("user.x", columns[i], 0), -EINVAL);
	intptr_t ring = probing_ring_create("user.refusals", "a integer", SMALL);
	assert_int_equal(probing_ring_create("user.refusals", "a integer", SMALL), ring);
	assert_int_equal(probing_ring_create("user.refusals", "a real", SMALL), -EEXIST);
	assert_int_equal(probing_ring_append(ring, 0, wrong), -EINVAL);
	ring = probing_ring_create("user.texts", "a text", SMALL);
	assert_int_equal(probing_ring_append(ring, 0, too_long), -EMSGSIZE);
	assert_int_equal(probing_ring_append(99, 0, wrong), -EBADF);
}

struct writer {
	intptr_t ring;
	int64_t number;
};

static void *write_rows(void *argument)
{
	const struct writer *writer = argument;

	for (int i = 0; i < ROWS; i++)
		if (append(writer->ring, writer->number, i))
			return argument;
	return NULL;
}

static void test_threads(void **state)
{
	intptr_t handle = make("user.threads", 64 << 20);
	struct writer writers[THREADS];
	pthread_t threads[THREADS];
	void *failed;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){handle, i};
		assert_int_equal(pthread_create(&threads[i], NULL, write_rows, &writers[i]), 0);
	}
	for (int i = 0; i < 20; i++)
		count_rows(probing_ring_path(handle));
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(count_rows(probing_ring_path(handle)), THREADS * ROWS);
}

/* The reader sees only complete rows while the ring wraps again and again. */
static void test_wrap_around(void **state)
{
	struct writer writers[2] = {{make("user.wraps", SMALL), 1}};
	prb_auto_ring struct prb_ring *ring = NULL;
	pthread_t threads[2];
	int64_t newest = 0;

	(void)state;
	writers[1] = (struct writer){writers[0].ring, 2};
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, write_rows, &writers[i]),
					 0);
		for (int i = 0; i < 5; i++)
			count_rows(probing_ring_path(writers[0].ring));
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
	}
	ring = open_ring(probing_ring_path(writers[0].ring));
	assert_true(ring->dropped > 0);
	assert_true(check_rows(ring, &newest) > 0);
	assert_int_equal(newest, ROWS - 1);
}

/* A writer stopped in the middle of a row keeps its slot, even for a whole round. */
static void test_busy_slot(void **state)
{
	intptr_t handle = make("user.busy", SMALL);
	prb_auto_close int fd = open(probing_ring_path(handle), O_RDWR | O_CLOEXEC);
	struct prb_ring_header header;
	uint64_t busy = prb_ring_state(0, PRB_RING_BUSY), still;

	(void)state;
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	struct prb_ring_parts parts = prb_ring_parts(&header);
	assert_int_equal(pwrite(fd, &busy, sizeof(busy), (off_t)parts.slots), sizeof(busy));
	for (int i = 0; i < 20000; i++)
		assert_int_equal(append(handle, 1, i), 0);
	assert_int_equal(pread(fd, &still, sizeof(still), (off_t)parts.slots), sizeof(still));
	assert_int_equal(still, busy);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	assert_true(header.skipped > 0);
	assert_int_equal(header.lost, 0);
	assert_true(count_rows(probing_ring_path(handle)) > 0);
}

static void test_fork(void **state)
{
	intptr_t handle = make("user.forked", 16 << 20);
	struct writer writer = {handle, 1};
	pthread_t thread;
	int status;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, write_rows, &writer), 0);
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (!child)
			_exit(write_rows(&(struct writer){handle, 100 + i}) ? 1 : 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(count_rows(probing_ring_path(handle)), 11 * ROWS);
}

/** Kills a child that writes; exactly its appended rows must be there. */
static void kill_writer(intptr_t handle, int number, volatile int64_t *done)
{
	prb_auto_ring struct prb_ring *ring = NULL;
	int64_t newest = -1, written;
	pid_t child;
	int status;

	*done = 0;
	child = fork();
	if (!child) {
		for (int64_t n = 0; !append(handle, number, n); n++)
			*done = n;
		_exit(1);
	}
	usleep((useconds_t)(rand() % 3000));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	written = *done;
	ring = open_ring(probing_ring_path(handle));
	check_rows(ring, &newest);
	assert_int_equal(ring->overtaken, 0);
	if (written > 0)
		assert_true(newest >= written && newest <= written + 1);
}

static int kills_wanted(void)
{
	const char *wanted = getenv("PROBING_KILLS");

	return wanted ? atoi(wanted) : SHORT_KILLS;
}

/* Each kill may lose the slots of a row for good: some rings are small. */
static void test_killed_writer(void **state)
{
	int kills = kills_wanted();
	volatile int64_t *done =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	intptr_t handle = 0;

	(void)state;
	assert_ptr_not_equal(done, MAP_FAILED);
	for (int i = 0; i < kills; i++) {
		char table[32];

		snprintf(table, sizeof(table), "user.killed%d", i / SHORT_KILLS);
		handle = make(table, SMALL);
		kill_writer(handle, i, done);
	}
	munmap((void *)done, 4096);
}

static atomic_bool written_enough;

static void *write_until_enough(void *argument)
{
	struct writer *writer = argument;

	for (int64_t i = 0; !written_enough; i++)
		if (append(writer->ring, writer->number, i))
			return argument;
	return NULL;
}

/* Readers that are killed see only complete rows, and their writer is not affected. */
static void test_killed_reader(void **state)
{
	struct writer writer = {make("user.read", SMALL), 1};
	const char *path = probing_ring_path(writer.ring);
	int kills = kills_wanted();
	struct prb_ring_header header;
	pthread_t thread;
	void *failed;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, write_until_enough, &writer), 0);
	for (int i = 0; i < kills; i++) {
		pid_t child = fork();
		int status;

		if (!child) {
			setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failure ends the child */
			for (;;)
				count_rows(path);
		}
		usleep((useconds_t)(rand() % 3000));
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	written_enough = true;
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	assert_true(header.head > 0 && !header.lost && !header.skipped);
}

static void test_cut_file(void **state)
{
	intptr_t handle = make("user.cut", SMALL);
	prb_auto_free char *path = NULL;
	struct stat st;
	size_t last = SIZE_MAX;

	(void)state;
	for (int i = 0; i < 1000; i++)
		append(handle, 1, i);
	assert_true(asprintf(&path, "cp %s %s/cut", probing_ring_path(handle), folder) > 0);
	assert_int_equal(system(path), 0);
	snprintf(path, strlen(path), "%s/cut", folder);
	assert_int_equal(stat(path, &st), 0);
	for (off_t size = st.st_size; size > 0; size -= 4099) {
		prb_auto_error struct prb_error *err = NULL;
		prb_auto_ring struct prb_ring *ring = NULL;
		int fd;

		assert_int_equal(truncate(path, size), 0);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		err = prb_ring_open(fd, path, &ring);
		if (err)
			continue;
		size_t count = check_rows(ring, NULL);
		assert_true(count <= last);
		last = count;
	}
	assert_true(last < 1000);
}

/** A file may claim so many rows that slot numbers wrap to zero. */
static void test_too_many_rows(void **state)
{
	intptr_t handle = make("user.many", SMALL);
	uint64_t head = UINT64_MAX;
	struct prb_ring *ring = NULL;
	int fd = open(probing_ring_path(handle), O_RDWR | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &head, sizeof(head), offsetof(struct prb_ring_header, head)),
			 sizeof(head));
	prb_auto_error struct prb_error *err = prb_ring_open(fd, "many", &ring);
	assert_non_null(err);
	assert_int_equal((int)err->code, (int)PRB_ERROR_BAD_DATA);
}

static void test_ranges(void **state)
{
	intptr_t handle = make("user.ranges", 1 << 20);
	prb_auto_ring struct prb_ring *ring = NULL;
	const struct prb_ring_range recent = {INT64_MAX / 2, INT64_MAX};
	bool more;

	(void)state;
	for (int i = 0; i < ROWS; i++)
		append(handle, 1, i);
	ring = open_ring(probing_ring_path(handle));
	assert_null(prb_ring_next_chunk(ring, &recent, &more));
	assert_false(more);
	assert_true(ring->left_out > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_row),	      cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_threads),	      cmocka_unit_test(test_wrap_around),
		cmocka_unit_test(test_busy_slot),     cmocka_unit_test(test_fork),
		cmocka_unit_test(test_killed_writer), cmocka_unit_test(test_cut_file),
		cmocka_unit_test(test_ranges),	      cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_killed_reader),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
