/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/mem/view.h"

#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "target/mem/maps.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; not in older headers */
#endif

enum {
	SLAB_PAGES = 16, /* pages allocated at once; each slab is twice as large as the last */
	SLAB_PAGES_MAX = 1024,
	BATCH_PAGES = 512, /* pages of one batched read */
	REMEMBERED = 8,	   /* epochs for which an untouched page is still expected: a program that
			      alternates between call chains needs the pages of all of them */
	RECENT = 64,	   /* a power of two */
	LEVELS = 12,	   /* of pointers that are followed in batches */
	ALONE = 8,	   /* pages that are fetched one by one at each level: a chain that begins
			      the way to many things (a module, its dict) is no level each */
};

struct page {
	uint64_t number;	    /* address / PRB_PAGE_SIZE */
	char *data;		    /* NULL until first held */
	uint32_t held;		    /* epoch whose content `data` is */
	uint32_t wanted;	    /* last epoch in which it was touched, or will be expected */
	struct prb_page_marks read; /* in this epoch */
};

struct prb_view {
	struct prb_mem mem; /* first: the view is a memory source itself */
	struct prb_mem *base;
	uint32_t epoch;
	bool sealed;
	const struct prb_maps *maps; /* what may be fetched while sealed; NULL: nothing */
	size_t misses;
	size_t alone; /* pages that may be fetched nevertheless */
	PRB_VEC(struct page) pages;
	PRB_VEC(char *) slabs;
	size_t slab_pages, slab_used; /* of the newest slab */
	uint32_t *table;	      /* index + 1 into pages, 0 empty; open addressing */
	size_t table_size;
	uint32_t recent[RECENT]; /* by the number of a page: index of the one found last */
};

static size_t hash(uint64_t number, size_t size)
{
	return (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (size - 1);
}

static bool table_grow(struct prb_view *view)
{
	size_t size = view->table_size ? view->table_size * 2 : 256;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < view->pages.count; i++) {
		size_t slot = hash(view->pages.items[i].number, size);

		while (table[slot])
			slot = (slot + 1) & (size - 1);
		table[slot] = (uint32_t)i + 1;
	}
	free(view->table);
	view->table = table;
	view->table_size = size;
	return true;
}

/* The entry for a page, made if there is none; NULL when out of memory. */
static struct page *page_entry(struct prb_view *view, uint64_t number)
{
	uint32_t *recent = &view->recent[number % RECENT];

	if (*recent < view->pages.count && view->pages.items[*recent].number == number)
		return &view->pages.items[*recent];
	if (view->pages.count * 2 >= view->table_size && !table_grow(view))
		return NULL;

	size_t slot = hash(number, view->table_size);
	for (; view->table[slot]; slot = (slot + 1) & (view->table_size - 1)) {
		struct page *page = &view->pages.items[view->table[slot] - 1];

		if (page->number == number) {
			*recent = view->table[slot] - 1;
			return page;
		}
	}

	struct page *page = prb_vec_push(&view->pages);
	if (!page)
		return NULL;
	page->number = number;
	*recent = (uint32_t)view->pages.count - 1;
	view->table[slot] = (uint32_t)view->pages.count;
	return page;
}

/*
 * Memory that is written for the first time costs a fault for each page, more than what is written
 * there; for many pages it is asked for at once. Where the kernel does not know how, it faults.
 */
static void populate(struct prb_view *view, size_t count)
{
	char *slab = view->slabs.items[view->slabs.count - 1];

	count = PRB_MIN(count, view->slab_pages - view->slab_used);
	if (count > 1)
		madvise(slab + view->slab_used * PRB_PAGE_SIZE, count * PRB_PAGE_SIZE,
			MADV_POPULATE_WRITE);
}

static bool add_slab(struct prb_view *view)
{
	size_t pages =
		view->slab_pages ? PRB_MIN(view->slab_pages * 2, SLAB_PAGES_MAX) : SLAB_PAGES;
	char **slab = prb_vec_push(&view->slabs);

	if (!slab)
		return false;
	*slab = aligned_alloc(PRB_PAGE_SIZE, pages * PRB_PAGE_SIZE);
	if (!*slab) {
		view->slabs.count--;
		return false;
	}
	view->slab_pages = pages;
	view->slab_used = 0;
	return true;
}

/* A buffer for a page, one of @p count that are wanted now. */
static bool page_buffer(struct prb_view *view, struct page *page, size_t count)
{
	if (page->data)
		return true;
	if (!view->slabs.count || view->slab_used == view->slab_pages) {
		if (!add_slab(view))
			return false;
		populate(view, count);
	}
	page->data = view->slabs.items[view->slabs.count - 1] + view->slab_used++ * PRB_PAGE_SIZE;
	return true;
}

