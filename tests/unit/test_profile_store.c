/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recordings survive writing and reading. */
#include "tests/unit/profile_made.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "profile/store/chunk.h"
#include "profile/store/load/load.h"
#include "profile/store/write/store.h"
#include "profile/recording/range.h"
#include "profile/recording/steps.h"
#include "tests/unit/in_range.h"

static char folder[] = "/tmp/probing-store-XXXXXX";
static char path[100];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/made.profile", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static struct prb_recording *make(void)
{
	struct prb_recording *r;
	uint32_t main_thread, worker;

	assert_null(prb_recording_create(&r));
	r->pid = 4242;
	r->rate = 100;
	r->started = 1700000000.25;
	r->process_cpu = 77000000;
	r->command = strdup("python3 train.py");
	r->python = strdup("3.12.1");
	main_thread = made_thread(r, 4242, "python3");
	worker = made_thread(r, 4250, "wor\"ker\x1b[2J");
	r->threads.items[worker].name = strdup("wörker-0");
	r->threads.items[worker].ended = true;
	made_run(r, main_thread, made_stack(r, "main/load", 5), 10);
	made_run(r, worker, made_stack(r, "main/load", 6), 20);
	made_run(r, main_thread, made_stack(r, "main", 7), 5);
	r->runs.items[1].state = PRB_RUN_ASLEEP;
	r->runs.items[1].samples = 300;
	r->runs.items[1].cpu_squares = 12345.6789;
	r->runs.items[2].queue = 123456789;
	r->cost = (struct prb_profile_cost){7,	 38.5, 90.25, 140, 300.125, 12345,
					    100, 3,    4,     1,   2,	    r->duration};
	return r;
}

static void expect_same_runs(const struct prb_recording *a, const struct prb_recording *b)
{
	assert_int_equal(a->runs.count, b->runs.count);
	for (size_t i = 0; i < a->runs.count; i++) {
		const struct prb_run *x = &a->runs.items[i], *y = &b->runs.items[i];

		assert_int_equal(x->thread, y->thread);
		assert_int_equal(x->stack, y->stack);
		assert_int_equal(x->state, y->state);
		assert_int_equal(x->samples, y->samples);
		assert_int_equal(x->reads, y->reads);
		assert_int_equal(x->begin, y->begin);
		assert_int_equal(x->wall, y->wall);
		assert_int_equal(x->cpu, y->cpu);
		assert_int_equal(x->queue, y->queue);
		assert_true(x->cpu_squares == y->cpu_squares);
	}
}

static void expect_same(const struct prb_recording *a, const struct prb_recording *b)
{
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->duration, b->duration);
	assert_int_equal(a->process_cpu, b->process_cpu);
	assert_true(a->started == b->started && a->rate == b->rate);
	assert_string_equal(a->command, b->command);
	assert_string_equal(a->python, b->python);
	assert_memory_equal(&a->cost, &b->cost, sizeof(a->cost));
	assert_int_equal(a->threads.count, b->threads.count);
	for (size_t i = 0; i < a->threads.count; i++) {
		const struct prb_profile_thread *x = &a->threads.items[i],
						*y = &b->threads.items[i];

		assert_int_equal(x->tid, y->tid);
		assert_string_equal(x->os_name, y->os_name);
		assert_string_equal(x->name ? x->name : "-", y->name ? y->name : "-");
		assert_int_equal(x->cpu, y->cpu);
		assert_int_equal(x->ended, y->ended);
	}
	expect_same_runs(a, b);
}

/* The output of both is the same, in all formats and views. */
static void expect_same_files(const struct prb_recording *a, const struct prb_recording *b)
{
	for (unsigned i = 0; prb_profile_formats[i]; i++)
		for (unsigned view = 0; view < 4; view++) {
			const struct prb_profile_choice choice = {
				.weight = view & 1 ? PRB_WEIGHT_WALL : PRB_WEIGHT_CPU,
				.lines = view & 2,
			};
			size_t x_length, y_length;
			char *x = made_text(a, &choice, prb_profile_formats[i], &x_length);
			char *y = made_text(b, &choice, prb_profile_formats[i], &y_length);

			assert_int_equal(x_length, y_length);
			assert_memory_equal(x, y, x_length);
			free(x);
			free(y);
		}
}

