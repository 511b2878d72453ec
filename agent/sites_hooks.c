/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The allocators. Everything up to sample() is called for each object that Python makes. */
#include <string.h>

#include "agent/libc.h"
#include "agent/sites_private.h"

enum { SLOT_BITS = 6, MEM = 1, OBJ = 2, DOMAINS = 2 };

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
 * How far it is to the next sample. A process has one GIL, or one for each interpreter from 3.12
 * on; threads of several share a slot seldom, and then count inexactly, which does no other harm.
 */
struct slot {
	int64_t left, gap; /* bytes */
	uint64_t random;
} __attribute__((aligned(64)));

static struct slot slots[1 << SLOT_BITS];
static struct allocator below[DOMAINS];
static bool installed[DOMAINS], on;
static uint64_t mean;

static inline struct slot *own_slot(void)
{
	uint64_t thread;

#ifdef __x86_64__
	__asm__("mov %%fs:0, %0" : "=r"(thread));
#else
	thread = (uint64_t)(uintptr_t)__builtin_thread_pointer();
#endif
	return &slots[thread * 0x9e3779b97f4a7c15u >> (64 - SLOT_BITS)];
}

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

static int64_t next_gap(struct slot *slot)
{
	/* Marsaglia's xorshift */
	slot->random ^= slot->random << 13;
	slot->random ^= slot->random >> 7;
	slot->random ^= slot->random << 17;
	return 1 + (int64_t)(exponential(slot->random) * (double)mean);
}

static __attribute__((noinline, cold)) void sample(struct slot *slot, const void *block,
						   size_t size)
{
	const void *thread = on ? prba_sites_thread() : NULL;
	int64_t bytes = slot->gap - slot->left;

	slot->gap = slot->left = on ? next_gap(slot) : INT64_MAX;
	prba_sites_count(bytes, !thread);
	if (block && thread)
		prba_sites_allocated(block, size, thread);
}

#define LIKELY(condition) __builtin_expect(condition, 1)

/* A block that was to be moved and was not, since there is no memory, is taken for freed. */
#define ALLOCATORS(domain)                                                                 \
	static void *malloc_##domain(void *context, size_t size)                           \
	{                                                                                  \
		struct slot *slot = own_slot();                                            \
		void *block;                                                               \
                                                                                           \
		slot->left -= (int64_t)size;                                               \
		if (LIKELY(slot->left >= 0))                                               \
			return below[domain - 1].malloc(context, size);                    \
		block = below[domain - 1].malloc(context, size);                           \
		sample(slot, block, size);                                                 \
		return block;                                                              \
	}                                                                                  \
	static void *calloc_##domain(void *context, size_t count, size_t size)             \
	{                                                                                  \
		struct slot *slot = own_slot();                                            \
		size_t bytes = count * size;                                               \
		void *block;                                                               \
                                                                                           \
		slot->left -= (int64_t)bytes;                                              \
		if (LIKELY(slot->left >= 0))                                               \
			return below[domain - 1].calloc(context, count, size);             \
		block = below[domain - 1].calloc(context, count, size);                    \
		sample(slot, block, bytes);                                                \
		return block;                                                              \
	}                                                                                  \
	static void *realloc_##domain(void *context, void *block, size_t size)             \
	{                                                                                  \
		struct slot *slot = own_slot();                                            \
                                                                                           \
		slot->left -= (int64_t)size;                                               \
		if (LIKELY(!prba_sites_filter[prba_sites_hash(block)] && slot->left >= 0)) \
			return below[domain - 1].realloc(context, block, size);            \
		prba_sites_freed(block);                                                   \
		block = below[domain - 1].realloc(context, block, size);                   \
		if (slot->left < 0)                                                        \
			sample(slot, block, size);                                         \
		return block;                                                              \
	}                                                                                  \
	static void free_##domain(void *context, void *block)                              \
	{                                                                                  \
		if (!LIKELY(!prba_sites_filter[prba_sites_hash(block)]))                   \
			prba_sites_freed(block);                                           \
		below[domain - 1].free(context, block);                                    \
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

static void begin(struct slot *slot, uint64_t seed)
{
	slot->random = (uint64_t)prba_now_ms() * 0x9e3779b97f4a7c15u ^ seed * 0xbf58476d1ce4e5b9 ^
		       (uint64_t)(uintptr_t)slot;
	slot->random |= 1;
	for (int i = 0; i < 16; i++)
		next_gap(slot);
	slot->gap = slot->left = next_gap(slot);
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
	for (uint64_t i = 0; i < 1 << SLOT_BITS; i++)
		begin(&slots[i], i + 1);
	on = true;
	for (int domain = MEM; domain <= OBJ; domain++) {
		struct allocator allocator = ours[domain - 1];

		if (look(domain, &found))
			continue;
		below[domain - 1] = found;
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
	for (size_t i = 0; i < 1 << SLOT_BITS; i++) {
		prba_sites_count(slots[i].gap - slots[i].left, false);
		slots[i].gap = slots[i].left = INT64_MAX;
	}
	memset(prba_sites_filter, 0, sizeof(prba_sites_filter));
}

bool prba_sites_remove(void)
{
	struct allocator found;

	if (on)
		prba_sites_silence();
	for (int domain = MEM; domain <= OBJ; domain++) {
		if (!installed[domain - 1] || !look(domain, &found))
			continue;
		py->PyMem_SetAllocator(domain, &below[domain - 1]);
		installed[domain - 1] = false;
	}
	return !installed[0] && !installed[1];
}

bool prba_sites_stays(void)
{
	return installed[0] || installed[1];
}
