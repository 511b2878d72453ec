/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Replaces libFuzzer where only a corpus is run: passes each named file, and each file of the
 * named folders, to the fuzzer's function. Flags of libFuzzer are ignored.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/input.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/* Mutators are linked too, but never called. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
	(void)data;
	return size < max_size ? size : max_size;
}

/** Runs the input of one file; false if it is no regular file. */
static bool replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data;
	size_t size;
	bool whole;

	if (!file)
		return false;
	whole = !fseek(file, 0, SEEK_END);
	size = (size_t)ftell(file);
	rewind(file);
	data = malloc(size ? size : 1);
	whole = whole && data && fread(data, 1, size, file) == size;
	fclose(file);
	if (whole) {
		/* Names the input of a crash. */
		fprintf(stderr, "%s\n", path);
		LLVMFuzzerTestOneInput(data, size);
	}
	free(data);
	return whole;
}

static int replay_folder(const char *path)
{
	struct dirent **names;
	int count = scandir(path, &names, NULL, alphasort);
	int failed = 0;

	if (count < 0)
		return !replay_file(path);
	for (int i = 0; i < count; i++) {
		char *file;

		if (names[i]->d_name[0] != '.' &&
		    asprintf(&file, "%s/%s", path, names[i]->d_name) > 0) {
			failed |= !replay_file(file);
			free(file);
		}
		free(names[i]);
	}
	free(names);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-')
			failed |= replay_folder(argv[i]);
	return failed;
}
