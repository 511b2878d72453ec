/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Memory of a core: what is stored in it, then what was mapped from files that the target could
 * not write and that are still to be had.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "target/core/file.h"

#define CORE_OF(mem, member) ((struct core *)((char *)(mem)-offsetof(struct core, member)))

const struct core_segment *core_segment_at(struct core *core, uint64_t address)
{
	size_t low = 0, high = core->segments.count;

	if (core->last_segment < high) {
		const struct core_segment *last = &core->segments.items[core->last_segment];

		if (address - last->address < last->size && address >= last->address)
			return last;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct core_segment *s = &core->segments.items[middle];

		if (address < s->address) {
			high = middle;
		} else if (address - s->address >= s->size) {
			low = middle + 1;
		} else {
			core->last_segment = middle;
			return s;
		}
	}
	return NULL;
}

/* Reads what the file has from @p address on, @p length bytes at most; 0 if it has nothing. */
static struct prb_error *read_stored(struct core *core, uint64_t address, void *buffer,
				     size_t length, size_t *ret)
{
	const struct core_segment *s = core_segment_at(core, address);
	uint64_t inside = s ? address - s->address : 0;

	*ret = 0;
	if (!s || inside >= s->stored)
		return NULL;
	length = PRB_MIN(length, s->stored - inside);
	PRB_TRY(core_file_read(core, s->offset + inside, buffer, length));
	*ret = length;
	return NULL;
}

/* @p reason: why the file that was mapped there does not help, or NULL. */
static struct prb_error *absent(struct core *core, uint64_t address, size_t length,
				const char *reason)
{
	const struct core_segment *s = core_segment_at(core, address);
	struct prb_error *err = prb_error_fault(address, length);

	if (s && s->cut)
		return prb_error_hint(err,
				      "the core file is truncated, %llu bytes are missing: allow "
				      "more with 'ulimit -c unlimited', or room on the disk",
				      (unsigned long long)core->info.missing_bytes);
	if (reason)
		return prb_error_hint(err, "not in the core file, and %s", reason);
	if (core->info.left_out)
		return prb_error_hint(err, "the crash record had no room for it: "
					   "'inject -c -D crash.size=256M' allows more");
	if (s)
		return prb_error_hint(err, "not in the core file: the program (MADV_DONTDUMP) or "
					   "coredump_filter left it out");
	return err;
}

/* The local file behind a mapping, opened once; fd -1 if there is none. NULL: out of memory. */
static const struct core_local *local_file(struct core *core, const struct prb_map *map)
{
	struct core_local local = {.fd = -1};

	if (!prb_local_file_base(&core->target.maps, map, &local.base))
		local.base = 0;
	for (size_t n = 0; n < core->locals.count; n++) {
		size_t i = (core->last_local + n) % core->locals.count;
		const struct core_local *known = &core->locals.items[i];

		if (known->base == local.base && !strcmp(known->path, map->path)) {
			core->last_local = i;
			return known;
		}
	}
	local.path = strdup(map->path);
	struct core_local *added = local.path ? prb_vec_push(&core->locals) : NULL;
	if (!added) {
		free(local.path);
		return NULL;
	}
	core->last_local = core->locals.count - 1;
	*added = local;

	prb_auto_error struct prb_error *err = core_open_map(core, map, &added->fd);
	if (err) {
		prb_log("core", 1, "%s", err->message);
		added->fd = -1;
		added->reason = strdup(err->message);
	}
	return added;
}

/* Reads from the file mapped at @p address, up to the mapping's end; 0 if it cannot be had. */
static struct prb_error *read_local(struct core *core, uint64_t address, void *buffer,
				    size_t length, size_t *ret, const char **reason)
{
	const struct prb_map *map = prb_maps_find(&core->target.maps, address);

	*ret = 0;
	if (!map || map->write || map->path[0] != '/')
		return NULL;

	const struct core_local *local = local_file(core, map);
	if (!local)
		return prb_error_nomem();
	if (local->fd < 0) {
		*reason = local->reason;
		return NULL;
	}
	/* Never over a stored part: that may have been changed by a debugger. */
	const struct core_segment *s = core_segment_at(core, address);
	uint64_t end = s ? PRB_MIN(map->end, s->address + s->size) : map->end;
	ssize_t n = pread(local->fd, buffer, PRB_MIN(length, end - address),
			  (off_t)(map->offset + (address - map->start)));
	if (n > 0)
		*ret = (size_t)n;
	return NULL;
}

static struct prb_error *stored_read(struct prb_mem *mem, uint64_t address, void *buffer,
				     size_t length)
{
	struct core *core = CORE_OF(mem, stored);

	for (size_t done = 0, part; done < length; done += part) {
		PRB_TRY(read_stored(core, address + done, (char *)buffer + done, length - done,
				    &part));
		if (!part)
			return absent(core, address + done, length - done, NULL);
	}
	return NULL;
}

static struct prb_error *all_read(struct prb_mem *mem, uint64_t address, void *buffer,
				  size_t length)
{
	struct core *core = CORE_OF(mem, all);

	for (size_t done = 0, part; done < length; done += part) {
		char *to = (char *)buffer + done;
		const char *reason = NULL;

		PRB_TRY(read_stored(core, address + done, to, length - done, &part));
		if (!part)
			PRB_TRY(read_local(core, address + done, to, length - done, &part,
					   &reason));
		if (!part)
			return absent(core, address + done, length - done, reason);
	}
	return NULL;
}

/* Both are part of the core and end with it. */
static void mem_destroy(struct prb_mem *mem)
{
	(void)mem;
}

static const struct prb_mem_ops stored_ops = {
	.read = stored_read,
	.destroy = mem_destroy,
};

static const struct prb_mem_ops all_ops = {
	.read = all_read,
	.destroy = mem_destroy,
};

void core_mem_init(struct core *core)
{
	core->stored.ops = &stored_ops;
	core->all.ops = &all_ops;
	core->target.mem = &core->all;
}

void core_mem_deinit(struct core *core)
{
	struct core_local *local;

	prb_vec_each (local, &core->locals) {
		free(local->path);
		free(local->reason);
		if (local->fd >= 0)
			close(local->fd);
	}
	prb_vec_free(&core->locals);
}
