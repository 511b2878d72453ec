/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rows that wait for the server: chunks in cold files, in the folder NAME.waiting beside the state.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/own_file.h"
#include "clickhouse/ship_private.h"
#include "command/exit.h"

enum { MIB = 1 << 20, DEFAULT_MIB = 1024, FILES = 16, FILE_BYTES = 16 << 20, KEEP_S = 30 * 86400 };

char *prb_ship_stem(const struct prb_ship_source *source)
{
	return prb_format("%016" PRIx64 "-%u", source->id, (unsigned)source->uid);
}

bool prb_ship_parse_cold(const char *name, const char *stem, uint64_t *number)
{
	size_t length = strlen(stem);
	int end = 0;

	return !strncmp(name, stem, length) && prb_cold_is_name(name) &&
	       sscanf(name + length, ".%16" SCNu64 PRB_COLD_END "%n", number, &end) == 1 && end &&
	       !name[length + (size_t)end];
}

struct prb_error *prb_ship_open_cold(int folder, const char *name, uid_t owner,
				     const struct prb_ring_header *header, struct prb_ring **ret,
				     uint64_t *end)
{
	const struct prb_ring_range never = {INT64_MAX, INT64_MIN};
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_error *err;
	bool more = true;
	uint64_t size, begin;
	int fd = prb_own_file_open(folder, name, O_RDONLY, owner, &size);

	*ret = NULL;
	if (fd < 0)
		return NULL;
	err = prb_ring_open(fd, name, &ring);
	if (!err && (!ring->cold || (header && !prb_ring_is_same(&ring->header, header))))
		return NULL;
	begin = err ? 0 : ring->offset;
	/* Nothing is unpacked: only how far it goes is of interest. */
	while (!err && more)
		err = prb_ring_next_chunk(ring, &never, &more);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (err)
		return NULL;
	*end = ring->chunk;
	ring->offset = begin;
	ring->chunk = 0;
	*ret = prb_steal(&ring);
	return NULL;
}

static int max_size(const struct prb_ship *ship)
{
	return ship->options->max_size ? ship->options->max_size : DEFAULT_MIB;
}

struct prb_error *prb_ship_store(struct prb_ship *ship, struct prb_ship_source *source)
{
	const uint64_t slots = (uint64_t)source->header.chunks << source->header.chunk_shift;

	if (source->refused || !prb_ship_look(source) || source->head - source->next < slots / 2)
		return NULL;
	if (!source->cold.stem) {
		source->cold.stem = prb_ship_stem(source);
		source->cold.folder = ship->waiting;
		source->cold.begun = true;
		/* Whole files are dropped if there is too much. */
		source->cold.file_bytes =
			PRB_MIN((uint64_t)max_size(ship) * MIB / FILES, (uint64_t)FILE_BYTES);
		if (!source->cold.stem)
			return prb_error_nomem();
		PRB_TRY(prb_cold_continue(&source->cold, &source->header));
	}
	/* Rows that have arrived are not stored. */
	source->cold.next = PRB_MAX(source->cold.next, source->next >> source->header.chunk_shift);
	return prb_cold_store(&source->cold, source->fd, source->ended);
}

static struct prb_ship_source *find(const struct prb_ship *ship, uint64_t id)
{
	for (size_t i = 0; i < ship->sources.count; i++)
		if (ship->sources.items[i]->id == id)
			return ship->sources.items[i];
	return NULL;
}

/** "ID-UID.NUMBER.cold" */
static bool parse_name(const char *name, uint64_t *id, uid_t *uid)
{
	unsigned number;
	int end = 0;

	if (!prb_cold_is_name(name) ||
	    sscanf(name, "%16" SCNx64 "-%u.%n", id, &number, &end) != 2 || end < 18)
		return false;
	*uid = number;
	return true;
}

/** True if all rows of the file have arrived. */
static struct prb_error *is_over(const struct prb_ship *ship, const char *name, bool *ret)
{
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_ship_source *source;
	uint64_t id, end, next;
	uid_t uid;

