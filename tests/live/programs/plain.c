/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A program that needs the C library alone, with no threads and no loader of its own. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	return read(0, &byte, 1) < 0;
}