static void test_there_and_back(void **state)
{
	struct prb_recording *r = make(), *back;
	struct prb_store *store;
	struct stat st;

	(void)state;
	assert_null(prb_store_create(path, &store));
	assert_int_equal(access(path, F_OK), -1);
	assert_null(prb_store_begin(store, r));
	r->end = PRB_PROFILE_INTERRUPTED;
	assert_null(prb_store_finish(store, r));
	prb_store_destroy(store);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_null(prb_profile_load(path, true, &back));
	prb_runs_sort(r->runs.items, r->runs.count);
	expect_same(r, back);
	expect_same_files(r, back);
	prb_recording_destroy(back);
	prb_recording_destroy(r);
}

/* Puts a recording. The writing thread must keep up; its failure is returned by the next call. */
static void put(struct prb_store *store, const struct prb_recording *r, int64_t now, bool *ret_cut)
{
	while (!prb_store_is_there(store))
		usleep(100);
	assert_null(prb_store_put(store, r, now, ret_cut));
}

/* Chunk by chunk, as in a long recording. */
static void test_chunks(void **state)
{
	const int64_t minute = 60000000000;
	struct prb_recording *r = make(), *all, *back;
	struct prb_store *store;
	size_t chunks = 0;

	(void)state;
	assert_null(prb_recording_create(&all));
	assert_null(prb_store_create(path, &store));
	assert_null(prb_store_begin(store, r));
	for (int64_t now = minute; chunks < 5; now += minute / 10) {
		bool cut;

		made_run(r, 0, made_stack(r, now % 7 ? "main/other" : "main", (int32_t)(now % 97)),
			 1000);
		put(store, r, now, &cut);
		if (!cut)
			continue;
		for (size_t i = 0; i < r->runs.count; i++)
			*prb_vec_push(&all->runs) = r->runs.items[i];
		r->runs.count = 0;
		chunks++;
	}
	assert_null(prb_store_finish(store, r));
	prb_store_destroy(store);
	assert_null(prb_profile_load(path, true, &back));
	/* Complete chunks are in the order of threads. */
	prb_runs_sort(all->runs.items, all->runs.count);
	prb_runs_sort(back->runs.items, back->runs.count);
	expect_same_runs(all, back);
	prb_recording_destroy(all);
	prb_recording_destroy(back);
	prb_recording_destroy(r);
}

static int64_t sum_of_walls(const struct prb_recording *r)
{
	const struct prb_run *run;
	int64_t sum = 0;

	prb_vec_each (run, &r->runs)
		sum += run->wall;
	return sum;
}

/* Of many minutes the last ones are kept, and at most a chunk before them. */
static void test_ring(void **state)
{
	const int64_t minute = 60000000000, ring = 3 * minute / 2;
	struct prb_recording *r = make(), *back;
	struct prb_store *store;
	int64_t at = 0;

	(void)state;
	r->runs.count = 0;
	r->ring = ring;
	assert_null(prb_store_create(path, &store));
	assert_null(prb_store_begin(store, r));
	for (int chunks = 0; chunks < 10;) {
		bool cut;

		made_run(r, 0, made_stack(r, "main", 1 + (int32_t)(at % 97)), 3000);
		r->runs.items[r->runs.count - 1].begin = at;
		at += minute / 10;
		r->duration = at;
		put(store, r, at, &cut);
		if (cut)
			r->runs.count = 0;
		chunks += cut;
	}
	assert_null(prb_store_finish(store, r));
	prb_store_destroy(store);
	assert_null(prb_profile_load(path, true, &back));
	assert_true(back->duration >= ring && back->duration < at);
	assert_int_equal(sum_of_walls(back), back->duration);
	prb_recording_clip(back, back->duration - minute / 4, INT64_MAX);
	assert_int_equal(sum_of_walls(back), minute / 4);
	prb_recording_destroy(back);
	prb_recording_destroy(r);
}

static int64_t count_chunks(void)
{
	sqlite3_stmt *stmt;
	sqlite3 *db;
	int64_t count;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM chunks", -1, &stmt, NULL), 0);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	count = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return count;
}

