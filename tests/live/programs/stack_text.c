/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A function that writes a text all over its frame, whose size is known only when it runs, and
 * then reads from a descriptor, or spins if that is -1: loaded by stack_text.py through ctypes. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COPIES = 300 };

static volatile int spinning = 1;

static __attribute__((noinline)) long stack_text(int fd, const char *text)
{
	size_t size = strlen(text) + 1;
	char *room = __builtin_alloca(size * COPIES);
	char byte;
	long got = 0;

	for (size_t i = 0; i < COPIES; i++)
		snprintf(room + i * size, size, "%s", text);
	if (fd >= 0)
		got = read(fd, &byte, 1);
	while (fd < 0 && spinning)
		;
	__asm__ volatile("" : : "r"(room) : "memory");
	return got;
}

/* Behind a direct call it is known whose frame stack_text() is. */
long stack_text_below(int fd, const char *text)
{
	long got = stack_text(fd, text);

	__asm__ volatile("" : : : "memory");
	return got;
}
