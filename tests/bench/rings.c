/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Appends rows of eight columns to a ring: the rate of one thread, with given times and with the
 * clock's. Then it fills a ring of three columns with ROWS rows, prints both rates and the path of
 * that ring, and waits for the end of stdin: the rings of an ended process may be removed.
 *
 * Usage: rings ROWS
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/rings/write.h"

enum { COLUMNS = 8, FEW = 3, GROUPS = 97, APPENDED = 20000000, FULL = 1 << 30, NS = 1000000000 };

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / NS;
}

/** The last of them is a real. The values of the wide ring cost nothing to make: divisions would be
 * measured as well. */
static double append(intptr_t ring, int columns, int64_t rows, int64_t time)
{
	bool few = columns == FEW;
	double began = seconds();

	for (int64_t i = 0; i < rows; i++) {
		struct probing_cell cells[COLUMNS];

		for (int c = 0; c < columns; c++)
			cells[c] = (struct probing_cell){
				PROBING_INTEGER, 0, {.integer = few && c ? i % GROUPS : i + c}};
		cells[columns - 1] = (struct probing_cell){
			PROBING_REAL, 0, {.real = few ? (double)(i % 1000) / 8 : (double)i}};
		if (probing_ring_append(ring, time ? time + i : 0, cells))
			abort();
	}
	return (double)rows / (seconds() - began);
}

static intptr_t make(const char *table, const char *columns, uint64_t bytes)
{
	intptr_t ring = probing_ring_create(table, columns, bytes);

	if (ring > 0)
		return ring;
	fprintf(stderr, "rings: no ring can be made: %ld\n", (long)ring);
	exit(1);
}

int main(int argc, char **argv)
{
	int64_t rows = argc > 1 ? strtoll(argv[1], NULL, 10) : 0, now = (int64_t)time(NULL) * NS;
	intptr_t wide = make("user.wide",
			     "a integer, b integer, c integer, d integer, e integer, f integer, "
			     "g integer, h real",
			     0);
	intptr_t big = make("user.big", "a integer, b integer, h real", rows > 1 << 20 ? FULL : 0);

	append(wide, COLUMNS, APPENDED / 8, now); /* the pages of the file are there then */
	printf("%.0f ", append(wide, COLUMNS, APPENDED, now));
	printf("%.0f ", append(wide, COLUMNS, APPENDED, 0));
	append(big, FEW, rows, now);
	printf("%s\n", probing_ring_path(big));
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}
