/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/memory/report/malloc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	WINDOW = 64 << 10,
	AGAIN = 8,	 /* readings of a window, and of a heap */
	SIZES = 1 << 16, /* that are told apart */
	CHUNK_LEAST = 32,
	FENCE = 16,	 /* the size of the fence chunk before foreign memory */
	LAST_FENCE = 64, /* the last fence is at most so far from a heap's end */
	PAGE = 4096,
	PAGES_AT_ONCE = 4096,
	PAGES_LEAST = 4,	  /* read at once where blocks follow each other */
	IS_PRESENT = 63,	  /* the bit of an entry in pagemap */
	IS_SWAPPED = 62,	  /* another one */
	MAPPED_LEAST = 128 << 10, /* smaller blocks have no mapping */
};

/* Of the word that has the size. */
enum { BEFORE_IS_USED = 1, IS_MAPPED = 2, NOT_MAIN = 4, BITS = 7 };

/* Pages of which is asked whether they are there: four terabytes in 8 s. */
static const uint64_t HEAP = 64 << 20, ASKED_MOST = 1 << 30;

/* Part of an anonymous mapping, which no arena is in. */
struct span {
	uint64_t start, end;
};

struct walk {
	struct prb_target *target;
	struct prb_mem *mem;
	uint64_t heap; /* that is walked: of its head, or 0 for the main one */
	double until;
	uint64_t begin, end;	    /* of what is in the window */
	uint64_t asked;		    /* of so many pages it was asked whether they are there */
	uint64_t next;		    /* behind the last large block */
	PRB_VEC(struct span) spans; /* where large blocks may be */
	bool late;
	int pagemap;
	uint64_t entries[PAGES_AT_ONCE]; /* of pagemap */
	struct prb_block blocks[PAGES_AT_ONCE];
	uint64_t heads[PAGES_AT_ONCE][3];
	uint8_t window[WINDOW];
};

void prb_malloc_deinit(struct prb_malloc *m)
{
	prb_vec_free(&m->sizes);
	prb_number_map_deinit(&m->size_numbers);
}

struct prb_malloc_size prb_malloc_size(const struct prb_malloc *m, uint64_t size)
{
	size_t number;

	return prb_number_map_get(&m->size_numbers, size, &number)
		       ? m->sizes.items[number]
		       : (struct prb_malloc_size){.size = size};
}

/* *ret is NULL if there are too many sizes. */
static struct prb_error *size_of(struct prb_malloc *m, uint64_t size, struct prb_malloc_size **ret)
{
	size_t number;

	*ret = NULL;
	if (prb_number_map_get(&m->size_numbers, size, &number)) {
		*ret = &m->sizes.items[number];
	} else if (m->sizes.count < SIZES) {
		*ret = prb_vec_push(&m->sizes);
		if (!*ret || !prb_number_map_put(&m->size_numbers, size, m->sizes.count - 1))
			return prb_error_nomem();
		**ret = (struct prb_malloc_size){.size = size};
	}
	return NULL;
}

/* The word of most blocks is that which is left of a vote in which others cancel it out. */
static struct prb_error *count(struct prb_malloc *m, uint64_t size, uint64_t word)
{
	struct prb_malloc_size *of;

	PRB_TRY(size_of(m, size, &of));
	if (!of) {
		m->other_sizes++;
		return NULL;
	}
	of->blocks++;
	if (!of->votes)
		of->word = word;
	if (of->word == word)
		of->votes++;
	else
		of->votes--;
	return NULL;
}

/* Adds the sums of one heap. */
static struct prb_error *join(struct prb_malloc *m, const struct prb_malloc *of)
{
	const struct prb_malloc_size *size;
	struct prb_malloc_size *to;

	m->used += of->used;
	m->blocks += of->blocks;
	m->other_sizes += of->other_sizes;
	prb_vec_each (size, &of->sizes) {
		PRB_TRY(size_of(m, size->size, &to));
		if (!to) {
			m->other_sizes += size->blocks;
			continue;
		}
		to->blocks += size->blocks;
		if (to->word == size->word || !to->votes) {
			to->word = size->word;
			to->votes += size->votes;
		} else if (to->votes >= size->votes) {
			to->votes -= size->votes;
		} else {
			to->word = size->word;
			to->votes = size->votes - to->votes;
		}
	}
	return NULL;
}

