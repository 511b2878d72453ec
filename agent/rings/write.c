/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rings/write.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/inside/libc.h"
#include "agent/rings/history.h"
#include "agent/rings/private.h"

enum {
	TRIES = 64, /* rows that may find a busy slot before one is given up */
	AHEAD = 8,  /* slots that are fetched before they are written to */
	CACHE_LINE = 64,
	WIPE = 18, /* MADV_WIPEONFORK, of Linux 4.14 */
};

static pthread_key_t origin_key;
static _Atomic uint32_t *own_pid; /* becomes 0 in a child, which any kind of fork made */

int prba_ring_threads_init(void)
{
	void *page;

	if (own_pid)
		return 0;
	if (!pthread_key_create || !pthread_getspecific || !pthread_setspecific)
		return ENOSYS;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return ENOMEM;
	if (madvise(page, 4096, WIPE) || pthread_key_create(&origin_key, NULL)) {
		munmap(page, 4096);
		return ENOSYS;
	}
	own_pid = page;
	return 0;
}

/** The pid, which is asked for once. */
static uint32_t own_number(void)
{
	uint32_t pid = __atomic_load_n((uint32_t *)own_pid, __ATOMIC_RELAXED);

	if (!pid) {
		pid = (uint32_t)syscall(SYS_getpid);
		__atomic_store_n((uint32_t *)own_pid, pid, __ATOMIC_RELAXED);
	}
	return pid;
}

/**
 * The writer's pid and tid, which the thread caches: they are right as long as the pid is the same.
 */
static void put_origin(struct prb_ring_row *row)
{
	uint32_t pid = own_number();
	uint64_t origin = (uintptr_t)pthread_getspecific(origin_key);

	if (origin >> 32 != pid) {
		origin = (uint64_t)pid << 32 | (uint32_t)syscall(SYS_gettid);
		pthread_setspecific(origin_key, (void *)(uintptr_t)origin);
	}
	row->pid = pid;
	row->tid = (uint32_t)origin;
}

static char *slot_of(const struct prba_ring *ring, uint64_t number)
{
	uint64_t slots = (uint64_t)ring->chunks << ring->chunk_shift;

	return ring->slots + (number & (slots - 1)) * ring->slot_size;
}

