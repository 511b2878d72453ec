/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The buffer that the allocators write, and the sampled blocks and code objects that they track. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "agent/inside/finalization.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/sites/private.h"

enum {
	BLOCKS = 1 << 16, /* places for blocks that were sampled; half of them are used at most */
	CODES = 1 << 15,  /* the same of code objects */
	LOCK_US = 10000,
};

static const struct prba_python_table *const py = &prba_python;

uint8_t prba_sites_filter[PRBA_SITES_FILTER];

/* In one mapping. The tables are open addressing; 0 is empty. */
struct memory {
	uint64_t blocks[BLOCKS];
	uint64_t codes[CODES];
	/* From here on others read it. */
	union {
		struct prb_sites_header header;
		char page[PRB_SITES_HEADER];
	};
	uint64_t words[];
};

/* Only holders of the main interpreter's GIL touch it, or of the lock. Others count here. */
static struct memory *memory;
static uint64_t bytes_in_all, other_bytes;
static unsigned block_count, code_count;
static int life; /* of the interpreter that the code objects are of */

/* So small that it stays in the first level of the cache; where it is full, it says "perhaps". */
enum { FILTER_FULL = UINT8_MAX };

static _Atomic uint32_t lock; /* 1: taken, 2: others wait */

void prba_sites_lock(void)
{
	int error = errno;
	uint32_t none = 0;

	if (!prba_python_stops_world() || atomic_compare_exchange_strong(&lock, &none, 1))
		return;
	while (atomic_exchange(&lock, 2))
		prba_wait_for(&lock, 2, LOCK_US);
	errno = error;
}