/* Has the bytes from @at on in the window, as far as @end; false if they cannot be read. */
static bool fetch(struct walk *w, uint64_t at, size_t length, uint64_t end)
{
	prb_auto_error struct prb_error *err = NULL;
	size_t size = (size_t)PRB_MIN(end - at, (uint64_t)WINDOW);

	if (at >= w->begin && at < w->end && w->end - at >= length)
		return true;
	w->late |= prb_clock_seconds() > w->until;
	if (w->late || size < length)
		return false;
	err = prb_mem_read(w->mem, at, w->window, size);
	w->begin = at;
	w->end = err ? at : at + size;
	return !err;
}

static uint64_t round_up(uint64_t number, uint64_t to)
{
	return (number + to - 1) / to * to;
}

static uint64_t word_at(const struct walk *w, uint64_t at)
{
	uint64_t ret;

	memcpy(&ret, w->window + (at - w->begin), sizeof(ret));
	return ret;
}

static bool is_chunk(uint64_t head, uint64_t at, uint64_t end, bool main)
{
	uint64_t size = head & ~(uint64_t)BITS;

	if (size == FENCE)
		return end - at >= FENCE;
	return size >= CHUNK_LEAST && size % FENCE == 0 && size <= end - at &&
	       !(head & IS_MAPPED) && !(main && head & NOT_MAIN);
}

/* At the start of each heap but the main one. */
struct heap_head {
	uint64_t arena, before, size, writable;
};

/* Where the heap ends by now, which was @end: a program that allocates moves it. */
static uint64_t end_now(struct walk *w, uint64_t end)
{
	prb_auto_error struct prb_error *err = NULL;
	struct prb_maps maps = {};
	struct heap_head head = {};
	const struct prb_map *map;

	if (w->heap) {
		err = prb_mem_read(w->mem, w->heap, &head, sizeof(head));
		return err || head.size > HEAP ? end : PRB_MAX(end, w->heap + head.size);
	}
	err = prb_target_read_maps(w->target, &maps);
	prb_vec_each (map, &maps.list)
		if (!strcmp(map->path, "[heap]"))
			end = PRB_MAX(end, map->end);
	prb_maps_deinit(&maps);
	return end;
}

/*
 * The head of the chunk at @at; 0 if there is none. A chunk in the middle of a change is read
 * again.
 */
static uint64_t head_at(struct walk *w, uint64_t at, uint64_t *end)
{
	for (int i = 0; i < AGAIN; i++) {
		uint64_t head;

		if (!fetch(w, at, 2 * sizeof(head), *end))
			return 0;
		head = word_at(w, at + sizeof(head));
		if (is_chunk(head, at, *end, !w->heap))
			return head;
		if (w->heap && !(head & ~(uint64_t)BITS) && *end - at <= LAST_FENCE)
			return head; /* the last one of a heap that is full */
		w->end = w->begin;
		*end = end_now(w, *end);
	}
	return 0;
}

/* All chunks from @at to *@end. *ret_right: they lead there. */
static struct prb_error *walk_chunks(struct walk *w, uint64_t at, uint64_t *end,
				     struct prb_malloc *m, bool *ret_right)
{
	uint64_t size = 0, word = 0; /* of the chunk before: the next head shows its use */

	*ret_right = false;
	while (at < *end) {
		uint64_t head = head_at(w, at, end);

		if (!head)
			return NULL;
		if (size && head & BEFORE_IS_USED) {
			m->used += size;
			m->blocks++;
			PRB_TRY(count(m, size, word));
		}
		size = head & ~(uint64_t)BITS;
		if (!size)
			break;
		word = fetch(w, at, CHUNK_LEAST, *end) ? word_at(w, at + FENCE) : 0;
		at += size;
		size = size == FENCE ? 0 : size;
	}
	*ret_right = true;
	return NULL;
}

/* The heap from @from to *@end; that at w->heap. */
static struct prb_error *add_heap(struct walk *w, uint64_t from, uint64_t *end, int times,
				  struct prb_malloc *m, bool *ret_right)
{
	struct prb_error *err = NULL;

	*ret_right = false;
	for (int i = 0; !err && !*ret_right && !w->late && i < times; i++) {
		struct prb_malloc one = {};

		w->begin = w->end = 0;
		err = walk_chunks(w, from, end, &one, ret_right);
		if (!err && *ret_right)
			err = join(m, &one);
		prb_malloc_deinit(&one);
	}
	return err;
}

static bool is_heap(struct walk *w, uint64_t at, uint64_t end, struct heap_head *ret)
{
	prb_auto_error struct prb_error *err = prb_mem_read(w->mem, at, ret, sizeof(*ret));

	return !err && ret->size && ret->size <= end - at && ret->size % PAGE == 0 &&
	       ret->writable >= ret->size && ret->writable <= HEAP && ret->before % HEAP == 0 &&
	       ret->arena % sizeof(uint64_t) == 0 && ret->arena % HEAP < PAGE &&
	       (ret->before ? ret->arena != 0 : ret->arena / HEAP == at / HEAP);
}

