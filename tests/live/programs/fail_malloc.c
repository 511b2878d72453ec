/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Loaded first into a program: its call number FAIL_AT for memory fails, or that one and all after
 * it with FAIL_ALL. How many calls there were goes to the file FAIL_COUNT at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size), *__libc_calloc(size_t count, size_t size),
	*__libc_realloc(void *memory, size_t size);

static atomic_long calls;

/* The environment is read anew each time: this is called before any constructor. */
static int fails(void)
{
	const char *at = getenv("FAIL_AT");
	long number = atomic_fetch_add(&calls, 1) + 1, wanted = at ? atol(at) : 0;

	if (!wanted || number < wanted || (number > wanted && !getenv("FAIL_ALL")))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	return fails() ? NULL : __libc_realloc(memory, size);
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("FAIL_COUNT");
	char text[32];
	int length = snprintf(text, sizeof(text), "%ld", (long)calls);
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	if (write(fd, text, (size_t)length) != length)
		abort();
	close(fd);
}
