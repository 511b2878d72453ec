/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/mem/blocks.h"

#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	PAGE = 4096,
	BLOCK_PAGES = 4, /* more at once costs more than it saves where objects lie scattered */
	BLOCK = BLOCK_PAGES * PAGE,
	SLOTS = PRB_BLOCKS_MAX / BLOCK,
	SLOT_BITS = 12,
	ALL_PAGES = (1 << BLOCK_PAGES) - 1,
};

_Static_assert(SLOTS == 1 << SLOT_BITS, "the hash gives SLOT_BITS bits");

struct slot {
	uint64_t number; /* address / BLOCK */
	bool held;
	uint8_t pages; /* bit N: page N was read */
};

struct prb_blocks {
	struct prb_mem mem; /* first: the cache is a memory source itself */
	struct prb_mem *base;
	char *data; /* SLOTS blocks; those that are not used cost nothing */
	struct slot slots[SLOTS];
};

/* Reads a block, page by page where not all of it is there. */
static struct prb_error *fill(struct prb_blocks *blocks, struct slot *slot, char *data)
{
	uint64_t address = slot->number * BLOCK;
	struct prb_error *err = prb_mem_read(blocks->base, address, data, BLOCK);

	slot->pages = ALL_PAGES;
	if (!prb_error_catch(&err, PRB_ERROR_FAULT))
		return err;

	struct prb_block pages[BLOCK_PAGES];

	for (unsigned i = 0; i < BLOCK_PAGES; i++)
		pages[i] = (struct prb_block){address + i * PAGE, PAGE, data + i * PAGE, false};
	PRB_TRY(prb_mem_read_many(blocks->base, pages, BLOCK_PAGES));
	slot->pages = 0;
	for (unsigned i = 0; i < BLOCK_PAGES; i++)
		slot->pages |= (uint8_t)(pages[i].ok << i);
	return NULL;
}

static size_t slot_of(uint64_t number)
{
	return (size_t)(number * 0x9e3779b97f4a7c15u >> (64 - SLOT_BITS));
}

/* The block's data; *pages says which of its pages are there. */
static struct prb_error *hold(struct prb_blocks *blocks, uint64_t number, const char **ret,
			      uint8_t *pages)
{
	size_t index = slot_of(number);
	struct slot *slot = &blocks->slots[index];
	char *data = blocks->data + index * BLOCK;

	if (slot->number != number || !slot->held) {
		slot->number = number;
		slot->held = false;
		PRB_TRY(fill(blocks, slot, data));
		slot->held = true;
	}
	*ret = data;
	*pages = slot->pages;
	return NULL;
}

/* The pages that a range within one block touches, as bits. */
static uint8_t pages_of(uint64_t offset, size_t length)
{
	unsigned first = (unsigned)(offset / PAGE), last = (unsigned)((offset + length - 1) / PAGE);

	return (uint8_t)((2u << last) - (1u << first));
}

/* One part of a read, within one block. What cannot be had as a page may be there by itself. */
static struct prb_error *read_part(struct prb_blocks *blocks, uint64_t address, void *buffer,
				   size_t length)
{
	const char *data;
	uint8_t pages, needed = pages_of(address % BLOCK, length);

	PRB_TRY(hold(blocks, address / BLOCK, &data, &pages));
	if ((pages & needed) != needed)
		return prb_mem_read(blocks->base, address, buffer, length);
	memcpy(buffer, data + address % BLOCK, length);
	return NULL;
}

static struct prb_error *blocks_read(struct prb_mem *mem, uint64_t address, void *buffer,
				     size_t length)
{
	while (length) {
		size_t part = PRB_MIN(length, BLOCK - address % BLOCK);

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
	const char *data;
	uint8_t pages;
	uint64_t offset = address % BLOCK;

	if (!length || offset + length > BLOCK)
		return NULL;

	prb_auto_error struct prb_error *err = hold(blocks, address / BLOCK, &data, &pages);
	uint8_t needed = pages_of(offset, length);

	return !err && (pages & needed) == needed ? data + offset : NULL;
}

void prb_blocks_drop(struct prb_blocks *blocks)
{
	uintptr_t begin = ((uintptr_t)blocks->data + PAGE - 1) & -(uintptr_t)PAGE;
	uintptr_t end = ((uintptr_t)blocks->data + PRB_BLOCKS_MAX) & -(uintptr_t)PAGE;

	for (size_t i = 0; i < SLOTS; i++)
		blocks->slots[i].held = false;
	(void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void prb_blocks_forget(struct prb_blocks *blocks, uint64_t address)
{
	struct slot *slot = &blocks->slots[slot_of(address / BLOCK)];

	if (slot->number == address / BLOCK)
		slot->held = false;
}