/* The first heap of an arena also has the arena, whose length depends on glibc. */
static struct prb_error *add_other_heap(struct walk *w, uint64_t at, const struct heap_head *head,
					uint64_t *end, struct prb_malloc *m, bool *ret_right)
{
	enum { ARENA_LEAST = 0x800, ARENA_MOST = 0x900 };
	uint64_t first = at + head->arena % HEAP;

	*ret_right = false;
	*end = at + head->size;
	w->heap = at;
	if (head->before)
		return add_heap(w, first, end, AGAIN, m, ret_right);
	for (int i = 0; i < AGAIN && !*ret_right && !w->late; i++)
		for (uint64_t size = ARENA_LEAST; size < ARENA_MOST && !*ret_right; size += FENCE)
			PRB_TRY(add_heap(w, round_up(first + size, FENCE), end, 1, m, ret_right));
	return NULL;
}

/* Counts the block that begins with that page, if one does. */
static struct prb_error *take_mapped(struct walk *w, const struct prb_block *block, uint64_t end,
				     struct prb_malloc *m)
{
	const uint64_t *head = block->buffer;
	uint64_t size = head[1] & ~(uint64_t)BITS, room;

	if (block->address < w->next || !block->ok || head[0] || (head[1] & BITS) != IS_MAPPED ||
	    size < MAPPED_LEAST || size > end - block->address)
		return NULL;
	/* Since 2.42 it does not count what no user can have. */
	room = size % PAGE == PAGE - FENCE ? size + FENCE : size;
	if (room % PAGE || room > end - block->address)
		return NULL;
	w->next = block->address + room;
	m->mapped_blocks++;
	m->mapped_bytes += room;
	return count(m, size, head[2]);
}

/**
 * Few pages are read at once while they have blocks, whose other pages need not be read, and more
 * and more while they have none.
 */
static struct prb_error *take_pages(struct walk *w, size_t pages, uint64_t end,
				    struct prb_malloc *m)
{
	size_t some = PAGES_LEAST;

	for (size_t i = 0, n; i < pages; i += n) {
		uint64_t before = m->mapped_blocks;

		n = 1;
		if (w->blocks[i].address < w->next)
			continue;
		n = PRB_MIN(some, pages - i);
		PRB_TRY(prb_mem_read_many(w->mem, w->blocks + i, n));
		for (size_t j = 0; j < n; j++)
			PRB_TRY(take_mapped(w, &w->blocks[i + j], end, m));
		some = m->mapped_blocks > before ? PAGES_LEAST : some * 2;
	}
	return NULL;
}

/* How many pages from @at on are known to be there or not; none: it cannot be found out. */
static size_t look_for_pages(struct walk *w, uint64_t at, uint64_t end)
{
	size_t wanted = (size_t)PRB_MIN((end - at) / PAGE, (uint64_t)PAGES_AT_ONCE);
	ssize_t got = w->pagemap < 0 ? -1
				     : pread(w->pagemap, w->entries, wanted * sizeof(*w->entries),
					     (off_t)(at / PAGE * sizeof(*w->entries)));

	return got < 0 ? 0 : (size_t)got / sizeof(*w->entries);
}

static const char *why_unseen(const struct walk *w)
{
	if (w->late)
		return "there was no time for it, and --max-time gives more";
	return w->asked < ASKED_MOST ? "the kernel does not tell which pages are there"
				     : "over 4 TiB are mapped";
}

/**
 * Large blocks, each with a mapping of its own, which begins with the block's head. The kernel
 * shows mappings that lie side by side as one. Only pages that are there are read: reading others
 * would make them.
 */
static struct prb_error *add_mapped(struct walk *w, const struct span *span, struct prb_malloc *m)
{
	uint64_t at = span->start;

	while (at < span->end && w->asked < ASKED_MOST && !w->late) {
		size_t pages = look_for_pages(w, at, span->end), count = 0;

		w->next = at;
		if (!pages)
			break;
		for (size_t i = 0; i < pages; i++)
			if (w->entries[i] >> IS_PRESENT)
				w->blocks[count++] = (struct prb_block){
					at + i * PAGE, sizeof(w->heads[i]), w->heads[i], false};
		PRB_TRY(take_pages(w, count, span->end, m));
		w->asked += pages;
		w->late |= prb_clock_seconds() > w->until;
		at = PRB_MAX(at + pages * PAGE, w->next);
	}
	if (at < span->end) {
		m->unseen += span->end - at;
		m->unseen_why = why_unseen(w);
	}
	return NULL;
}