void prba_sites_unlock(void)
{
	int error = errno;

	if (prba_python_stops_world() && atomic_exchange(&lock, 0) == 2)
		syscall(SYS_futex, &lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = error;
}

static size_t place_of(const uint64_t *table, size_t size, uint64_t key)
{
	size_t at = (size_t)((key >> 4) * 0x9e3779b97f4a7c15u >> 40) & (size - 1);

	while (table[at] && table[at] != key)
		at = (at + 1) & (size - 1);
	return at;
}

/** Removes what is at a place; what follows without a gap may have wanted that place. */
static void take_out(uint64_t *table, size_t size, size_t at)
{
	table[at] = 0;
	for (size_t next = (at + 1) & (size - 1); table[next]; next = (next + 1) & (size - 1)) {
		uint64_t key = table[next];

		table[next] = 0;
		table[place_of(table, size, key)] = key;
	}
}

static size_t length_of(size_t words)
{
	return sizeof(struct memory) + words * sizeof(uint64_t);
}

int prba_sites_open(uint64_t mean)
{
	size_t words =
		prba_sites_recipe[PRB_SITES_NATIVE] ? PRB_SITES_NATIVE_WORDS : PRB_SITES_WORDS;
	void *fresh = mmap(NULL, length_of(words), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fresh == MAP_FAILED)
		return errno;
	memory = fresh;
	block_count = code_count = 0;
	bytes_in_all = other_bytes = 0;
	memset(prba_sites_filter, 0, sizeof(prba_sites_filter));
	life = prba_finalization_number();
	memory->header = (struct prb_sites_header){.version = PRB_SITES_VERSION,
						   .words = words,
						   .mean = mean,
						   .began = prba_clock_ns(CLOCK_MONOTONIC)};
	return 0;
}

void prba_sites_close(void)
{
	struct memory *was = memory;

	if (!was)
		return;
	prba_sites_lock();
	memory = NULL;
	prba_sites_unlock();
	for (size_t i = 0; life == prba_finalization_number() && i < CODES; i++)
		if (was->codes[i])
			py->Py_DecRef((object *)(uintptr_t)was->codes[i]);
	munmap(was, length_of(was->header.words));
}

void prba_sites_drop(void)
{
	if (memory)
		munmap(memory, length_of(memory->header.words));
	memory = NULL;
	memset(prba_sites_filter, 0, sizeof(prba_sites_filter));
	lock = 0;
}

struct prb_sites_header *prba_sites_header(void)
{
	return memory ? &memory->header : NULL;
}

void prba_sites_count(int64_t bytes, bool other)
{
	if (bytes <= 0)
		return;
	__atomic_fetch_add(&bytes_in_all, (uint64_t)bytes, __ATOMIC_RELAXED);
	if (other)
		__atomic_fetch_add(&other_bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
}

void prba_sites_tell_count(void)
{
	if (!memory)
		return;
	memory->header.bytes = __atomic_load_n(&bytes_in_all, __ATOMIC_RELAXED);
	memory->header.other_bytes = __atomic_load_n(&other_bytes, __ATOMIC_RELAXED);
}

/** Words from @p at on, counted from the beginning. A reader sees them when `head` is beyond. */
static void put(uint64_t at, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memory->words[(at + i) & (memory->header.words - 1)] = words[i];
}

static void publish(size_t count)
{
	__atomic_store_n(&memory->header.head, memory->header.head + count, __ATOMIC_RELEASE);
}

/**
 * Copies the stack from @p sp on, as far as it goes; how many words. The kernel copies, so that
 * what lies behind the stack need not be known.
 */
static size_t put_stack(uint64_t at, uint64_t sp)
{
	size_t first = at & (memory->header.words - 1), all = PRB_SITES_STACK;
	size_t part = (memory->header.words - first) * sizeof(uint64_t);
	struct iovec here[2] = {{&memory->words[first], part < all ? part : all},
				{memory->words, part < all ? all - part : 0}};
	struct iovec there = {(void *)(uintptr_t)sp, all}; /* NOLINT(performance-no-int-to-ptr) */
	long copied = syscall(SYS_process_vm_readv, getpid(), here, 2UL, &there, 1UL, 0UL);

	return copied > 0 ? (size_t)copied / sizeof(uint64_t) : 0;
}

/**
 * Keeps a code object alive, so that its address says what it is until it was read. @p word has it,
 * perhaps with a mark; or is 0, of a frame that has none.
 */
static uint64_t hold(uint64_t word)
{
	uint64_t code = word & ~UINT64_C(1);
	size_t at = place_of(memory->codes, CODES, code);

	if (memory->codes[at] || !code)
		return word;
	if (code_count >= CODES / 2) {
		memory->header.codes_dropped++;
		return 0;
	}
	code_count++;
	py->Py_IncRef((object *)(uintptr_t)code);
	memory->codes[at] = code;
	return word;
}

static void remember(const void *block)
{
	uint64_t key = (uint64_t)(uintptr_t)block;
	size_t at = place_of(memory->blocks, BLOCKS, key);
	uint8_t *filter = &prba_sites_filter[prba_sites_hash(block)];

	/* If it is there already, it was freed without a call of ours. */
	if (memory->blocks[at])
		return;
	if (block_count >= BLOCKS / 2) {
		memory->header.untracked++;
		return;
	}
	block_count++;
	memory->blocks[at] = key;
	if (*filter != FILTER_FULL)
		++*filter;
}

void prba_sites_allocated(const void *block, size_t size, const void *thread)
{
	static struct prba_sites_stack stack; /* under the GIL, and not on a stack that may end */
	static uint64_t record[PRB_SITES_RECORD];
	uint64_t registers[PRB_SITES_REGISTERS] = {}, at = memory ? memory->header.head : 0;
	int error = errno;

	if (!memory)
		return;
	prba_sites_walk(thread, false, &stack);
	record[0] = PRB_SITES_FIRST(PRB_SITES_ALLOCATED, stack.count, stack.more,
				    (uint32_t)syscall(SYS_gettid));
	record[1] = (uint64_t)prba_clock_ns(CLOCK_MONOTONIC);
	record[2] = (uint64_t)(uintptr_t)block;
	record[3] = size;
	record[4] = 0;
	for (unsigned i = 0; i < stack.count; i++) {
		uint64_t *words = &record[PRB_SITES_ALLOCATED_WORDS + 2 * i];
		bool has_code = stack.words[2 * i];

		words[0] = hold(stack.words[2 * i]);
		words[1] = words[0] || !has_code ? stack.words[2 * i + 1] : 0;
	}
	remember(block);
	prba_sites_tell_count();
	at += PRB_SITES_ALLOCATED_WORDS + 2 * stack.count;
	if (prba_sites_recipe[PRB_SITES_NATIVE]) {
		prba_sites_registers(registers);
		put(at, registers, PRB_SITES_REGISTERS);
		record[4] = PRB_SITES_REGISTERS + put_stack(at + PRB_SITES_REGISTERS, registers[1]);
	}
	put(memory->header.head, record, PRB_SITES_ALLOCATED_WORDS + 2 * stack.count);
	publish(PRB_SITES_ALLOCATED_WORDS + 2 * stack.count + record[4]);
	errno = error;
}

static bool forget(const void *block)
{
	uint64_t record[PRB_SITES_FREED_WORDS];
	uint8_t *filter = &prba_sites_filter[prba_sites_hash(block)];
	int error = errno;
	size_t at;

	if (!memory)
		return false;
	at = place_of(memory->blocks, BLOCKS, (uint64_t)(uintptr_t)block);
	if (!memory->blocks[at])
		return false;
	take_out(memory->blocks, BLOCKS, at);
	block_count--;
	if (*filter != FILTER_FULL)
		--*filter;
	record[0] = PRB_SITES_FIRST(PRB_SITES_FREED, 0, 0, 0);
	record[1] = (uint64_t)prba_clock_ns(CLOCK_MONOTONIC);
	record[2] = (uint64_t)(uintptr_t)block;
	put(memory->header.head, record, PRB_SITES_FREED_WORDS);
	publish(PRB_SITES_FREED_WORDS);
	errno = error;
	return true;
}

bool prba_sites_freed(const void *block)
{
	bool known;

	if (!memory || !block || !(prba_python_stops_world() || prba_sites_thread()))
		return false;
	prba_sites_lock();
	known = forget(block);
	prba_sites_unlock();
	return known;
}