/* However long the decision on chunks takes, chunks outside of all windows are dropped. */
static void test_long_around(void **state)
{
	const int64_t minute = 60000000000, around = 120;
	struct prb_recording *r = make();
	struct prb_store *store;
	bool cut;

	(void)state;
	r->runs.count = 0;
	r->condition = strdup("wall_ms < 0");
	r->around = around * minute;
	assert_null(prb_store_create(path, &store));
	assert_null(prb_store_keep_when(store, r->condition, (double)around * 60, NULL));
	assert_null(prb_store_begin(store, r));
	for (int64_t at = 0; at < 3 * around * minute; at += minute) {
		made_run(r, 0, made_stack(r, "main", 1), 20000);
		r->runs.items[r->runs.count - 1].begin = at;
		r->duration = at + minute;
		put(store, r, r->duration, &cut);
		assert_true(cut);
		r->runs.count = 0;
	}
	while (!prb_store_is_there(store))
		usleep(100);
	assert_uint_in_range(count_chunks(), around, around + 2);
	assert_null(prb_store_finish(store, r));
	prb_store_destroy(store);
	assert_int_equal(count_chunks(), 0);
	prb_recording_destroy(r);
}

/* Times in large units: sums stay right in spite of rounding. */
static void test_units(void **state)
{
	enum { COUNT = 1000, UNIT = 100000 };
	struct prb_run runs[COUNT] = {}, back[COUNT] = {};
	prb_auto_str struct prb_str data = {};
	struct prb_chunk chunk = {
		.runs = COUNT, .unit = UNIT, .threads = 2, .stacks = 3, .waits = 2};
	int64_t at[2] = {}, cpu = 0, cpu_back = 0;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		struct prb_run *run = &runs[i];

		run->thread = (uint32_t)i % 2;
		run->stack = 1 + (uint32_t)i % 2;
		run->wait = (uint32_t)i % 3 == 0;
		run->gil = i % 5 == 0;
		run->begin = at[run->thread];
		run->wall = 9123456 + i * 777;
		run->cpu = 1234567 + i % 13;
		at[run->thread] += run->wall;
		cpu += run->cpu;
	}
	assert_null(prb_chunk_encode(&chunk, runs, &data));
	assert_null(prb_chunk_decode(&chunk, data.data, data.length, back));
	for (int i = 0; i < COUNT; i++) {
		assert_true(back[i].wait == runs[i].wait && back[i].gil == runs[i].gil);
		assert_true(llabs(back[i].begin - runs[i].begin) <= UNIT);
		assert_true(llabs(back[i].wall - runs[i].wall) <= UNIT);
		cpu_back += back[i].cpu;
	}
	assert_true(llabs(cpu_back - cpu) <= 2 * UNIT);
}

static void copy_file(const char *from, const char *to)
{
	char command[300];

	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	assert_int_equal(system(command), 0);
}

/* A writer is killed within a change: the state before is read. */
static void test_hot_journal(void **state)
{
	char copy[120], journal[120], copied_journal[140];
	struct prb_recording *r = make(), *back;
	struct prb_store *store;
	sqlite3 *db;

	(void)state;
	snprintf(copy, sizeof(copy), "%s/copy.profile", folder);
	snprintf(journal, sizeof(journal), "%s-journal", path);
	snprintf(copied_journal, sizeof(copied_journal), "%s-journal", copy);
	assert_null(prb_store_create(path, &store));
	assert_null(prb_store_begin(store, r));
	assert_null(prb_store_finish(store, r));
	prb_store_destroy(store);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "PRAGMA synchronous = OFF; PRAGMA cache_size = 10; BEGIN;"
			     "DELETE FROM functions; DELETE FROM chunks;"
			     "UPDATE processes SET pid = 1;"
			     "WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) "
			     "INSERT INTO chunks SELECT i, 0, 0, 0, zeroblob(9999) FROM n",
			     NULL, NULL, NULL),
		SQLITE_OK);
	copy_file(path, copy);
	struct prb_error *err = prb_profile_load(copy, true, &back);
	assert_non_null(err);
	prb_error_destroy(err);
	copy_file(journal, copied_journal);
	sqlite3_close(db);
	assert_null(prb_profile_load(copy, true, &back));
	prb_runs_sort(r->runs.items, r->runs.count);
	expect_same(r, back);
	prb_recording_destroy(back);
	unlink(copy);
	unlink(copied_journal);
	prb_recording_destroy(r);
}

