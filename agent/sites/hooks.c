/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The allocators. Everything up to sample() is called for each object that Python makes. */
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>

#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/sites/private.h"

enum { MEM = 1, OBJ = 2, DOMAINS = 2, SLOTS = 1024 };

static const struct prba_python_table *const py = &prba_python;

/** Filled in by PyMem_GetAllocator(), from 3.5 on. */
struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t size);
	void *(*calloc)(void *context, size_t count, size_t size);
	void *(*realloc)(void *context, void *block, size_t size);
	void (*free)(void *context, void *block);
};

/** Bytes until the next sample, and the whole distance. */
struct counter {
	int64_t left, gap;
};

/**
 * All threads share the counter: usually only the thread that holds the GIL changes it. Since 3.12
 * interpreters may have separate GILs; then some bytes may be missing from the count, and nothing
 * else goes wrong.
 */
static struct {
	struct counter counter;
	struct allocator below[DOMAINS];
} hot __attribute__((aligned(64))); /* "obj" is in one line of the cache with it */

/** In free-threaded builds threads have counters; two that share one may lose some bytes. */
static struct {
	struct counter counter;
} slots[SLOTS] __attribute__((aligned(64)));

static bool installed[DOMAINS], on;
static bool others_call;     /* threads of another GIL may be in our code */
static uint64_t mean, state; /* state: of the random numbers */

/** -ln() of a random number between 0 and 1, to six digits. */
static double exponential(uint64_t random)
{
	const double ln2 = 0.6931471805599453;
	double u = (double)(random >> 11 | 1) * 0x1p-53, t, square;
	uint64_t bits;
	int exponent;

	memcpy(&bits, &u, sizeof(bits));
	exponent = (int)(bits >> 52) - 1023;
	bits = (bits & (UINT64_MAX >> 12)) | UINT64_C(1023) << 52;
	memcpy(&u, &bits, sizeof(u));
	t = (u - 1) / (u + 1);
	square = t * t;
	return -exponent * ln2 -
	       2 * t * (1 + square * (1. / 3 + square * (1. / 5 + square * (1. / 7 + square / 9))));
}

static int64_t next_gap(void)
{
	/* Marsaglia's xorshift */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return 1 + (int64_t)(exponential(state) * (double)mean);
}

static inline struct counter *own_counter(void)
{
	uint64_t thread;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(thread));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
#endif
	return &slots[thread * 0x9e3779b97f4a7c15u >> 54].counter;
}

_Static_assert(SLOTS == 1 << (64 - 54), "the slots that a hash has");

static __attribute__((noinline, cold)) void sample(struct counter *counter, const void *block,
						   size_t size)
{
	const void *thread = on ? prba_sites_thread() : NULL;

	prba_sites_lock();
	prba_sites_count(counter->gap - counter->left, !thread);
	counter->gap = counter->left = on ? next_gap() : INT64_MAX;
	if (block && thread)
		prba_sites_allocated(block, size, thread);
	prba_sites_unlock();
}

#define LIKELY(condition) __builtin_expect(condition, 1)

/* Rare work is in functions of its own, so that the others need no stack. */
#define SELDOM static __attribute__((noinline, cold))

/* A block that was to be moved and was not, since there is no memory, is taken for freed. */
SELDOM void *realloc_noted(void *context, void *block, size_t size, const struct allocator *to,
			   struct counter *counter)
{
	prba_sites_freed(block);
	block = to->realloc(context, block, size);
	if (counter->left < 0)
		sample(counter, block, size);
	return block;
}

SELDOM void *malloc_noted(void *context, size_t size, const struct allocator *to,
			  struct counter *counter)
{
	void *block = to->malloc(context, size);

	sample(counter, block, size);
	return block;
}

SELDOM void *calloc_noted(void *context, size_t count, size_t size, const struct allocator *to,
			  struct counter *counter)
{
	void *block = to->calloc(context, count, size);

	sample(counter, block, count * size);
	return block;
}

SELDOM void free_noted(void *context, void *block, const struct allocator *to)
{
	prba_sites_freed(block);
	to->free(context, block);
}

#define ALLOCATORS(domain, build, COUNTER)                                                       \
	static void *malloc_##domain##build(void *context, size_t size)                          \
	{                                                                                        \
		struct counter *counter = COUNTER;                                               \
                                                                                                 \
		counter->left -= (int64_t)size;                                                  \
		return LIKELY(counter->left >= 0)                                                \
			       ? hot.below[OBJ - domain].malloc(context, size)                   \
			       : malloc_noted(context, size, &hot.below[OBJ - domain], counter); \
	}                                                                                        \
	static void *calloc_##domain##build(void *context, size_t count, size_t size)            \
	{                                                                                        \
		struct counter *counter = COUNTER;                                               \
                                                                                                 \
		counter->left -= (int64_t)(count * size);                                        \
		return LIKELY(counter->left >= 0)                                                \
			       ? hot.below[OBJ - domain].calloc(context, count, size)            \
			       : calloc_noted(context, count, size, &hot.below[OBJ - domain],    \
					      counter);                                          \
	}                                                                                        \
	static void *realloc_##domain##build(void *context, void *block, size_t size)            \
	{                                                                                        \
		struct counter *counter = COUNTER;                                               \
                                                                                                 \
		counter->left -= (int64_t)size;                                                  \
		return LIKELY(counter->left >= 0 && !prba_sites_filter[prba_sites_hash(block)])  \
			       ? hot.below[OBJ - domain].realloc(context, block, size)           \
			       : realloc_noted(context, block, size, &hot.below[OBJ - domain],   \
					       counter);                                         \
	}

