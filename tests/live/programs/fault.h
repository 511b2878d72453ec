/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the targets of the fault matrix: numbers that the test sees too, and their end.
 * A target works until the test sets `stop`, and then exits with 0 if nothing was ever wrong.
 */
#ifndef PRB_TEST_FAULT_H
#define PRB_TEST_FAULT_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct fault_shared {
	volatile int64_t stop, rounds, errors, detail, sent, received, took;
};

static struct fault_shared *shared;

static inline void fault_open(const char *path)
{
	int fd = open(path, O_RDWR);

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || shared == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
}

static inline void fault_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static inline void fault_wrong(int64_t detail)
{
	shared->detail = detail;
	__atomic_add_fetch(&shared->errors, 1, __ATOMIC_RELAXED);
}

static inline void fault_round(void)
{
	__atomic_add_fetch(&shared->rounds, 1, __ATOMIC_RELAXED);
}

/* Sleeps and counts until the test stops it. */
static inline void fault_work(long rest_ns)
{
	while (!shared->stop) {
		nanosleep(&(struct timespec){0, rest_ns}, NULL);
		fault_round();
	}
}

static inline double fault_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline int fault_end(void)
{
	return shared->errors ? 1 : 0;
}

#endif
