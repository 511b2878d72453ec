/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The allocators. Everything up to sample() is called for each object that Python makes. */
#include <stdio.h>
#include <string.h>

#include "inside/libc.h"
#include "agent/ring_private.h"
#include "agent/sites_private.h"

enum { MEM = 1, OBJ = 2, DOMAINS = 2 };

static const struct prba_python_table *const py = &prba_python;

/** What PyMem_GetAllocator() fills in, from 3.5 on. */
struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t size);
	void *(*calloc)(void *context, size_t count, size_t size);
	void *(*realloc)(void *context, void *block, size_t size);
	void (*free)(void *context, void *block);
};

/**
 * Bytes until the next sample, and the whole distance. All threads share them: usually only the
 * thread that holds the GIL changes them. Since 3.12 interpreters may have separate GILs; then
 * some bytes may be missing from the count, and nothing else goes wrong.
 */
static struct {
	int64_t left;
	struct allocator below[DOMAINS];
} hot __attribute__((aligned(64))); /* "obj" is in one line of the cache with it */
static int64_t gap;
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

static __attribute__((noinline, cold)) void sample(const void *block, size_t size)
{
	const void *thread = on ? prba_sites_thread() : NULL;
	int64_t bytes = gap - hot.left;

	gap = hot.left = on ? next_gap() : INT64_MAX;
	prba_sites_count(bytes, !thread);
	if (block && thread)
		prba_sites_allocated(block, size, thread);
}

#define LIKELY(condition) __builtin_expect(condition, 1)

/* What happens seldom is in functions of its own, so that the others need no stack. */
#define SELDOM static __attribute__((noinline, cold))

/* A block that was to be moved and was not, since there is no memory, is taken for freed. */
SELDOM void *realloc_noted(void *context, void *block, size_t size, const struct allocator *to)
{
	prba_sites_freed(block);
	block = to->realloc(context, block, size);
	if (hot.left < 0)
		sample(block, size);
	return block;
}

SELDOM void *malloc_noted(void *context, size_t size, const struct allocator *to)
{
	void *block = to->malloc(context, size);

	sample(block, size);
	return block;
}

SELDOM void *calloc_noted(void *context, size_t count, size_t size, const struct allocator *to)
{
	void *block = to->calloc(context, count, size);

	sample(block, count * size);
	return block;
}

SELDOM void free_noted(void *context, void *block, const struct allocator *to)
{
	prba_sites_freed(block);
	to->free(context, block);
}

#define ALLOCATORS(domain)                                                                      \
	static void *malloc_##domain(void *context, size_t size)                                \
	{                                                                                       \
		hot.left -= (int64_t)size;                                                      \
		return LIKELY(hot.left >= 0)                                                    \
			       ? hot.below[OBJ - domain].malloc(context, size)                  \
			       : malloc_noted(context, size, &hot.below[OBJ - domain]);         \
	}                                                                                       \
	static void *calloc_##domain(void *context, size_t count, size_t size)                  \
	{                                                                                       \
		hot.left -= (int64_t)(count * size);                                            \
		return LIKELY(hot.left >= 0)                                                    \
			       ? hot.below[OBJ - domain].calloc(context, count, size)           \
			       : calloc_noted(context, count, size, &hot.below[OBJ - domain]);  \
	}                                                                                       \
	static void *realloc_##domain(void *context, void *block, size_t size)                  \
	{                                                                                       \
		hot.left -= (int64_t)size;                                                      \
		return LIKELY(hot.left >= 0 && !prba_sites_filter[prba_sites_hash(block)])      \
			       ? hot.below[OBJ - domain].realloc(context, block, size)          \
			       : realloc_noted(context, block, size, &hot.below[OBJ - domain]); \
	}                                                                                       \
	static void free_##domain(void *context, void *block)                                   \
	{                                                                                       \
		if (LIKELY(!prba_sites_filter[prba_sites_hash(block)]))                         \
			hot.below[OBJ - domain].free(context, block);                           \
		else                                                                            \
			free_noted(context, block, &hot.below[OBJ - domain]);                   \
	}

ALLOCATORS(MEM)
ALLOCATORS(OBJ)

static const struct allocator ours[DOMAINS] = {
	{NULL, malloc_MEM, calloc_MEM, realloc_MEM, free_MEM},
	{NULL, malloc_OBJ, calloc_OBJ, realloc_OBJ, free_OBJ},
};

/** The allocator of a domain; true if that is ours. */
static bool look(int domain, struct allocator *ret)
{
	py->PyMem_GetAllocator(domain, ret);
	return ret->malloc == ours[domain - 1].malloc;
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
	state = ((uint64_t)prba_ring_clock(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 32) *
			0x9e3779b97f4a7c15u |
		1;
	gap = hot.left = next_gap();
	on = true;
	for (int domain = MEM; domain <= OBJ; domain++) {
		struct allocator allocator = ours[domain - 1];

		if (look(domain, &found))
			continue;
		hot.below[OBJ - domain] = found;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		/* Whoever reads both half and half calls ours or theirs, with what theirs needs. */
		allocator.context = found.context;
		py->PyMem_SetAllocator(domain, &allocator);
		installed[domain - 1] = true;
	}
	return NULL;
}

void prba_sites_silence(void)
{
	on = false;
	prba_sites_count(gap - hot.left, false);
	gap = hot.left = INT64_MAX;
	memset(prba_sites_filter, 0, sizeof(prba_sites_filter));
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

	if (on)
		prba_sites_silence();
	for (int domain = MEM; domain <= OBJ; domain++) {
		if (!installed[domain - 1] || !look(domain, &found))
			continue;
		py->PyMem_SetAllocator(domain, &hot.below[OBJ - domain]);
		installed[domain - 1] = false;
		others_call |= has_other_gils();
	}
	return !installed[0] && !installed[1];
}

bool prba_sites_stays(void)
{
	return installed[0] || installed[1] || others_call;
}
