/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Free-threaded builds keep no lists of objects. Each thread allocates objects of the collector
 * from heaps of its own, in pages of blocks of one size; pages of ended threads are in abandoned
 * segments. A block is in use if it is in none of its page's lists of free blocks.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/heap/private.h"

enum {
	PAGES_MAX = 1 << 24,
	SEGMENTS_MAX = 1 << 20,
	SLICES_MAX = 1 << 16,
	PAGE_BYTES = 128, /* a page's description has less */
	HEAPS = 4,
	HEAP_GC = 2,	 /* index and tag of the heaps for objects of the collector */
	HEAP_GC_PRE = 3, /* the same for those with a dict or weak references before them */
	TAG_SHIFT = 3,
	TAG_MASK = 15,
	FREE_FLAGS = 3, /* in the pointer to blocks that other threads freed */
	SLICE_SHIFT = 16,
	SEGMENT_SHIFT = 25,
	BIT_TRACKED = 1,
	BIT_UNREACHABLE = 4,
	BIT_FROZEN = 8,
};

static const uint64_t segment_mask = (UINT64_C(1) << SEGMENT_SHIFT) - 1;

/* The description of a page. */
struct page {
	uint64_t address;
	uint8_t bytes[PAGE_BYTES];
};

static uint64_t word(const struct page *page, int32_t offset)
{
	uint64_t value;

	memcpy(&value, page->bytes + offset, sizeof(value));
	return value;
}

static uint32_t half(const struct page *page, int32_t offset)
{
	uint32_t value;

	memcpy(&value, page->bytes + offset, sizeof(value));
	return value;
}

static struct prb_error *read_page(struct prb_heap *h, uint64_t address, struct page *ret)
{
	ret->address = address;
	return prb_mem_read(h->mem, address, ret->bytes, (size_t)h->py->layout.mi_page_size);
}

static struct prb_error *note_segment(struct prb_heap *h, uint64_t address)
{
	struct prb_heap_pages *p = &h->pages;
	uint64_t *slot;

	address &= ~segment_mask;
	if (p->segments.count && p->segments.items[p->segments.count - 1] == address)
		return NULL;
	if (p->segments.count >= SEGMENTS_MAX)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the pages of objects do not end");
	slot = prb_vec_push(&p->segments);
	if (!slot)
		return prb_error_nomem();
	*slot = address;
	return NULL;
}

static struct prb_error *note_queue(struct prb_heap *h, uint64_t address)
{
	for (unsigned count = 0; address; count++) {
		if (count > PAGES_MAX)
			return prb_error_create(PRB_ERROR_BAD_DATA, "the pages do not end");
		PRB_TRY(note_segment(h, address));
		PRB_TRY(prb_mem_read_u64(h->mem, address + (uint64_t)h->py->layout.mi_page_next,
					 &address));
	}
	return NULL;
}

static struct prb_error *note_heap(struct prb_heap *h, uint64_t heap)
{
	const struct prb_layout *l = &h->py->layout;

	for (int32_t at = l->mi_heap_pages; at < l->mi_heap_pages_end; at += l->mi_queue_size) {
		uint64_t first;

		PRB_TRY(prb_mem_read_u64(h->mem, heap + (uint64_t)at, &first));
		PRB_TRY(note_queue(h, first));
	}
	return NULL;
}

/*
 * The segments of all threads. A page that fills up, or has room again, goes to another queue and
 * may be missed on its way; its segment is found by the others in it.
 */
static struct prb_error *note_threads(struct prb_heap *h)
{
	const struct prb_layout *l = &h->py->layout;
	const struct prb_py_thread *thread;
	struct prb_py_threads threads;
	struct prb_error *err = NULL;

	PRB_TRY(prb_python_threads(h->py, h->mem, &threads));
	prb_vec_each (thread, &threads.list) {
		uint64_t heaps = thread->address + (uint64_t)l->thread_mi_heaps;

		if (thread->interp != h->interp)
			continue;
		for (uint64_t i = 0; !err && i < HEAPS; i++)
			err = note_heap(h, heaps + i * (uint64_t)l->mi_heap_size);
		if (err)
			break;
	}
	prb_py_threads_deinit(&threads);
	return err;
}

/* Notes the pages of ended threads. */
static struct prb_error *note_abandoned(struct prb_heap *h, int32_t list)
{
	const struct prb_layout *l = &h->py->layout;
	uint64_t segment;

	PRB_TRY(prb_mem_read_u64(h->mem, h->interp + (uint64_t)list, &segment));
	segment &= ~segment_mask; /* a counter is in the low bits */
	for (unsigned count = 0; segment; count++) {
		if (count > SEGMENTS_MAX)
			return prb_error_create(PRB_ERROR_BAD_DATA, "the segments do not end");
		PRB_TRY(note_segment(h, segment));
		PRB_TRY(prb_mem_read_u64(h->mem, segment + (uint64_t)l->mi_segment_abandoned_next,
					 &segment));
	}
	return NULL;
}

