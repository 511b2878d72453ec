/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/mem/blocks.h"

#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	PAGE = 4096,
	GROUP_PAGES = 16, /* that lie side by side here, too, so that they can be read at once */
	GROUP = GROUP_PAGES * PAGE,
	SLOTS = PRB_BLOCKS_MAX / PAGE,
	GROUP_BITS = 10,
};

_Static_assert(SLOTS == GROUP_PAGES << GROUP_BITS, "the hash gives GROUP_BITS bits");

/* Bits of a slot, below the address of its page. HELD without THERE: the page cannot be read. */
enum { HELD = 1, THERE = 2 };

struct prb_blocks {
	struct prb_mem mem; /* first: the cache is a memory source itself */
	struct prb_mem *base;
	char *data; /* SLOTS pages; unused ones take no memory */
	uint64_t slots[SLOTS];
};

static size_t slot_of(uint64_t page)
{
	size_t group = (size_t)(page / GROUP * 0x9e3779b97f4a7c15u >> (64 - GROUP_BITS));

	return group * GROUP_PAGES + page / PAGE % GROUP_PAGES;
}

static bool is_held(const struct prb_blocks *blocks, uint64_t page)
{
	return (blocks->slots[slot_of(page)] & ~(uint64_t)THERE) == (page | HELD);
}

/*
 * How many pages are read at once: as many as were read before this one without a gap. So what lies
 * in order is read in large pieces, and of what is scattered nothing in vain.
 */
static size_t pages_at_once(const struct prb_blocks *blocks, uint64_t page)
{
	size_t most = GROUP_PAGES - page / PAGE % GROUP_PAGES, count = 1;

	while (count < most && is_held(blocks, page - count * PAGE))
		count++;
	return count;
}

/* Reads a page, and some that follow it; one by one where not all are there. */
static struct prb_error *fill(struct prb_blocks *blocks, uint64_t page)
{
	size_t slot = slot_of(page), count = pages_at_once(blocks, page);
	struct prb_block pages[GROUP_PAGES];
	struct prb_error *err;

	for (size_t i = 0; i < count; i++) {
		pages[i] = (struct prb_block){page + i * PAGE, PAGE,
					      blocks->data + (slot + i) * PAGE, true};
		blocks->slots[slot + i] = 0;
	}
	err = prb_mem_read(blocks->base, page, blocks->data + slot * PAGE, count * PAGE);
	if (prb_error_catch(&err, PRB_ERROR_FAULT))
		err = prb_mem_read_many(blocks->base, pages, count);
	PRB_TRY(err);
	for (size_t i = 0; i < count; i++)
		blocks->slots[slot + i] = pages[i].address | HELD | (pages[i].ok ? THERE : 0);
	return NULL;
}

/* The page's data; NULL if it cannot be read. */
static struct prb_error *hold(struct prb_blocks *blocks, uint64_t page, const char **ret)
{
	size_t slot = slot_of(page);

	if (!is_held(blocks, page))
		PRB_TRY(fill(blocks, page));
	*ret = blocks->slots[slot] & THERE ? blocks->data + slot * PAGE : NULL;
	return NULL;
}

/* One part of a read, within one page. A part may be readable although its page is not. */
static struct prb_error *read_part(struct prb_blocks *blocks, uint64_t address, void *buffer,
				   size_t length)
{
	const char *data;

	PRB_TRY(hold(blocks, address - address % PAGE, &data));
	if (!data)
		return prb_mem_read(blocks->base, address, buffer, length);
	memcpy(buffer, data + address % PAGE, length);
	return NULL;
}

static struct prb_error *blocks_read(struct prb_mem *mem, uint64_t address, void *buffer,
				     size_t length)
{
	while (length) {
		size_t part = PRB_MIN(length, PAGE - address % PAGE);

		PRB_TRY(read_part((struct prb_blocks *)mem, address, buffer, part));
		buffer = (char *)buffer + part;
		address += part;
		length -= part;
	}
	return NULL;
}

static const struct prb_mem_ops blocks_ops = {
	.read = blocks_read,
};

struct prb_error *prb_blocks_create(struct prb_mem *base, struct prb_blocks **ret)
{
	struct prb_blocks *blocks = calloc(1, sizeof(*blocks));

	if (!blocks)
		return prb_error_nomem();
	blocks->data = malloc(PRB_BLOCKS_MAX);
	if (!blocks->data) {
		free(blocks);
		return prb_error_nomem();
	}
	blocks->mem.ops = &blocks_ops;
	blocks->base = base;
	*ret = blocks;
	return NULL;
}

void prb_blocks_destroy(struct prb_blocks *blocks)
{
	if (!blocks)
		return;
	free(blocks->data);
	free(blocks);
}

struct prb_mem *prb_blocks_mem(struct prb_blocks *blocks)
{
	return &blocks->mem;
}

const void *prb_blocks_at(struct prb_blocks *blocks, uint64_t address, size_t length)
{
	uint64_t offset = address % PAGE, page = address - offset;
	const char *data, *next;

	if (!length || length > PAGE || address % GROUP + length > GROUP)
		return NULL;

	prb_auto_error struct prb_error *err = hold(blocks, page, &data);

	if (!err && data && offset + length > PAGE) {
		err = hold(blocks, page + PAGE, &next);
		data = err || !next ? NULL : data;
	}
	return !err && data ? data + offset : NULL;
}

void prb_blocks_drop(struct prb_blocks *blocks)
{
	uintptr_t begin = ((uintptr_t)blocks->data + PAGE - 1) & -(uintptr_t)PAGE;
	uintptr_t end = ((uintptr_t)blocks->data + PRB_BLOCKS_MAX) & -(uintptr_t)PAGE;

	memset(blocks->slots, 0, sizeof(blocks->slots));
	(void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void prb_blocks_forget(struct prb_blocks *blocks, uint64_t address)
{
	uint64_t page = address - address % PAGE;

	if (is_held(blocks, page))
		blocks->slots[slot_of(page)] = 0;
}
