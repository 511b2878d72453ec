/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as a file of the disk cache. A value stored in such a cache must be there after
 * reopening, whatever the file was before. If the first byte is even, the input is the file itself;
 * if odd, a valid header and eight heads, repeated, are put in front of it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/fuzz/input.h"

#include "dwarf/cache/cache.h"
#include "dwarf/cache/cache_file.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static char folder[64];

static void remove_folder(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/probing/00.test", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/probing", folder);
	rmdir(path);
	rmdir(folder);
}

/* The cache is in a folder of our own, in memory if possible. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	strcpy(folder, "/dev/shm/fuzz-cache-XXXXXX");
	if (!mkdtemp(folder)) {
		strcpy(folder, "/tmp/fuzz-cache-XXXXXX");
		if (!mkdtemp(folder))
			abort();
	}
	setenv("XDG_CACHE_HOME", folder, 1);
	atexit(remove_folder);
	return 0;
}

static void write_file(struct input input)
{
	prb_auto_close int dir = prb_cache_folder();
	prb_auto_close int fd = openat(dir, "00.test", O_RDWR | O_CREAT | O_TRUNC, 0600);
	bool whole = !(input_u8(&input) & 1);
	struct {
		struct prb_cache_header header;
		uint32_t heads[PRB_CACHE_HEADS];
	} beginning = {.header = prb_cache_header()};

	if (!whole) {
		uint32_t heads[8];

		input_take(&input, heads, sizeof(heads));
		for (unsigned i = 0; i < PRB_CACHE_HEADS; i++)
			beginning.heads[i] = heads[i % PRB_ARRAY_SIZE(heads)];
		if (write(fd, &beginning, sizeof(beginning)) != sizeof(beginning))
			abort();
	}
	if (write(fd, input.data, input.size) != (ssize_t)input.size)
		abort();
}

static struct prb_cache *open_cache(void)
{
	struct prb_cache *cache;
	struct prb_error *err = prb_cache_open("00", "test", &cache);

	if (err)
		abort();
	return cache;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char key[] = "key";
	uint64_t old = 0;
	const void *value;
	size_t length, sum = 0;

	write_file((struct input){data, size});

	struct prb_cache *cache = open_cache();
	for (old = 0; old < 16; old++) {
		if (!prb_cache_get(cache, &old, sizeof(old), &value, &length))
			continue;
		for (size_t i = 0; i < length; i++)
			sum += ((const uint8_t *)value)[i];
	}
	(void)prb_cache_get(cache, key, 0, &value, &length);
	prb_cache_put(cache, key, sizeof(key), &sum, sizeof(sum));
	prb_cache_close(cache);

	cache = open_cache();
	if (!prb_cache_get(cache, key, sizeof(key), &value, &length) || length != sizeof(sum) ||
	    memcmp(value, &sum, sizeof(sum)) != 0)
		abort();
	prb_cache_close(cache);
	return 0;
}
