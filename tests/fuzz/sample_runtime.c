/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A library that the search for a runtime takes for Python 3.13. */
#include <stdint.h>

enum { WORDS = 73, INTERPRETERS = WORDS, INTERPRETER = WORDS + 8, THREAD = WORDS + 24 };

extern uint64_t _PyRuntime[256];
extern const uint32_t Py_Version;
int Py_Main(void);

int Py_Main(void)
{
	return 0;
}

const uint32_t Py_Version = 0x030d00f0;

/* The table of offsets, then the structures that it describes. */
uint64_t _PyRuntime[256] __attribute__((section(".PyRuntime"))) = {
	[0] = 0x7970677562656478, /* "xdebugpy" */
	[1] = 0x030d00f0,
	[3] = sizeof(_PyRuntime),
	[5] = INTERPRETERS * 8, /* offset of the list of interpreters */
	[6] = 128,		/* size of an interpreter, places of id, next, threads */
	[7] = 0,
	[8] = 8,
	[9] = 16,
	[19] = 128, /* size of a thread state, places of prev, next, interpreter, frame, ids */
	[20] = 0,
	[21] = 8,
	[22] = 16,
	[23] = 24,
	[24] = 32,
	[25] = 40,
	[INTERPRETERS] = (uint64_t)(uintptr_t)&_PyRuntime[INTERPRETER],
	[INTERPRETER + 2] = (uint64_t)(uintptr_t)&_PyRuntime[THREAD],
	[THREAD + 2] = (uint64_t)(uintptr_t)&_PyRuntime[INTERPRETER],
	[THREAD + 4] = 1,
};
