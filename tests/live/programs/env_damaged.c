/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file with the name and the symbols of a Python, and an invalid runtime. */
#include <stdio.h>

__attribute__((visibility("default"))) unsigned char _PyRuntime[65536];

int main(void)
{
	for (unsigned i = 0; i < sizeof(_PyRuntime); i++)
		_PyRuntime[i] = 0x41;
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