/*
 * Sealed views may still read what the target cannot write: file mappings, not the reserves of
 * an allocator, which become writable as they are used.
 */
static bool may_fetch(struct prb_view *view, uint64_t number)
{
	if (!view->sealed)
		return true;
	if (view->alone) {
		view->alone--;
		return true;
	}

	const struct prb_map *map =
		view->maps ? prb_maps_find(view->maps, number * PRB_PAGE_SIZE) : NULL;
	return map && map->read && !map->write && (map->inode || !strcmp(map->path, "[vdso]"));
}

static struct prb_error *hold(struct prb_view *view, uint64_t number, struct page **ret)
{
	struct page *page = page_entry(view, number);

	if (!page)
		return prb_error_nomem();
	page->wanted = view->epoch;
	if (page->held != view->epoch) {
		if (!may_fetch(view, number)) {
			view->misses++;
			return prb_error_fault(number * PRB_PAGE_SIZE, PRB_PAGE_SIZE);
		}
		if (!page_buffer(view, page, 1))
			return prb_error_nomem();
		PRB_TRY(prb_mem_read(view->base, number * PRB_PAGE_SIZE, page->data,
				     PRB_PAGE_SIZE));
		page->held = view->epoch;
		page->read = (struct prb_page_marks){};
	}
	*ret = page;
	return NULL;
}

static void mark(struct prb_page_marks *marks, size_t offset, size_t length)
{
	size_t first = offset / PRB_WORD_SIZE, last = (offset + length - 1) / PRB_WORD_SIZE;

	if (first / 64 == last / 64) { /* nearly always */
		marks->bits[first / 64] |= UINT64_MAX >> (63 - (last - first)) << first % 64;
		return;
	}
	for (size_t i = first / 64; i <= last / 64; i++) {
		size_t low = i == first / 64 ? first % 64 : 0;
		size_t high = i == last / 64 ? last % 64 : 63;

		marks->bits[i] |= UINT64_MAX >> (63 - high + low) << low;
	}
}

static void take(struct page *page, size_t offset, void *buffer, size_t length, bool needed)
{
	memcpy(buffer, page->data + offset, length);
	if (needed)
		mark(&page->read, offset, length);
}

/* One part of a read, within one page. A redacted snapshot holds pages only in part: what cannot
 * be had as a page may still be there by itself. */
static struct prb_error *read_part(struct prb_view *view, uint64_t address, void *buffer,
				   size_t length, bool needed)
{
	struct page *page;
	size_t offset = address % PRB_PAGE_SIZE;
	struct prb_error *err = hold(view, address / PRB_PAGE_SIZE, &page);

	if (!err) {
		take(page, offset, buffer, length, needed);
		return NULL;
	}
	if (view->sealed || !prb_error_catch(&err, PRB_ERROR_FAULT))
		return err;
	return prb_mem_read(view->base, address, buffer, length);
}

static struct prb_error *read_parts(struct prb_mem *mem, uint64_t address, void *buffer,
				    size_t length, bool needed)
{
	struct prb_view *view = (struct prb_view *)mem;
	struct prb_mem *base = view->base;
	size_t offset = address % PRB_PAGE_SIZE;

	/* Most reads are of a page that was read not long ago. */
	uint32_t recent = view->recent[address / PRB_PAGE_SIZE % RECENT];

	if (recent < view->pages.count && length && length <= PRB_PAGE_SIZE - offset) {
		struct page *page = &view->pages.items[recent];

		if (page->number == address / PRB_PAGE_SIZE && page->held == view->epoch) {
			page->wanted = view->epoch;
			take(page, offset, buffer, length, needed);
			return NULL;
		}
	}
	if (base->kept)
		return prb_mem_read(base, address, buffer, length);
	while (length) {
		size_t part = PRB_MIN(length, PRB_PAGE_SIZE - address % PRB_PAGE_SIZE);

		PRB_TRY(read_part(view, address, buffer, part, needed));
		buffer = (char *)buffer + part;
		address += part;
		length -= part;
	}
	return NULL;
}

static struct prb_error *view_read(struct prb_mem *mem, uint64_t address, void *buffer,
				   size_t length)
{
	return read_parts(mem, address, buffer, length, true);
}

static struct prb_error *view_peek(struct prb_mem *mem, uint64_t address, void *buffer,
				   size_t length)
{
	return read_parts(mem, address, buffer, length, false);
}

static const struct prb_mem_ops view_ops = {
	.read = view_read,
	.peek = view_peek,
};

struct prb_error *prb_view_create(struct prb_mem *base, struct prb_view **ret)
{
	struct prb_view *view = calloc(1, sizeof(*view));

	if (!view)
		return prb_error_nomem();
	view->mem.ops = &view_ops;
	view->mem.kept = base->kept;
	view->base = base;
	view->epoch = 1;
	*ret = view;
	return NULL;
}

