/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A target for measuring: spinner FILE runs all the time and keeps the longest gap between two of
 * its steps, in nanoseconds, in the first word of FILE, where others set it to 0.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR) : -1;
	volatile uint64_t *longest = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (longest == MAP_FAILED) {
		perror("spinner");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (uint64_t last = now();;) {
		uint64_t time = now();

		if (time - last > *longest)
			*longest = time - last;
		last = time;
	}
}