static struct prb_error *add_page(struct prb_heap *h, uint64_t address)
{
	uint64_t *slot = prb_vec_push(&h->pages.list);

	if (!slot)
		return prb_error_nomem();
	*slot = address;
	return NULL;
}

static bool has_objects(const struct prb_layout *l, const struct page *page)
{
	unsigned tag = page->bytes[l->mi_page_tag] >> TAG_SHIFT & TAG_MASK;

	return (tag == HEAP_GC || tag == HEAP_GC_PRE) && half(page, l->mi_page_block_size) &&
	       half(page, l->mi_page_used);
}

/* The pages of a segment, one after the other; all descriptions are read at once. */
static struct prb_error *add_segment(struct prb_heap *h, uint64_t segment)
{
	const struct prb_layout *l = &h->py->layout;
	size_t size = (size_t)l->mi_page_size;
	uint64_t entries, slices = segment + (uint64_t)l->mi_segment_slices;
	prb_auto_free uint8_t *all = NULL;

	PRB_TRY(prb_mem_read_u64(h->mem, segment + (uint64_t)l->mi_segment_slice_entries,
				 &entries));
	if (entries > SLICES_MAX)
		return prb_error_create(PRB_ERROR_BAD_DATA, "a segment of impossible size");
	all = malloc(entries * size + 1);
	if (!all)
		return prb_error_nomem();
	PRB_TRY(prb_mem_read(h->mem, slices, all, entries * size));
	for (uint64_t i = 0, length; i < entries; i += length) {
		struct page page = {.address = slices + i * size};

		memcpy(page.bytes, all + i * size, size);
		length = half(&page, l->mi_page_slice_count);
		if (!length)
			return prb_error_create(PRB_ERROR_BAD_DATA, "a page of no size");
		if (i && has_objects(l, &page)) /* the first one is the segment's own */
			PRB_TRY(add_page(h, page.address));
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

/* The pages found before the lists changed under us are walked. */
static struct prb_error *forgive(struct prb_heap *h, struct prb_error *err)
{
	if (prb_error_catch(&err, PRB_ERROR_FAULT) || prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		prb_heap_torn(h);
	return err;
}

static struct prb_error *add_segments(struct prb_heap *h)
{
	uint64_t *segments = h->pages.segments.items;
	size_t count = h->pages.segments.count;

	if (count)
		qsort(segments, count, sizeof(*segments), compare);
	for (size_t i = 0; i < count; i++)
		if (!i || segments[i] != segments[i - 1])
			PRB_TRY(forgive(h, add_segment(h, segments[i])));
	return NULL;
}

static bool layout_fits(const struct prb_layout *l)
{
	const int32_t members[] = {l->mi_page_block_size,   l->mi_page_capacity,
				   l->mi_page_debug_offset, l->mi_page_free,
				   l->mi_page_local_free,   l->mi_page_thread_free,
				   l->mi_page_tag,	    l->mi_page_next,
				   l->mi_page_used,	    l->mi_page_slice_count};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(members); i++)
		if (members[i] < 0 || members[i] > l->mi_page_size - 1)
			return false;
	return l->mi_page_size <= PAGE_BYTES - 16 && l->mi_page_keys <= l->mi_page_size - 16 &&
	       l->interp_abandoned > 0 && l->interp_abandoned_visited > 0 &&
	       l->thread_mi_heaps > 0 && l->mi_heap_size > 0 && l->mi_heap_pages > 0 &&
	       l->mi_queue_size > 0 && l->mi_heap_pages_end < l->mi_heap_size &&
	       l->mi_segment_abandoned_next > 0 && l->mi_segment_slices > 0 &&
	       l->mi_segment_slice_entries > 0 && l->object_gc_bits >= 0 &&
	       l->object_gc_bits < l->object_size;
}

struct prb_error *prb_heap_pages_init(struct prb_heap *h)
{
	const struct prb_layout *l = &h->py->layout;

	if (!layout_fits(l))
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_UNSUPPORTED,
				"the location of objects in this free-threaded build is unknown"),
			"debugging information of the interpreter would");
	PRB_TRY(forgive(h, note_threads(h)));
	PRB_TRY(forgive(h, note_abandoned(h, l->interp_abandoned)));
	PRB_TRY(forgive(h, note_abandoned(h, l->interp_abandoned_visited)));
	return add_segments(h);
}