void prb_view_destroy(struct prb_view *view)
{
	char **slab;

	if (!view)
		return;
	prb_vec_each (slab, &view->slabs)
		free(*slab);
	prb_vec_free(&view->slabs);
	prb_vec_free(&view->pages);
	free(view->table);
	free(view);
}

struct prb_mem *prb_view_mem(struct prb_view *view)
{
	return &view->mem;
}

void prb_view_new_epoch(struct prb_view *view)
{
	view->epoch++;
	view->sealed = false;
	view->misses = 0;
}

/* Fetches pages[0..count) in one call; those that cannot be read stay not held. */
static struct prb_error *fetch(struct prb_view *view, const size_t *indices, size_t count)
{
	struct prb_block blocks[BATCH_PAGES];
	size_t fresh = 0;

	for (size_t i = 0; i < count; i++)
		fresh += !view->pages.items[indices[i]].data;
	if (view->slabs.count)
		populate(view, fresh);
	for (size_t i = 0; i < count; i++) {
		struct page *page = &view->pages.items[indices[i]];

		if (!page_buffer(view, page, count - i))
			return prb_error_nomem();
		blocks[i] = (struct prb_block){.address = page->number * PRB_PAGE_SIZE,
					       .length = PRB_PAGE_SIZE,
					       .buffer = page->data};
	}
	PRB_TRY(prb_mem_read_many(view->base, blocks, count));
	for (size_t i = 0; i < count; i++) {
		if (!blocks[i].ok)
			continue;
		view->pages.items[indices[i]].held = view->epoch;
		view->pages.items[indices[i]].read = (struct prb_page_marks){};
	}
	return NULL;
}

struct prb_error *prb_view_prefetch(struct prb_view *view)
{
	size_t batch[BATCH_PAGES], count = 0;

	for (size_t i = 0; i < view->pages.count; i++) {
		struct page *page = &view->pages.items[i];

		if (page->held == view->epoch || page->wanted + REMEMBERED < view->epoch)
			continue;
		batch[count++] = i;
		if (count == BATCH_PAGES) {
			PRB_TRY(fetch(view, batch, count));
			count = 0;
		}
	}
	return count ? fetch(view, batch, count) : NULL;
}

struct prb_error *prb_view_prefetch_range(struct prb_view *view, uint64_t address, uint64_t length)
{
	size_t batch[BATCH_PAGES], count = 0;
	uint64_t end;

	if (view->base->kept || !length || !prb_add(address, length, &end))
		return NULL;
	for (uint64_t number = address / PRB_PAGE_SIZE; number <= (end - 1) / PRB_PAGE_SIZE;
	     number++) {
		struct page *page = page_entry(view, number);

		if (!page)
			return prb_error_nomem();
		if (page->held == view->epoch)
			continue;
		batch[count++] = (size_t)(page - view->pages.items);
		if (count == BATCH_PAGES) {
			PRB_TRY(fetch(view, batch, count));
			if (view->pages.items[batch[count - 1]].held != view->epoch)
				return NULL;
			count = 0;
		}
	}
	return count ? fetch(view, batch, count) : NULL;
}

void prb_view_expect(struct prb_view *view, uint64_t address, uint64_t length)
{
	uint64_t end;

	if (!length || !prb_add(address, length, &end))
		return;
	for (uint64_t number = address / PRB_PAGE_SIZE; number <= (end - 1) / PRB_PAGE_SIZE;
	     number++) {
		struct page *page = page_entry(view, number);

		if (!page)
			return;
		page->wanted = view->epoch;
	}
}

void prb_view_seal(struct prb_view *view, const struct prb_maps *maps)
{
	view->sealed = true;
	view->maps = maps;
	view->misses = 0;
}

size_t prb_view_misses(const struct prb_view *view)
{
	return view->misses;
}

struct prb_error *prb_view_gather(struct prb_view *view, prb_view_attempt *attempt, void *context)
{
	for (int level = 0; level < LEVELS && !view->base->kept; level++) {
		prb_view_seal(view, NULL);
		view->alone = ALONE;

		struct prb_error *err = attempt(context);
		size_t misses = view->misses;
		view->sealed = false;
		view->misses = view->alone = 0;
		PRB_TRY(err);
		if (!misses)
			break;
		PRB_TRY(prb_view_prefetch(view));
	}
	return NULL;
}

void prb_view_each_page(const struct prb_view *view,
			void (*visit)(void *context, uint64_t address, const void *data,
				      const struct prb_page_marks *read),
			void *context)
{
	const struct page *page;

	prb_vec_each (page, &view->pages)
		if (page->held == view->epoch)
			visit(context, page->number * PRB_PAGE_SIZE, page->data, &page->read);
}
