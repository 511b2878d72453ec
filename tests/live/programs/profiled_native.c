/* SPDX-License-Identifier: GPL-3.0-or-later */
/* C functions that use a processor for a given time. A library for profiled_native.py;
 * with
 * -DTHREADS also of threads; with -DPROGRAM a program that takes the orders of profiled.py without
 * any Python. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP() __asm__ volatile("" ::: "memory")

static volatile unsigned long sum;

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

NOINLINE void native_burn(double seconds)
{
	double end = used() + seconds;

	while (used() < end)
		for (int i = 0; i < 1000; i++)
			sum += (unsigned long)i;
}

NOINLINE void native_short(double seconds)
{
	native_burn(seconds);
	KEEP();
}

NOINLINE void native_long(double seconds)
{
	native_burn(seconds);
	KEEP();
}

/* Two chains of calls. Each function is called by the one before it of its own chain alone. */
typedef void native_leaf(void);

#define LINK(side, number, next)                         \
	NOINLINE void side##_##number(native_leaf *leaf) \
	{                                                \
		sum++;                                   \
		next(leaf);                              \
		KEEP();                                  \
	}
#define CHAIN(side)                               \
	NOINLINE void side##_9(native_leaf *leaf) \
	{                                         \
		leaf();                           \
		KEEP();                           \
	}                                         \
	LINK(side, 8, side##_9)                   \
	LINK(side, 7, side##_8)                   \
	LINK(side, 6, side##_7)                   \
	LINK(side, 5, side##_6)                   \
	LINK(side, 4, side##_5)                   \
	LINK(side, 3, side##_4)                   \
	LINK(side, 2, side##_3)                   \
	LINK(side, 1, side##_2)                   \
	LINK(side, 0, side##_1)

CHAIN(left)
CHAIN(right)

static void nothing(void)
{
	sum++;
}

NOINLINE void native_churn(double seconds)
{
	double end = used() + seconds;

	while (used() < end)
		for (int i = 0; i < 100; i++) {
			left_0(nothing);
			right_0(nothing);
		}
}

NOINLINE void native_deep(int depth, double seconds)
{
	volatile char room[1000];

	room[0] = 0;
	if (depth)
		native_deep(depth - 1, seconds);
	else
		native_burn(seconds);
	KEEP();
}

#if defined(THREADS) || defined(PROGRAM)
static void *native_thread(void *seconds)
{
	native_burn(*(double *)seconds);
	KEEP();
	return NULL;
}

NOINLINE void native_threads(int count, double seconds)
{
	pthread_t threads[64];

	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, native_thread, &seconds);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}
#endif

#ifdef PROGRAM
static double spent[2];

static NOINLINE void turn(int which, void (*function)(double), double seconds)
{
	double begin = used();

	function(seconds);
	spent[which] += used() - begin;
}

static NOINLINE void go(double seconds)
{
	double end = used() + seconds;

	while (used() < end) {
		turn(0, native_short, 0.005);
		turn(1, native_long, 0.015);
	}
	printf("native_short %.3f native_long %.3f\n", 1000 * spent[0], 1000 * spent[1]);
}

static NOINLINE void load(const char *path, double seconds)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*function)(double) = library ? dlsym(library, "native_short") : NULL;

	if (!function)
		exit(1);
	function(seconds);
	printf("done\n");
}

#ifdef __x86_64__
/* Code generated at run time: it calls the address in %rcx. */
static const unsigned char made_codes[][16] = {
	/* sub $8,%rsp; call *%rcx; add $8,%rsp; ret, as CPython writes it */
	{0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3},
	/* push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret, the same */
	{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3},
	/* push %rbp; mov %rsp,%rbp; push %rbx; push %rax; call *%rcx; mov -8(%rbp),%rbx; leave; ret
	 */
	{0x55, 0x48, 0x89, 0xe5, 0x53, 0x50, 0xff, 0xd1, 0x48, 0x8b, 0x5d, 0xf8, 0xc9, 0xc3},
	/* push %rbp; push %rbx; xor %ebp,%ebp; call *%rcx; pop %rbx; pop %rbp; ret */
	{0x55, 0x53, 0x31, 0xed, 0xff, 0xd1, 0x5b, 0x5d, 0xc3},
};

typedef void made_function(double seconds, long a, long b, long c, void (*function)(double));

static NOINLINE void made(int which, const char *name, double seconds)
{
	unsigned char *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *file;

	memcpy(code, made_codes[which], sizeof(made_codes[which]));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	if (*name) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
		file = fopen(path, "w");
		fprintf(file, "%lx %x %s\n", (unsigned long)code, 16, name);
		fclose(file);
	}
	printf("made %lx\n", (unsigned long)code);
	((made_function *)code)(seconds, 0, 0, 0, native_burn);
	KEEP();
}
#else
static void made(int which, const char *name, double seconds)
{
	(void)which;
	(void)name;
	(void)seconds;
	printf("not here\n");
}
#endif

int main(void)
{
	char line[4096], word[16], path[4000] = "";
	double number;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%15s %lf %3999s", word, &number, path) < 2)
			break;
		if (!strcmp(word, "go"))
			go(number);
		else if (!strcmp(word, "churn"))
			native_churn(number);
		else if (!strcmp(word, "deep"))
			native_deep((int)number, 600);
		else if (!strcmp(word, "threads"))
			native_threads(16, number);
		else if (!strcmp(word, "made"))
			made((int)number, path, 600);
		else if (!strcmp(word, "load"))
			load(path, number);
	}
	return 0;
}
#endif