static void test_in_the_way(void **state)
{
	char journal[120];
	struct prb_recording *r = make();
	struct prb_store *store;
	struct prb_error *err;

	(void)state;
	err = prb_store_create(folder, &store);
	assert_int_equal(err->code, PRB_ERROR_USAGE);
	prb_error_destroy(err);
	/* A link in place of the journal is never followed. */
	snprintf(journal, sizeof(journal), "%s-journal", path);
	assert_int_equal(symlink("/etc/passwd", journal), 0);
	assert_null(prb_store_create(path, &store));
	err = prb_store_begin(store, r);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_USAGE);
	prb_error_destroy(err);
	prb_store_destroy(store);
	unlink(journal);
	prb_recording_destroy(r);
}

/* A long recording is loaded in steps of time: all sums stay, and no runs overlap. */
static void test_steps(void **state)
{
	enum { RUNS = 400000 };
	struct prb_recording *r = make(), *whole, *steps;
	int64_t cpu[2] = {}, wall[2] = {}, end[2] = {};
	struct prb_store *store;
	const struct prb_run *run;
	uint32_t stacks[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		stacks[i] = made_stack(r, "main/load/deep", 10 + (int32_t)i);
	for (unsigned i = 0; i < RUNS; i++) {
		made_run(r, i % 2, stacks[i * 7 % 3], 1 + i % 5);
		if (i % 2)
			r->runs.items[r->runs.count - 1].begin =
				r->runs.items[r->runs.count - 2].begin;
	}
	assert_null(prb_store_create(path, &store));
	assert_null(prb_store_begin(store, r));
	assert_null(prb_store_finish(store, r));
	prb_store_destroy(store);
	assert_null(prb_profile_load(path, true, &whole));
	assert_int_equal(whole->runs.count, RUNS + 3);
	assert_null(prb_profile_load_steps(path, &steps));
	assert_true(steps->runs.count < 20000 && steps->step > 0);
	prb_vec_each (run, &whole->runs) {
		cpu[run->thread] += run->cpu;
		wall[run->thread] += run->wall;
	}
	prb_vec_each (run, &steps->runs) {
		assert_true(run->begin >= end[run->thread]);
		end[run->thread] = run->begin + run->wall;
		cpu[run->thread] -= run->cpu;
		wall[run->thread] -= run->wall;
	}
	assert_true(!cpu[0] && !cpu[1] && !wall[0] && !wall[1]);
	prb_recording_destroy(r);
	prb_recording_destroy(whole);
	prb_recording_destroy(steps);
}

/* A minute of a busy program: runs of @count threads that take turns at random. */
static void add_minute(struct prb_recording *r, const uint32_t *stacks, unsigned count,
		       int64_t from)
{
	enum { RUNS = 12000 };
	static uint64_t chance = 1;
	int64_t at[4] = {from, from, from, from}, minute = 60000000000;

	r->runs.count = 0;
	for (unsigned i = 0; i < RUNS; i++) {
		unsigned thread = i % 4;
		bool last = i >= RUNS - 4;
		struct prb_run *run;

		chance = chance * 6364136223846793005u + 1442695040888963407u;
		made_run(r, thread, stacks[(chance >> 33) % count], 0);
		run = &r->runs.items[r->runs.count - 1];
		run->begin = at[thread];
		run->wall = last ? from + minute - at[thread]
				 : minute * 4 / RUNS - (int64_t)(chance >> 43) % 9000000;
		run->cpu = run->wall / (1 + (int64_t)(chance >> 50) % 7);
		run->cpu_squares = (double)run->cpu * (double)run->cpu;
		run->state = chance >> 40 & 1 ? PRB_RUN_ON_CPU : PRB_RUN_ASLEEP;
		at[thread] += run->wall;
	}
	r->duration = from + minute;
}

/* Sums by thread and stack, which must not depend on how samples are combined. */
struct long_sums {
	int64_t wall[4][50], cpu[4][50];
	uint64_t samples;
	double squares;
};

static void add_long_sums(struct long_sums *sums, const struct prb_recording *r)
{
	const struct prb_run *run;

	prb_vec_each (run, &r->runs) {
		assert_true(run->stack < 50);
		sums->wall[run->thread][run->stack] += run->wall;
		sums->cpu[run->thread][run->stack] += run->cpu;
		sums->samples += run->samples;
		sums->squares += run->cpu_squares;
	}
}

/* A recording that grows too fast has samples in its first part, and sums of all of it. */
static void test_long(void **state)
{
	enum { MINUTES = 150, STACKS = 40, MOST_BYTES = 8000000 + MINUTES * 11000 + 1000000 };
	const int64_t minute = 60000000000;
	struct prb_recording *r = make(), *back;
	struct long_sums sums = {}, sums_back = {};
	int64_t end[4] = {}, longest = 0;
	uint32_t stacks[STACKS];
	struct prb_store *store;
	const struct prb_run *run;
	struct stat st;

	(void)state;
	made_thread(r, 4251, "third");
	made_thread(r, 4252, "fourth");
	for (unsigned i = 0; i < STACKS; i++)
		stacks[i] = made_stack(r, "main", 100 + (int32_t)i);
	assert_null(prb_store_create(path, &store));
	assert_null(prb_store_begin(store, r));
	for (int64_t now = 0; now < MINUTES * minute; now += minute) {
		bool cut = false;

		add_minute(r, stacks, STACKS, now);
		add_long_sums(&sums, r);
		while (!cut) {
			assert_null(prb_store_put(store, r, now + minute, &cut));
			usleep(1000);
		}
	}
	r->runs.count = 0;
	assert_null(prb_store_finish(store, r));
	prb_store_destroy(store);
	assert_int_equal(stat(path, &st), 0);
	assert_uint_in_range(st.st_size, MOST_BYTES / 2, MOST_BYTES);
	assert_null(prb_profile_load(path, true, &back));
	add_long_sums(&sums_back, back);
	assert_int_equal(sums.samples, sums_back.samples);
	assert_true(sums_back.squares > 0.99 * sums.squares &&
		    sums_back.squares < 1.001 * sums.squares);
	for (unsigned i = 0; i < 4 * 50; i++) {
		int64_t *all = &sums.wall[0][0], *all_back = &sums_back.wall[0][0];

		assert_true(llabs(all[i] - all_back[i]) <= all[i] / 1000);
		assert_true(llabs(all[i + 200] - all_back[i + 200]) <= all[i] / 1000);
	}
	prb_vec_each (run, &back->runs) {
		assert_true(run->begin >= end[run->thread]);
		end[run->thread] = run->begin + run->wall;
		if (run->begin < 20 * minute)
			assert_int_equal(run->samples, 1);
		longest = run->wall > longest ? run->wall : longest;
	}
	for (unsigned i = 0; i < 4; i++)
		assert_true(llabs(end[i] - MINUTES * minute) < minute / 100);
	assert_true(longest > minute / 60);
	prb_recording_destroy(r);
	prb_recording_destroy(back);
}

/* The fuzzer's seeds are recordings of the present format; the last byte is not part of them. */
static void test_seed_of_the_fuzzer(void **state)
{
	struct prb_recording *back;
	struct stat st;

	(void)state;
	copy_file("tests/fuzz/corpus/profile/seed-recording", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	assert_null(prb_profile_load(path, true, &back));
	assert_true(back->runs.count > 0);
	prb_recording_destroy(back);
}

static void test_source(void **state)
{
	struct prb_recording *r = make(), *back;
	struct prb_profile_line *line;
	struct prb_store *store;

	(void)state;
	for (int32_t i = 1; i <= 2; i++) {
		line = prb_vec_push(&r->lines);
		*line = (struct prb_profile_line){r->tree->functions.items[1].file, i,
						  strdup(i == 1 ? "def load():" : "\tx = '\xff'")};
	}
	assert_null(prb_store_create(path, &store));
	assert_null(prb_store_begin(store, r));
	assert_null(prb_store_finish(store, r));
	prb_store_destroy(store);
	assert_null(prb_profile_load(path, true, &back));
	assert_int_equal(back->lines.count, 2);
	assert_ptr_equal(back->lines.items[0].file, back->tree->functions.items[1].file);
	assert_string_equal(back->lines.items[0].text, "def load():");
	assert_int_equal(back->lines.items[1].line, 2);
	assert_string_equal(back->lines.items[1].text, "\\tx = '\\xff'");
	prb_recording_destroy(r);
	prb_recording_destroy(back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_ring),	       cmocka_unit_test(test_units),
		cmocka_unit_test(test_hot_journal),    cmocka_unit_test(test_in_the_way),
		cmocka_unit_test(test_steps),	       cmocka_unit_test(test_source),
		cmocka_unit_test(test_long),	       cmocka_unit_test(test_seed_of_the_fuzzer),
		cmocka_unit_test(test_long_around),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