#define RELEASES(domain)                                                      \
	static void free_##domain(void *context, void *block)                 \
	{                                                                     \
		if (LIKELY(!prba_sites_filter[prba_sites_hash(block)]))       \
			hot.below[OBJ - domain].free(context, block);         \
		else                                                          \
			free_noted(context, block, &hot.below[OBJ - domain]); \
	}

ALLOCATORS(MEM, , &hot.counter)
ALLOCATORS(OBJ, , &hot.counter)
ALLOCATORS(MEM, _free_threaded, own_counter())
ALLOCATORS(OBJ, _free_threaded, own_counter())
RELEASES(MEM)
RELEASES(OBJ)

static const struct allocator with_gil[DOMAINS] =
	{
		{NULL, malloc_MEM, calloc_MEM, realloc_MEM, free_MEM},
		{NULL, malloc_OBJ, calloc_OBJ, realloc_OBJ, free_OBJ},
},
			      without_gil[DOMAINS] = {
				      {NULL, malloc_MEM_free_threaded, calloc_MEM_free_threaded,
				       realloc_MEM_free_threaded, free_MEM},
				      {NULL, malloc_OBJ_free_threaded, calloc_OBJ_free_threaded,
				       realloc_OBJ_free_threaded, free_OBJ},
};

static const struct allocator *ours(int domain)
{
	return &(prba_python_stops_world() ? without_gil : with_gil)[domain - 1];
}

/** The allocator of a domain; true if that is ours. */
static bool look(int domain, struct allocator *ret)
{
	py->PyMem_GetAllocator(domain, ret);
	return ret->malloc == ours(domain)->malloc;
}

/** Distances to the first samples. */
static void begin_to_count(void)
{
	hot.counter.gap = hot.counter.left = next_gap();
	for (size_t i = 0; prba_python_stops_world() && i < SLOTS; i++)
		slots[i].counter.gap = slots[i].counter.left = next_gap();
}

/** Until the next beginning; gives the bytes since the last sample. */
static int64_t end_to_count(struct counter *counter)
{
	int64_t bytes = counter->gap - counter->left;

	counter->gap = counter->left = INT64_MAX;
	return bytes;
}

const char *prba_sites_install(uint64_t bytes)
{
	struct allocator found;

	if (!py->PyMem_GetAllocator || !py->PyMem_SetAllocator ||
	    (!py->PyThreadState_GetUnchecked && !py->_PyThreadState_UncheckedGet) || !py->Py_IncRef)
		return "this Python does not let its allocators be replaced";
	for (int domain = MEM; domain <= OBJ; domain++)
		if (!look(domain, &found) && installed[domain - 1])
			return "another allocator was installed over that of an earlier sampling "
			       "(tracemalloc?), and calls it";
	mean = bytes;
	state = ((uint64_t)prba_clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 32) *
			0x9e3779b97f4a7c15u |
		1;
	begin_to_count();
	on = true;
	for (int domain = MEM; domain <= OBJ; domain++) {
		struct allocator allocator = *ours(domain);

		if (look(domain, &found))
			continue;
		hot.below[OBJ - domain] = found;
		/* Threads that call ours without a GIL see what is below. */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (prba_python_stops_world())
			syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0);
		/*
		 * A thread that sees the structure half written calls our function or theirs, with
		 * their context either way.
		 */
		allocator.context = found.context;
		py->PyMem_SetAllocator(domain, &allocator);
		installed[domain - 1] = true;
	}
	return NULL;
}

void prba_sites_silence(void)
{
	on = false;
	prba_sites_lock();
	prba_sites_count(end_to_count(&hot.counter), false);
	for (size_t i = 0; prba_python_stops_world() && i < SLOTS; i++)
		prba_sites_count(end_to_count(&slots[i].counter), false);
	memset(prba_sites_filter, 0, sizeof(prba_sites_filter));
	prba_sites_unlock();
}

/**
 * Without a GIL some thread may be in our code. After the threads have stopped once none is: there
 * is no place in it where they stop. False: they cannot be stopped (3.13).
 */
static bool see_threads_off(void)
{
	if (!prba_python_stops_world())
		return true;
	if (prba_python_pause_refusal())
		return false;
	prba_python_stop_world();
	prba_python_start_world();
	return true;
}

/** From 3.12 on each interpreter may have a GIL of its own; ours says nothing of its threads. */
static bool has_other_gils(void)
{
	int major = 0, minor = 0;
	void *first = py->PyInterpreterState_Head ? py->PyInterpreterState_Head() : NULL;

	if (sscanf(py->Py_GetVersion(), "%d.%d", &major, &minor) != 2 || minor < 12)
		return false;
	return !first || !py->PyInterpreterState_Next || py->PyInterpreterState_Next(first);
}

bool prba_sites_remove(void)
{
	struct allocator found;
	bool removed = false;

	if (on)
		prba_sites_silence();
	for (int domain = MEM; domain <= OBJ; domain++) {
		if (!installed[domain - 1] || !look(domain, &found))
			continue;
		py->PyMem_SetAllocator(domain, &hot.below[OBJ - domain]);
		installed[domain - 1] = false;
		others_call |= has_other_gils();
		removed = true;
	}
	if (removed)
		others_call |= !see_threads_off();
	return !installed[0] && !installed[1];
}

bool prba_sites_stays(void)
{
	return installed[0] || installed[1] || others_call;
}