/* Where the blocks of a page begin: small ones not at its very start. */
static uint64_t first_block(const struct prb_layout *l, const struct page *page, uint64_t size)
{
	enum { SMALL = 64, MEDIUM = 512 };
	uint64_t segment = page->address & ~segment_mask;
	uint64_t slice = (page->address - segment - (uint64_t)l->mi_segment_slices) /
			 (uint64_t)l->mi_page_size;
	uint64_t skipped = size < sizeof(void *) || size > MEDIUM ? 0 : size <= SMALL ? 3 : 1;

	return segment + (slice << SLICE_SHIFT) + skipped * size;
}

/* Debug builds encode the pointers from one free block to the next with the page's keys. */
static uint64_t decode(const struct prb_layout *l, const struct page *page, uint64_t value)
{
	uint64_t first, second;
	unsigned shift;

	if (l->mi_page_keys < 0)
		return value;
	first = word(page, l->mi_page_keys);
	second = word(page, l->mi_page_keys + 8);
	value -= first;
	shift = first % 64;
	if (shift)
		value = value >> shift | value << (64 - shift);
	value ^= second;
	return value == page->address ? 0 : value;
}

/* Marks the blocks of one list as free. */
static struct prb_error *mark_free(struct prb_heap *h, const struct page *page, uint64_t block)
{
	struct prb_heap_pages *p = &h->pages;

	for (unsigned steps = 0; block; steps++) {
		uint64_t index = (block - p->blocks) / p->block_size;

		if (block < p->blocks || index >= p->capacity || steps > p->capacity)
			return prb_error_create(PRB_ERROR_BAD_DATA, "free blocks outside a page");
		p->free[index / 8] |= (uint8_t)(1 << index % 8);
		PRB_TRY(prb_mem_read_u64(prb_heap_mem(h), block, &block));
		block = decode(&h->py->layout, page, block);
	}
	return NULL;
}

static struct prb_error *begin_page(struct prb_heap *h, uint64_t address)
{
	const struct prb_layout *l = &h->py->layout;
	struct prb_heap_pages *p = &h->pages;
	struct page page;
	unsigned offset;

	p->capacity = p->block = 0;
	PRB_TRY(read_page(h, address, &page));
	if (!has_objects(l, &page)) /* not any more */
		return NULL;
	p->block_size = half(&page, l->mi_page_block_size);
	p->blocks = first_block(l, &page, p->block_size);
	/* The page knows how far from a block's beginning the type of its object is. */
	offset = page.bytes[l->mi_page_debug_offset];
	if (offset < (unsigned)l->object_type)
		return prb_error_create(PRB_ERROR_BAD_DATA, "a page without objects");
	p->offset = offset - (unsigned)l->object_type;
	p->capacity = half(&page, l->mi_page_capacity) & UINT16_MAX;
	memset(p->free, 0, p->capacity / 8 + 1);
	PRB_TRY(mark_free(h, &page, word(&page, l->mi_page_free)));
	PRB_TRY(mark_free(h, &page, word(&page, l->mi_page_local_free)));
	return mark_free(h, &page, word(&page, l->mi_page_thread_free) & ~(uint64_t)FREE_FLAGS);
}

/* Fills @p ret from the block; *found is false if no object that the collector knows is there. */
static struct prb_error *look(struct prb_heap *h, uint64_t address, bool *found,
			      struct prb_heap_object *ret)
{
	enum { HEADER_MAX = 64 };
	size_t size = (size_t)h->py->layout.object_size;
	uint8_t copy[HEADER_MAX];
	const uint8_t *header = prb_blocks_at(h->blocks, address, size);
	uint8_t bits;

	*found = false;
	if (!header) {
		PRB_TRY(prb_mem_read(prb_heap_mem(h), address, copy, size));
		header = copy;
	}
	bits = header[h->py->layout.object_gc_bits];
	if (!(bits & BIT_TRACKED) || bits & BIT_UNREACHABLE)
		return NULL;
	PRB_TRY(prb_heap_describe(h, address, header, ret));
	ret->generation = bits & BIT_FROZEN ? PRB_GC_PERMANENT : 0;
	*found = true;
	return NULL;
}

struct prb_error *prb_heap_pages_next(struct prb_heap *h, struct prb_heap_object *ret, bool *more)
{
	struct prb_heap_pages *p = &h->pages;

	for (*more = true;;) {
		while (p->block < p->capacity) {
			unsigned block = p->block++;
			bool found;

			if (p->free[block / 8] & 1 << block % 8)
				continue;
			PRB_TRY(forgive(h, look(h, p->blocks + block * p->block_size + p->offset,
						&found, ret)));
			if (found)
				return NULL;
		}
		if (p->next == p->list.count) {
			*more = false;
			return NULL;
		}
		PRB_TRY(forgive(h, begin_page(h, p->list.items[p->next++])));
	}
}
