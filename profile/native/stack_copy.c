/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/stack_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* Code without call frame information of its own is read by the page. */
static struct prb_error *read_code(struct prb_stack_copy *copy, uint64_t address, void *buffer,
				   size_t length)
{
	const struct prb_map *map = prb_maps_find(&copy->target->maps, address);

	if (!map || !map->read || (map->write && !map->exec) ||
	    !prb_inside(address - map->start, length, map->end - map->start))
		return prb_error_fault(address, length);
	return prb_mem_read(prb_view_mem(copy->code), address, buffer, length);
}

static bool is_code(const struct prb_stack_copy *copy, uint64_t address)
{
	const struct prb_map *map = prb_maps_find(&copy->target->maps, address);

	return map && map->exec && !map->write;
}

static struct prb_error *copy_read(struct prb_mem *mem, uint64_t address, void *buffer,
				   size_t length)
{
	struct prb_stack_copy *copy = (struct prb_stack_copy *)mem;
	uint64_t size = copy->end - copy->begin;

	if (address >= copy->begin && prb_inside(address - copy->begin, length, size)) {
		memcpy(buffer, copy->bytes + (address - copy->begin), length);
		copy->used = PRB_MAX(copy->used, address + length);
		return NULL;
	}
	/* Code may lie close behind a thread's stack. */
	if (!copy->all && address >= copy->begin &&
	    address - copy->begin < PRB_STACK_MOST - length && !is_code(copy, address)) {
		copy->ran_out = true;
		return prb_error_fault(address, length);
	}
	return read_code(copy, address, buffer, length);
}

static const struct prb_mem_ops copy_ops = {.read = copy_read};

struct prb_error *prb_stack_copy_init(struct prb_stack_copy *copy, struct prb_target *target)
{
	*copy = (struct prb_stack_copy){.mem.ops = &copy_ops, .target = target};
	return prb_view_create(target->mem, &copy->code);
}

void prb_stack_copy_deinit(struct prb_stack_copy *copy)
{
	prb_view_destroy(copy->code);
	free(copy->bytes);
}

/* All up to the first page that is not there. */
static struct prb_error *read_pages(struct prb_stack_copy *copy, uint64_t address, size_t length)
{
	struct prb_error *err = prb_mem_read(copy->target->mem, address, copy->bytes, length);
	uint64_t stopped = err ? err->address : 0;

	copy->begin = copy->used = address;
	copy->end = address + length;
	copy->all = prb_error_catch(&err, PRB_ERROR_FAULT);
	if (copy->all)
		copy->end = PRB_MIN(PRB_MAX(stopped, address), copy->end);
	return err;
}

static bool make_room(struct prb_stack_copy *copy, size_t length)
{
	uint8_t *bytes = copy->capacity < length ? realloc(copy->bytes, length) : copy->bytes;

	if (!bytes)
		return false;
	copy->bytes = bytes;
	copy->capacity = PRB_MAX(copy->capacity, length);
	return true;
}

struct prb_error *prb_stack_copy_make(struct prb_stack_copy *copy, uint64_t sp, size_t length)
{
	enum { BELOW = 256 };

	copy->ran_out = false;
	length = PRB_MIN(length, (size_t)PRB_STACK_MOST);
	if (sp < BELOW || sp > UINT64_MAX - PRB_STACK_MOST)
		length = 0;
	if (!make_room(copy, length + BELOW))
		return prb_error_nomem();
	PRB_TRY(read_pages(copy, sp - BELOW, length ? length + BELOW : 0));
	return copy->end == copy->begin && length ? read_pages(copy, sp, length) : NULL;
}

struct prb_error *prb_stack_copy_give(struct prb_stack_copy *copy, uint64_t sp, const void *bytes,
				      size_t length)
{
	length = sp > UINT64_MAX - PRB_STACK_MOST ? 0 : PRB_MIN(length, (size_t)PRB_STACK_MOST);
	if (!make_room(copy, length + 1))
		return prb_error_nomem();
	if (length)
		memcpy(copy->bytes, bytes, length);
	copy->begin = copy->used = sp;
	copy->end = sp + length;
	copy->all = copy->ran_out = false;
	return NULL;
}
