/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/cache/cache.h"
#include "tests/unit/skip.h"

#define BUILD_ID "c561f3aa7232f2bd6ac6d56bd475f1c154a00486"

static char home[64];

static int make_home(void **state)
{
	(void)state;
	snprintf(home, sizeof(home), "/tmp/probing-test-cache-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	return setenv("XDG_CACHE_HOME", home, 1);
}

static int remove_home(void **state)
{
	prb_auto_free char *command = prb_format("rm -rf %s", home);

	(void)state;
	return system(command);
}

static char *file_path(void)
{
	return prb_format("%s/probing/" BUILD_ID ".lines", home);
}

static struct prb_cache *open_cache(void)
{
	struct prb_cache *cache = NULL;

	assert_null(prb_cache_open(BUILD_ID, "lines", &cache));
	assert_non_null(cache);
	return cache;
}

static void put(struct prb_cache *cache, const char *key, const char *value)
{
	prb_cache_put(cache, key, strlen(key), value, strlen(value));
}

static bool has(struct prb_cache *cache, const char *key, const char *value)
{
	const void *found;
	size_t length;

	return prb_cache_get(cache, key, strlen(key), &found, &length) && length == strlen(value) &&
	       !memcmp(found, value, length);
}

static bool lacks(struct prb_cache *cache, const char *key)
{
	const void *found;
	size_t length;

	return !prb_cache_get(cache, key, strlen(key), &found, &length);
}

static void keeps_values(void **state)
{
	struct prb_cache *cache = open_cache();

	(void)state;
	assert_true(lacks(cache, "key"));
	put(cache, "key", "old");
	put(cache, "key", "value");
	put(cache, "empty", "");
	put(cache, "", "of the empty key");
	assert_true(has(cache, "key", "value"));
	assert_true(lacks(cache, "ke"));
	prb_cache_close(cache);

	cache = open_cache();
	assert_true(has(cache, "key", "value"));
	assert_true(has(cache, "empty", ""));
	assert_true(has(cache, "", "of the empty key"));
	put(cache, "key", "newer");
	assert_true(has(cache, "key", "newer"));
	prb_cache_close(cache);

	cache = open_cache();
	assert_true(has(cache, "key", "newer"));
	assert_true(has(cache, "empty", ""));
	prb_cache_close(cache);
}

static void keeps_many_values(void **state)
{
	enum { ROUNDS = 5, PER_ROUND = 2000 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct prb_cache *cache = open_cache();

		for (uint64_t key = 0; key < PER_ROUND; key++) {
			uint64_t number = key * ROUNDS + (uint64_t)i;

			prb_cache_put(cache, &number, sizeof(number), &number, 1 + number % 8);
		}
		prb_cache_close(cache);
	}

	struct prb_cache *cache = open_cache();
	for (uint64_t key = 0; key < ROUNDS * PER_ROUND; key++) {
		const void *value;
		size_t length;

		assert_true(prb_cache_get(cache, &key, sizeof(key), &value, &length));
		assert_int_equal(length, 1 + key % 8);
		assert_memory_equal(value, &key, length);
	}
	prb_cache_close(cache);
}

static void keeps_files_apart(void **state)
{
	struct prb_cache *lines = open_cache(), *layout = NULL;

	(void)state;
	put(lines, "key", "line");
	prb_cache_close(lines);
	assert_null(prb_cache_open(BUILD_ID, "layout", &layout));
	assert_true(lacks(layout, "key"));
	prb_cache_close(layout);
}

static void write_file(const char *path, const void *data, size_t length)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static char *read_file(const char *path, size_t *length)
{
	struct stat st;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	*length = (size_t)st.st_size;

	char *data = malloc(*length);
	assert_int_equal(fread(data, 1, *length, file), *length);
	fclose(file);
	return data;
}

/* For any file: a value read is a value that was stored, and writing works. */
static void check_survives(void)
{
	struct prb_cache *cache = open_cache();

	assert_true(lacks(cache, "one") || has(cache, "one", "first"));
	assert_true(lacks(cache, "two") || has(cache, "two", "second"));
	put(cache, "three", "third");
	prb_cache_close(cache);

	cache = open_cache();
	assert_true(has(cache, "three", "third"));
	prb_cache_close(cache);
}

static void survives_truncation_and_corruption(void **state)
{
	prb_auto_free char *path = file_path();
	struct prb_cache *cache = open_cache();
	size_t length;

	(void)state;
	put(cache, "one", "first");
	put(cache, "two", "second");
	prb_cache_close(cache);

	prb_auto_free char *good = read_file(path, &length);
	for (size_t cut = 0; cut < length; cut += cut + 100 < length ? 199 : 1) {
		write_file(path, good, cut);
		check_survives();
	}
	for (size_t at = 0; at < length; at += at < 64 || at + 100 > length ? 1 : 199) {
		prb_auto_free char *bad = malloc(length);

		memcpy(bad, good, length);
		bad[at] ^= 0x41;
		write_file(path, bad, length);
		check_survives();
		memset(bad + at, 0xff, length - at);
		write_file(path, bad, length);
		check_survives();
	}
}

static void ignores_another_version(void **state)
{
	prb_auto_free char *path = file_path();
	struct prb_cache *cache = open_cache();
	size_t length;

	(void)state;
	put(cache, "one", "first");
	prb_cache_close(cache);

	prb_auto_free char *data = read_file(path, &length);
	data[16] ^= 1; /* the version's first character */
	write_file(path, data, length);
	cache = open_cache();
	assert_true(lacks(cache, "one"));
	prb_cache_close(cache);
	check_survives();
}

static void ignores_what_is_not_ours(void **state)
{
	prb_auto_free char *path = file_path();
	prb_auto_free char *elsewhere = prb_format("%s/elsewhere", home);
	prb_auto_free char *folder = prb_format("%s/probing", home);
	struct prb_cache *cache = open_cache();
	size_t length;

	(void)state;
	put(cache, "one", "first");
	prb_cache_close(cache);

	/* A link in place of the file is neither read nor written through. */
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
	prb_auto_free char *before = read_file(elsewhere, &length);
	cache = open_cache();
	assert_true(lacks(cache, "one"));
	put(cache, "two", "second");
	prb_cache_close(cache);

	size_t length_after;
	prb_auto_free char *after = read_file(elsewhere, &length_after);
	assert_int_equal(length_after, length);
	assert_memory_equal(before, after, length);

	/* Opening a FIFO does not block. */
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	cache = open_cache();
	assert_true(lacks(cache, "one"));
	prb_cache_close(cache);
	unlink(path);

	/* A folder writable by others is not used. */
	assert_int_equal(rename(elsewhere, path), 0);
	assert_int_equal(chmod(folder, 0777), 0);
	cache = open_cache();
	assert_true(lacks(cache, "one"));
	prb_cache_close(cache);
}

static mode_t mode_of(const char *below_home)
{
	prb_auto_free char *path = prb_format("%s%s", home, below_home);
	struct stat st;

	return stat(path, &st) ? 0 : st.st_mode & 07777;
}

static void put_one(void)
{
	struct prb_cache *cache = open_cache();

	put(cache, "one", "first");
	prb_cache_close(cache);
}

static void makes_the_folders_that_are_missing(void **state)
{
	prb_auto_free char *deep = prb_format("%s/not//there/yet/", home);
	struct prb_cache *cache;

	(void)state;
	setenv("XDG_CACHE_HOME", deep, 1);
	put_one();
	assert_int_equal(mode_of("/not"), 0700);
	assert_int_equal(mode_of("/not/there"), 0700);
	assert_int_equal(mode_of("/not/there/yet/probing"), 0700);
	cache = open_cache();
	assert_true(has(cache, "one", "first"));
	prb_cache_close(cache);
}

static void adds_no_folders_to_those_of_others(void **state)
{
	prb_auto_free char *theirs = prb_format("%s/theirs", home);
	prb_auto_free char *deep = prb_format("%s/not/there", theirs);

	(void)state;
	if (geteuid())
		SKIP("needs root");
	assert_int_equal(mkdir(theirs, 0755), 0);
	assert_int_equal(chown(theirs, 4711, 4711), 0);
	setenv("XDG_CACHE_HOME", deep, 1);
	prb_cache_close(open_cache()); /* new values would go to the folder in /tmp */
	assert_int_equal(mode_of("/theirs/not"), 0);

	/* A sticky folder, writable by everybody, is used. */
	assert_int_equal(chmod(theirs, 01777), 0);
	put_one();
	assert_int_equal(mode_of("/theirs/not/there/probing"), 0700);
}

static void works_without_a_folder(void **state)
{
	struct prb_cache *cache = NULL;

	(void)state;
	setenv("XDG_CACHE_HOME", "/proc/self", 1);
	assert_null(prb_cache_open("../../etc/x", "lines", &cache));
	put(cache, "one", "first");
	assert_true(has(cache, "one", "first"));
	prb_cache_close(cache);
	assert_null(prb_cache_open("", "lines", &cache));
	put(cache, "one", "first");
	assert_true(has(cache, "one", "first"));
	prb_cache_close(cache);
}

static void write_some(int writer, int round)
{
	struct prb_cache *cache = open_cache();

	for (int i = 0; i < 20; i++) {
		prb_auto_free char *key = prb_format("%d/%d/%d", writer, round, i);
		prb_auto_free char *value = prb_format("value of %d/%d/%d", writer, round, i);

		put(cache, key, value);
	}
	prb_cache_close(cache);
}

/* A writer gives up if the file is locked for long: the values are written the next time. */
static bool wrote(int writer, int round)
{
	struct prb_cache *cache = open_cache();
	bool all = true;

	for (int i = 0; i < 20; i++) {
		prb_auto_free char *key = prb_format("%d/%d/%d", writer, round, i);
		prb_auto_free char *value = prb_format("value of %d/%d/%d", writer, round, i);

		all = all && has(cache, key, value);
	}
	prb_cache_close(cache);
	return all;
}

/* Number of values present; none may be wrong. */
static int count_good(int writers, int rounds)
{
	struct prb_cache *cache = open_cache();
	int good = 0;

	for (int n = 0; n < writers * rounds * 20; n++) {
		int writer = n / 20 / rounds, round = n / 20 % rounds, i = n % 20;
		prb_auto_free char *key = prb_format("%d/%d/%d", writer, round, i);
		prb_auto_free char *value = prb_format("value of %d/%d/%d", writer, round, i);

		if (has(cache, key, value))
			good++;
		else
			assert_true(lacks(cache, key));
	}
	prb_cache_close(cache);
	return good;
}

static void lets_writers_meet(void **state)
{
	enum { WRITERS = 8, ROUNDS = 50 };
	pid_t children[WRITERS];

	(void)state;
	for (int writer = 0; writer < WRITERS; writer++) {
		children[writer] = fork();
		if (children[writer] == 0) {
			for (int round = 0; round < ROUNDS; round++)
				do
					write_some(writer, round);
				while (!wrote(writer, round));
			_exit(0);
		}
	}
	for (int writer = 0; writer < WRITERS; writer++) {
		int status;

		assert_int_equal(waitpid(children[writer], &status, 0), children[writer]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_good(WRITERS, ROUNDS), WRITERS * ROUNDS * 20);
}

static void survives_killed_writers(void **state)
{
	enum { KILLS = 60 };

	(void)state;
	for (int i = 0; i < KILLS; i++) {
		int pipe_ends[2];
		char byte;

		assert_int_equal(pipe(pipe_ends), 0);
		pid_t child = fork();
		if (child == 0) {
			for (int round = 0;; round++) {
				write_some(0, round % 50);
				if (round == i % 7 && write(pipe_ends[1], "x", 1) != 1)
					_exit(1);
			}
		}
		assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
		for (volatile int spin = 0; spin < i * 2000; spin++)
			;
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		close(pipe_ends[0]);
		close(pipe_ends[1]);
		assert_true(count_good(1, 50) >= 20);
		check_survives();
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_home, remove_home)
	const struct CMUnitTest tests[] = {
		TEST(keeps_values),
		TEST(keeps_many_values),
		TEST(keeps_files_apart),
		TEST(survives_truncation_and_corruption),
		TEST(ignores_another_version),
		TEST(ignores_what_is_not_ours),
		TEST(makes_the_folders_that_are_missing),
		TEST(adds_no_folders_to_those_of_others),
		TEST(works_without_a_folder),
		TEST(lets_writers_meet),
		TEST(survives_killed_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
