/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the tests of dwarf/elf: a folder of their own, commands whose output is the
 * oracle (readelf, nm, objcopy, cc), and files made by them.
 */
#ifndef PRB_TESTS_ELF_HELPERS_H
#define PRB_TESTS_ELF_HELPERS_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/elf/elf.h"

/** The folder of this run; made by make_folder(), removed by remove_folder(). */
static char folder[64];

static inline int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/prb-elf-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	prb_auto_free char *command = prb_format("rm -rf '%s'", folder);

	(void)state;
	return command ? system(command) : -1;
}

#define assert_ok(expression)                                \
	do {                                                 \
		struct prb_error *test_error = (expression); \
		if (test_error)                              \
			fail_msg("%s", test_error->message); \
	} while (0)

/** Expects an error with this code, and frees it. */
#define assert_error(expression, expected)                      \
	do {                                                    \
		struct prb_error *test_error = (expression);    \
		assert_non_null(test_error);                    \
		assert_int_equal(test_error->code, (expected)); \
		prb_error_destroy(test_error);                  \
	} while (0)

/** Runs a shell command in our folder; false if it fails. */
static inline bool run(const char *format, ...) PRB_PRINTF(1, 2);
static inline bool run(const char *format, ...)
{
	prb_auto_str struct prb_str command = {};
	va_list args;

	prb_str_printf(&command, "cd '%s' && { ", folder);
	va_start(args, format);
	prb_str_vprintf(&command, format, args);
	va_end(args);
	prb_str_puts(&command, "; } >/dev/null 2>&1");
	return system(prb_str_text(&command)) == 0;
}

/** Path of a file in our folder; the caller frees. */
static inline char *in_folder(const char *name)
{
	return prb_format("%s/%s", folder, name);
}

static inline void write_file(const char *name, const void *data, size_t size)
{
	prb_auto_free char *path = in_folder(name);
	prb_auto_fclose FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
}

/** The content of a file; the caller frees. */
static inline uint8_t *read_file(const char *name, size_t *size)
{
	prb_auto_free char *path = in_folder(name);
	prb_auto_fclose FILE *file = fopen(path, "r");
	struct stat st;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	uint8_t *data = malloc((size_t)st.st_size);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, (size_t)st.st_size, file), st.st_size);
	*size = (size_t)st.st_size;
	return data;
}

static inline struct prb_elf *open_path(const char *path)
{
	struct prb_elf *elf;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_ok(prb_elf_open(fd, path, &elf));
	return elf;
}

/** Opens a file of our folder. */
static inline struct prb_elf *open_made(const char *name)
{
	prb_auto_free char *path = in_folder(name);

	return open_path(path);
}

/** Compiles C @p source to @p name with these flags. */
static inline void compile(const char *name, const char *source, const char *flags)
{
	write_file("source.c", source, strlen(source));
	assert_true(run("cc -O1 %s -o %s source.c", flags, name));
}

#endif