/** Takes a slot for its number; false if a writer is still in it, or a later one has it. */
static bool take(const struct prba_ring *ring, uint64_t number)
{
	uint64_t *state = (uint64_t *)slot_of(ring, number);
	uint64_t now = __atomic_load_n(state, __ATOMIC_RELAXED);

	do {
		if ((now & 7) == PRB_RING_BUSY || (now >> PRB_RING_STATE_BITS) > number)
			return false;
	} while (!__atomic_compare_exchange_n(state, &now, prb_ring_state(number, PRB_RING_BUSY),
					      true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return true;
}

static void release(const struct prba_ring *ring, uint64_t number, enum prb_ring_state state)
{
	__atomic_store_n((uint64_t *)slot_of(ring, number), prb_ring_state(number, state),
			 __ATOMIC_RELEASE);
}

/** Fetches the lines of a slot that is soon written to: an atomic operation waits for them all. */
static void prefetch(const struct prba_ring *ring, uint64_t number)
{
	const char *slot = slot_of(ring, number);

	for (uint32_t i = 0; i < ring->slot_size; i += CACHE_LINE)
		__builtin_prefetch(slot + i, 1);
}

/**
 * Reserves @p count slots in a row of one chunk and takes them. What was reserved in vain is void.
 */
static bool reserve(struct prba_ring *ring, uint32_t count, uint64_t *ret)
{
	uint64_t rest = (1ull << ring->chunk_shift) - 1;

	for (int i = 0; i < TRIES; i++) {
		uint64_t first = __atomic_fetch_add(&ring->header->head, count, __ATOMIC_RELAXED);
		uint32_t taken = 0;

		while (taken < count && take(ring, first + taken))
			taken++;
		if (taken == count && (first & rest) + count <= rest + 1) {
			prefetch(ring, first + AHEAD);
			*ret = first;
			return true;
		}
		if (taken < count)
			__atomic_fetch_add(&ring->header->skipped, 1, __ATOMIC_RELAXED);
		while (taken)
			release(ring, first + --taken, PRB_RING_VOID);
	}
	return false;
}

/**
 * Makes *bound include the time in @p word: the first (@p sign -1) or last time (1) of the same
 * chunk number, or of an earlier one, which it replaces.
 */
static void widen(uint64_t *bound, uint64_t word, int sign)
{
	uint64_t now = __atomic_load_n(bound, __ATOMIC_RELAXED);

	for (;;) {
		bool same = now >> PRB_RING_TIME_BITS == word >> PRB_RING_TIME_BITS;
		int64_t beyond = (int64_t)(word - now);

		if (same ? (sign < 0 ? beyond >= 0 : beyond <= 0) : beyond < 0)
			return;
		if (__atomic_compare_exchange_n(bound, &now, word, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
	}
}

/** Widens the times of the row's chunk, before the row can be seen. */
static void put_bounds(struct prba_ring *ring, uint64_t number, int64_t time)
{
	uint64_t chunk = number >> ring->chunk_shift;
	struct prb_ring_bounds *bounds = &ring->bounds[chunk & (ring->chunks - 1)];
	int64_t since = (time - ring->clock) / 1000000, most = (1ll << PRB_RING_TIME_BITS) - 1;
	uint64_t word = chunk << PRB_RING_TIME_BITS;

	word |= (uint64_t)(since < 0 ? 0 : since > most ? most : since);
	widen(&bounds->first, word, -1);
	widen(&bounds->last, word, 1);
}

/** Checks the cells and adds up their texts. 0 or a negative errno value. */
static int check(const struct prba_ring *ring, const struct probing_cell *cells, uint64_t *text)
{
	*text = 0;
	for (uint32_t i = 0; i < ring->column_count; i++) {
		bool is_text = ring->types[i] == PRB_RING_TEXT;

		switch ((enum probing_cell_kind)cells[i].kind) {
		case PROBING_NULL:
			break;
		case PROBING_INTEGER:
		case PROBING_REAL:
			if (is_text)
				return -EINVAL;
			break;
		case PROBING_TEXT:
			*text += cells[i].length;
			if (!is_text || (cells[i].length && !cells[i].text))
				return -EINVAL;
			break;
		case PROBING_INTERNED:
			if (!is_text || (uint64_t)cells[i].integer >= ring->string_bytes)
				return -EINVAL;
			break;
		default:
			return -EINVAL;
		}
	}
	return 0;
}

static uint64_t cell_of(const struct probing_cell *cell, uint8_t type)
{
	uint64_t bits;

	if (cell->kind == PROBING_INTEGER && type == PRB_RING_INTEGER)
		return (uint64_t)cell->integer;
	if (cell->kind == PROBING_NULL)
		return 0;
	if (cell->kind == PROBING_TEXT)
		return cell->length;
	if (cell->kind == PROBING_INTERNED)
		return PRB_RING_INTERNED | (uint64_t)cell->integer;
	if (type == PRB_RING_REAL) {
		double value = cell->kind == PROBING_REAL ? cell->real : (double)cell->integer;

		memcpy(&bits, &value, sizeof(bits));
		return bits;
	}
	/* Out of its range the conversion is undefined. */
	if (cell->kind == PROBING_REAL)
		return cell->real >= -9.2e18 && cell->real <= 9.2e18 ? (uint64_t)(int64_t)cell->real
								     : 0;
	return (uint64_t)cell->integer;
}

/** Copies a text behind what was copied before, over the states of the slots. */
static void put_text(const struct prba_ring *ring, uint64_t first, uint64_t *at, const char *text,
		     uint32_t length)
{
	while (length) {
		uint64_t slot = *at / ring->slot_size, offset = *at % ring->slot_size;
		uint32_t part = ring->slot_size - (uint32_t)offset;

		if (!offset) {
			*at += sizeof(uint64_t);
			continue;
		}
		part = part < length ? part : length;
		memcpy(slot_of(ring, first + slot) + offset, text, part);
		*at += part;
		text += part;
		length -= part;
	}
}

static void put_row(const struct prba_ring *ring, uint64_t first, int64_t time,
		    const struct probing_cell *cells, uint64_t text)
{
	struct prb_ring_row *row = (struct prb_ring_row *)slot_of(ring, first);
	uint64_t at = sizeof(*row) + ring->column_count * sizeof(*row->cells);

	row->time = time;
	put_origin(row);
	row->text = (uint32_t)text;
	row->nulls = 0;
	for (uint32_t i = 0; i < ring->column_count; i++) {
		row->nulls |= (uint32_t)(cells[i].kind == PROBING_NULL) << i;
		row->cells[i] = cell_of(&cells[i], ring->types[i]);
	}
	for (uint32_t i = 0; text && i < ring->column_count; i++)
		if (cells[i].kind == PROBING_TEXT)
			put_text(ring, first, &at, cells[i].text, cells[i].length);
}

/** Slots for a row whose texts have this many bytes. */
static uint64_t slots_for(const struct prba_ring *ring, uint64_t text)
{
	uint64_t used = sizeof(struct prb_ring_row) + ring->column_count * sizeof(uint64_t);
	uint64_t room = ring->slot_size - used, more = ring->slot_size - sizeof(uint64_t);

	return 1 + (text > room ? (text - room + more - 1) / more : 0);
}

PRBA_EXPORT int probing_ring_append(intptr_t handle, int64_t time, const struct probing_cell *cells)
{
	struct prba_ring *ring = prba_ring_of(handle);
	struct prba_history *history;
	uint64_t text, count, first;
	int rc;

	if (!ring)
		return -EBADF;
	rc = check(ring, cells, &text);
	if (rc)
		return rc;
	count = slots_for(ring, text);
	/* Before the atomic operations: reading the clock waits for all that are under way. */
	time = time ? time : prba_clock_ns(CLOCK_REALTIME);
	if (count > PRB_RING_ROW_SLOTS || !reserve(ring, (uint32_t)count, &first)) {
		__atomic_fetch_add(&ring->header->lost, 1, __ATOMIC_RELAXED);
		return count > PRB_RING_ROW_SLOTS ? -EMSGSIZE : -EAGAIN;
	}
	/* Readers see the slot reserved and busy before they see its content. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	put_row(ring, first, time, cells, text);
	put_bounds(ring, first, time);
	for (uint64_t i = 1; i < count; i++)
		release(ring, first + i, PRB_RING_CONTINUE);
	release(ring, first, PRB_RING_ROW);
	history = __atomic_load_n(&ring->history, __ATOMIC_ACQUIRE);
	if (history)
		prba_history_add(history, ring, own_number(), time, cells);
	return 0;
}

static uint32_t hash_of(const char *text, size_t length)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash;
}

static bool is_string(const struct prba_ring *ring, uint64_t word, uint32_t hash, const char *text,
		      size_t length)
{
	uint64_t place = word & UINT32_MAX;
	uint32_t stored;

	if (word >> 32 != hash || place + sizeof(stored) + length > ring->string_bytes)
		return false;
	memcpy(&stored, ring->strings + place, sizeof(stored));
	return stored == length && !memcmp(ring->strings + place + sizeof(stored), text, length);
}

/** Puts the string behind the others; 0 if there is no room. Place 0 is never used. */
static uint64_t store_string(struct prba_ring *ring, const char *text, size_t length)
{
	uint64_t need = (sizeof(uint32_t) + length + 7) & ~7ull;
	uint64_t place = __atomic_load_n(&ring->header->string_head, __ATOMIC_RELAXED);
	uint32_t stored = (uint32_t)length;

	do {
		if (place < 8 || place > ring->string_bytes || need > ring->string_bytes - place)
			return 0;
	} while (!__atomic_compare_exchange_n(&ring->header->string_head, &place, place + need,
					      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	memcpy(ring->strings + place, &stored, sizeof(stored));
	memcpy(ring->strings + place + sizeof(stored), text, length);
	return place;
}

PRBA_EXPORT int64_t probing_ring_intern(intptr_t handle, const char *text, size_t length)
{
	struct prba_ring *ring = prba_ring_of(handle);
	uint32_t hash = hash_of(text, length);
	uint64_t place = 0;

	if (!ring)
		return -EBADF;
	if (length > ring->string_bytes / 4)
		return -ENOSPC;
	for (uint32_t i = 0; i < ring->string_places; i++) {
		uint64_t *at = &ring->string_index[(hash + i) & (ring->string_places - 1)];
		uint64_t word = __atomic_load_n(at, __ATOMIC_ACQUIRE);

		if (!word && !place)
			place = store_string(ring, text, length);
		if (!word && !place)
			return -ENOSPC;
		if (!word && __atomic_compare_exchange_n(at, &word, (uint64_t)hash << 32 | place,
							 false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
			return (int64_t)place;
		if (is_string(ring, word, hash, text, length))
			return (int64_t)(word & UINT32_MAX);
	}
	return -ENOSPC;
}