	*ret = false;
	if (!parse_name(name, &id, &uid))
		return NULL;
	source = find(ship, id);
	if (source && !source->placed)
		return NULL;
	next = source ? source->next : 0;
	if (!source) {
		const struct prb_ship_entry *entry = prb_ship_state_find(&ship->state, id);

		next = entry ? entry->next : 0;
	}
	PRB_TRY(prb_ship_open_cold(ship->waiting, name, geteuid(), NULL, &ring, &end));
	*ret = ring && end << ring->header.chunk_shift <= next;
	/* If this file is still being written, it is closed: the next chunk begins a new file. */
	if (*ret && source)
		prb_close_guard(&source->cold.fd);
	return NULL;
}

static struct prb_error *each_file(struct prb_ship *ship,
				   struct prb_error *(*visit)(struct prb_ship *ship,
							      const char *name))
{
	int copy = openat(ship->waiting, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!stream)
		return prb_error_os(errno, "cannot list %s.waiting", ship->state.path);
	while ((entry = readdir(stream)))
		if (prb_cold_is_name(entry->d_name))
			PRB_TRY(visit(ship, entry->d_name));
	return NULL;
}

static struct prb_error *remove_if_over(struct prb_ship *ship, const char *name)
{
	bool over;

	PRB_TRY(is_over(ship, name, &over));
	if (over)
		unlinkat(ship->waiting, name, 0);
	return NULL;
}

struct prb_error *prb_ship_prune(struct prb_ship *ship)
{
	const int most = max_size(ship);
	prb_auto_str struct prb_str text = {};
	uint64_t removed;

	PRB_TRY(each_file(ship, remove_if_over));
	PRB_TRY(prb_cold_prune(ship->waiting, time(NULL) - KEEP_S, (uint64_t)most * MIB, &removed));
	if (removed && !ship->bound_told) {
		prb_str_printf(
			&text,
			"rows that wait for the server have reached %d MiB, which --max-size "
			"says: the oldest are dropped",
			most);
		prb_warn(prb_str_text(&text));
	}
	ship->bound_told |= removed > 0;
	return NULL;
}

/** Follows a ring that only has cold files left, or another cold file of a known ring. */
static struct prb_error *adopt(struct prb_ship *ship, const char *name)
{
	prb_auto_ring struct prb_ring *ring = NULL;
	const struct prb_ship_entry *entry;
	struct prb_ship_source *source;
	struct prb_error *err;
	uint64_t id, end;
	uid_t uid;

	if (!parse_name(name, &id, &uid))
		return NULL;
	PRB_TRY(prb_ship_open_cold(ship->waiting, name, geteuid(), NULL, &ring, &end));
	if (!ring)
		return NULL;
	end <<= ring->header.chunk_shift;
	source = find(ship, id);
	if (source) {
		if (source->fd < 0)
			source->head = source->goal = PRB_MAX(source->head, end);
		return NULL;
	}
	entry = prb_ship_state_find(&ship->state, id);
	if ((entry && entry->next >= end) || !prb_ship_has_room(ship, uid))
		return NULL;
	source = prb_ship_new_source();
	if (!source)
		return prb_error_nomem();
	source->id = id;
	source->uid = uid;
	/* Only ours are stored under that name. */
	source->kind = strcmp(ring->header.schema, "probing") ? PRB_SHIP_RING : PRB_SHIP_METRICS;
	source->ended = true;
	source->header = ring->header;
	memcpy(source->columns, ring->columns, sizeof(source->columns));
	source->head = source->goal = end;
	err = prb_str_copy(name, &source->path);
	if (!err)
		err = prb_str_copy(ship->options->job	 ? ship->options->job
				   : entry && entry->job ? entry->job
							 : "",
				   &source->job);
	if (err) {
		prb_ship_source_destroy(source);
		return err;
	}
	return prb_ship_add(ship, source);
}

struct prb_error *prb_ship_adopt(struct prb_ship *ship)
{
	return each_file(ship, adopt);
}
