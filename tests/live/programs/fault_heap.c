/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Targets that are nearly always in the C library, or the vdso: fault_heap SHARED KIND [THREADS] */
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#include "fault.h"

enum { BLOCKS = 256 };

static void check_block(const unsigned char *block, size_t size, unsigned char fill)
{
	for (size_t i = 0; i < size; i++)
		if (block[i] != fill)
			fault_wrong(1);
}

static void *churn_heap(void *seed_pointer)
{
	unsigned seed = (unsigned)(uintptr_t)seed_pointer;
	unsigned char *blocks[BLOCKS] = {};
	size_t sizes[BLOCKS] = {};

	while (!shared->stop) {
		unsigned i = (unsigned)rand_r(&seed) % BLOCKS;

		if (blocks[i]) {
			check_block(blocks[i], sizes[i], (unsigned char)i);
			free(blocks[i]);
		}
		sizes[i] = 1 + (unsigned)rand_r(&seed) % (i % 16 ? 200 : 20000);
		blocks[i] = malloc(sizes[i]);
		memset(blocks[i], (int)i, sizes[i]);
		fault_round();
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	return NULL;
}

/* Nothing but malloc() and free(): hardly ever outside of them. */
static void *only_malloc(void *unused)
{
	(void)unused;
	while (!shared->stop) {
		for (int i = 0; i < 100; i++) {
			void *volatile block = malloc(1000 + (size_t)i * 10);
			free(block);
		}
		fault_round();
	}
	return NULL;
}

static void *churn_libraries(void *unused)
{
	(void)unused;
	while (!shared->stop) {
		void *library = dlopen("libm.so.6", RTLD_NOW);

		if (!library || !dlsym(library, "cos"))
			fault_wrong(2);
		if (library)
			dlclose(library);
		fault_round();
	}
	return NULL;
}

static void *short_life(void *pointer)
{
	free(malloc(100));
	return pointer;
}

static void *churn_threads(void *unused)
{
	while (!shared->stop) {
		pthread_t thread;
		void *result = NULL;

		if (pthread_create(&thread, NULL, short_life, unused))
			fault_wrong(3);
		else if (pthread_join(thread, &result) || result != unused)
			fault_wrong(4);
		fault_round();
	}
	return NULL;
}

/* Nothing but questions that the vdso answers. */
static void *read_clocks(void *unused)
{
	struct timespec last = {}, now, unit;
	struct timeval day;

	(void)unused;
	while (!shared->stop) {
		for (int i = 0; i < 100; i++) {
			if (clock_gettime(CLOCK_MONOTONIC, &now) || gettimeofday(&day, NULL) ||
			    clock_getres(CLOCK_MONOTONIC, &unit))
				fault_wrong(5);
			if (now.tv_sec < last.tv_sec ||
			    (now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec))
				fault_wrong(6);
			if (unit.tv_sec || !unit.tv_nsec || day.tv_usec >= 1000000)
				fault_wrong(7);
			last = now;
		}
		fault_round();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void *(*run)(void *);
	} kinds[] = {{"heap", churn_heap},
		     {"malloc", only_malloc},
		     {"dlopen", churn_libraries},
		     {"threads", churn_threads},
		     {"clocks", read_clocks}};
	int threads = argc > 3 ? atoi(argv[3]) : 1;
	pthread_t others[64];

	fault_open(argv[1]);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, argv[2]))
			continue;
		for (int n = 1; n < threads; n++)
			pthread_create(&others[n], NULL, kinds[i].run, (void *)(uintptr_t)n);
		fault_ready();
		kinds[i].run(NULL);
		for (int n = 1; n < threads; n++)
			pthread_join(others[n], NULL);
	}
	return fault_end();
}
