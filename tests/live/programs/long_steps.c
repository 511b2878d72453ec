/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Appends as many steps as its word says to python.torch_step_timing, by the agent's own entrance:
 * step n took n ms. Prints "done", and waits for the end of stdin. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/rings/write.h"

enum { COLUMNS = 3 };

int main(int argc, char **argv)
{
	long long steps = argc > 1 ? atoll(argv[1]) : 0;
	intptr_t ring = probing_ring_create("python.torch_step_timing",
					    "step integer, local_step integer, duration real [ms]",
					    2 << 20);

	for (int64_t step = 1; step <= steps; step++) {
		const struct probing_cell cells[COLUMNS] = {
			{PROBING_INTEGER, 0, {.integer = step}},
			{PROBING_INTEGER, 0, {.integer = step}},
			{PROBING_REAL, 0, {.real = (double)step}}};

		if (probing_ring_append(ring, 0, cells))
			abort();
	}
	puts("done");
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}