static int by_length(const void *a, const void *b)
{
	const struct span *one = a, *other = b;
	uint64_t length = one->end - one->start, others = other->end - other->start;

	return length != others ? (length < others ? -1 : 1)
				: (one->start > other->start) - (one->start < other->start);
}

/* The shortest first: then a huge one, where it takes too long, is all that is left out. */
static struct prb_error *add_spans(struct walk *w, struct prb_malloc *m)
{
	const struct span *span;

	if (w->spans.count)
		qsort(w->spans.items, w->spans.count, sizeof(*w->spans.items), by_length);
	prb_vec_each (span, &w->spans)
		PRB_TRY(add_mapped(w, span, m));
	return NULL;
}

static struct prb_error *note_span(struct walk *w, uint64_t start, uint64_t end)
{
	struct span *span = start < end ? prb_vec_push(&w->spans) : NULL;

	if (span)
		*span = (struct span){start, end};
	return span || start >= end ? NULL : prb_error_nomem();
}

static bool is_anonymous(const struct prb_map *map)
{
	return map->read && map->write && !map->shared && !map->inode &&
	       (!*map->path || !strncmp(map->path, "[anon:", 6));
}

/**
 * True if the page at @p at has contents. A read of a page without makes it, and a table for it:
 * in a reservation of terabytes, one for each place of a heap, that takes gigabytes.
 */
static bool has_contents(struct walk *w, uint64_t at)
{
	uint64_t entry = 0;

	if (w->late || pread(w->pagemap, &entry, sizeof(entry),
			     (off_t)(at / PAGE * sizeof(entry))) != sizeof(entry))
		return false;
	return entry >> IS_PRESENT & 1 || entry >> IS_SWAPPED & 1;
}

/* Heaps begin where they are aligned; what else there is may be large blocks. */
static struct prb_error *add_map(struct walk *w, const struct prb_map *map, struct prb_malloc *m)
{
	uint64_t from = map->start, end;
	bool right;

	for (uint64_t at = round_up(from, HEAP); at < map->end && at >= map->start; at += HEAP) {
		struct heap_head head;

		if (!has_contents(w, at) || !is_heap(w, at, map->end, &head))
			continue;
		PRB_TRY(add_other_heap(w, at, &head, &end, m, &right));
		if (!right) {
			m->reason = "an arena is not understood, or changes too fast";
			continue;
		}
		m->arenas++;
		m->bytes += end - at;
		PRB_TRY(note_span(w, from, at));
		from = end;
	}
	return note_span(w, from, map->end);
}

static struct prb_error *add_all(struct walk *w, const struct prb_maps *maps, struct prb_malloc *m)
{
	const struct prb_map *map;
	uint64_t end;
	bool right;

	prb_vec_each (map, &maps->list) {
		if (is_anonymous(map))
			PRB_TRY(add_map(w, map, m));
		if (strcmp(map->path, "[heap]"))
			continue;
		w->heap = 0;
		end = map->end;
		PRB_TRY(add_heap(w, map->start, &end, AGAIN, m, &right));
		m->arenas += right;
		m->bytes += right ? end - map->start : 0;
		m->known |= right;
	}
	if (w->late)
		m->reason = "there was no time to read all of it";
	else if (!m->known && !m->reason)
		m->reason = "it is not that of glibc, or changes too fast";
	m->known = !m->reason;
	return m->known ? add_spans(w, m) : NULL;
}

/* Facts that the kernel denies are done without. */
static struct prb_error *read_all(struct walk *w, struct prb_target *target, struct prb_malloc *m)
{
	struct prb_maps maps = {};
	struct prb_error *err;

	prb_error_destroy(prb_target_open_fact(target, &w->pagemap, "pagemap"));
	err = prb_target_read_maps(target, &maps);
	if (!err)
		err = add_all(w, &maps, m);
	prb_maps_deinit(&maps);
	prb_vec_free(&w->spans);
	if (w->pagemap >= 0)
		close(w->pagemap);
	return err;
}

struct prb_error *prb_malloc_read(struct prb_target *target, double max_seconds,
				  struct prb_malloc *ret)
{
	prb_auto_free struct walk *w = NULL;

	if (!target->live) {
		ret->reason = "it is read of processes that run";
		return NULL;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return prb_error_nomem();
	w->target = target;
	w->mem = target->mem;
	w->until = prb_clock_seconds() + max_seconds;
	w->pagemap = -1;
	return read_all(w, target, ret);
}
