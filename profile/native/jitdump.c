/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/jitdump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/siphash.h"
#include "dump/tasks/tasks.h"

enum {
	MAGIC = 0x4A695444, /* "JiTD", in the byte order of this machine */
	MOST_HEADER = 4096,
	MOST_RECORDS = 1 << 20,
	MOST_AT_ONCE = 1 << 14, /* records */
	MOST_REFUSED = 16,	/* files */
	NAME_MOST = 500,
	CODE_LOAD = 0,
	CODE_MOVE = 1,
};

/* As the kernel's jitdump specification has them. */
struct header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t timestamp, flags;
};
struct record {
	uint32_t id, size;
	uint64_t timestamp;
};
struct code_load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};
struct code_move {
	uint32_t pid, tid;
	uint64_t vma, old, address, size, index;
};

void prb_jitdump_init(struct prb_jitdump *dump)
{
	*dump = (struct prb_jitdump){};
	prb_perf_map_init(&dump->names);
	/* Without it names are found nevertheless, but maybe slowly. */
	if (getrandom(dump->key, sizeof(dump->key), 0) < 0)
		prb_log("profile", 1, "no random numbers: %m");
}

void prb_jitdump_deinit(struct prb_jitdump *dump)
{
	prb_perf_map_deinit(&dump->names);
	prb_number_map_deinit(&dump->places);
	prb_vec_free(&dump->refused);
}

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
	return pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* Of the file's choice, which is not to say where in the map they are. */
static uint64_t slot_of(const struct prb_jitdump *dump, uint64_t index)
{
	return prb_siphash(1, 3, dump->key, &index, sizeof(index));
}

/* The name's place in the text, so that code that moves keeps its name. */
static struct prb_error *add(struct prb_jitdump *dump, const struct code_load *load,
			     const char *name, size_t length)
{
	const size_t before = dump->names.symbols.count;

	PRB_TRY(prb_perf_map_add(&dump->names, load->address, load->size, name, length));
	if (dump->names.symbols.count > before &&
	    !prb_number_map_put(&dump->places, slot_of(dump, load->index),
				dump->names.symbols.items[before].name))
		return prb_error_nomem();
	return NULL;
}

/* The name follows, with its NUL, and behind it the code. */
static struct prb_error *take_load(struct prb_jitdump *dump, uint64_t at, uint64_t size)
{
	struct code_load load;
	char name[NAME_MOST + 1];
	size_t length;

	if (size <= sizeof(load) || !read_at(dump->names.fd, &load, sizeof(load), at))
		return NULL;
	length = PRB_MIN(size - sizeof(load), sizeof(name) - 1);
	if (!read_at(dump->names.fd, name, length, at + sizeof(load)))
		return NULL;
	length = strnlen(name, length);
	return length ? add(dump, &load, name, length) : NULL;
}

static struct prb_error *take_move(struct prb_jitdump *dump, uint64_t at, uint64_t size)
{
	struct code_move move;
	size_t place;

	if (size < sizeof(move) || !read_at(dump->names.fd, &move, sizeof(move), at) ||
	    !prb_number_map_get(&dump->places, slot_of(dump, move.index), &place))
		return NULL;
	return prb_perf_map_add_named(&dump->names, move.address, move.size, (uint32_t)place);
}

static struct prb_error *take_record(struct prb_jitdump *dump, const struct record *record,
				     uint64_t at)
{
	const uint64_t inside = at + sizeof(*record), size = record->size - sizeof(*record);

	if (record->id == CODE_LOAD)
		return take_load(dump, inside, size);
	return record->id == CODE_MOVE ? take_move(dump, inside, size) : NULL;
}

/* Skips the header; the file is bad if it has none that makes sense. */
static void begin(struct prb_jitdump *dump)
{
	struct header header;

	if (!read_at(dump->names.fd, &header, sizeof(header), 0))
		return;
	dump->bad = header.magic != MAGIC || header.pid != (uint32_t)dump->pid ||
		    header.size < sizeof(header) || header.size > MOST_HEADER;
	dump->names.read = header.size;
}

struct prb_error *prb_jitdump_read(struct prb_jitdump *dump)
{
	struct stat st;
	const size_t before = dump->names.symbols.count;
	const uint64_t most = PRB_MIN(dump->records + MOST_AT_ONCE, (uint64_t)MOST_RECORDS);

	if (dump->bad || fstat(dump->names.fd, &st))
		return NULL;
	if (!dump->names.read)
		begin(dump);
	while (!dump->bad && dump->names.read && dump->records < most) {
		struct record record;
		uint64_t end;

		if (!read_at(dump->names.fd, &record, sizeof(record), dump->names.read))
			break;
		dump->bad = record.size < sizeof(record) ||
			    !prb_add(dump->names.read, record.size, &end);
		/* A record that is not whole yet is read the next time. */
		if (dump->bad || end > (uint64_t)st.st_size)
			break;
		PRB_TRY(take_record(dump, &record, dump->names.read));
		dump->names.read = end;
		if (++dump->records == MOST_RECORDS)
			prb_log("profile", 1, "%s has over %d records: later ones are not read",
				dump->names.path ? dump->names.path : "a jitdump file",
				MOST_RECORDS);
	}
	if (dump->names.symbols.count > before)
		prb_perf_map_sort(&dump->names);
	return NULL;
}

/* "jit-4242.dump", or "perf-4242.dump": not one of its parent, whose mappings a fork inherits. */
static bool is_dump(const struct prb_jitdump *dump, const struct prb_map *map)
{
	const char *slash = strrchr(map->path, '/');
	char jit[32], perf[32];

	if (!map->exec || map->deleted || !slash)
		return false;
	snprintf(jit, sizeof(jit), "/jit-%d.dump", (int)dump->pid);
	snprintf(perf, sizeof(perf), "/perf-%d.dump", (int)dump->pid);
	return !strcmp(slash, jit) || !strcmp(slash, perf);
}

static bool is_refused(const struct prb_jitdump *dump, const struct prb_map *map)
{
	const uint64_t *inode;

	prb_vec_each (inode, &dump->refused)
		if (*inode == map->inode)
			return true;
	return dump->refused.count >= MOST_REFUSED;
}

static struct prb_error *open_file(struct prb_jitdump *dump, struct prb_target *target,
				   const struct prb_map *map)
{
	prb_auto_close int fd = -1;

	PRB_TRY(prb_target_open_map(target, map, &fd));
	PRB_TRY(prb_perf_map_check(target, map->path, fd));
	free(dump->names.path);
	dump->names.path = strdup(map->path);
	if (!dump->names.path)
		return prb_error_nomem();
	dump->names.fd = fd;
	fd = -1;
	return NULL;
}

/* A file that is not what its name says is left for others; a header may still be written. */
static struct prb_error *keep_or_refuse(struct prb_jitdump *dump, const struct prb_map *map)
{
	uint64_t *slot;

	begin(dump);
	if (dump->names.read && !dump->bad)
		return NULL;
	prb_close_guard(&dump->names.fd);
	dump->names.read = 0;
	if (!dump->bad)
		return NULL;
	dump->bad = false;
	prb_log("profile", 1, "%s is no jitdump file of this process", map->path);
	slot = prb_vec_push(&dump->refused);
	if (!slot)
		return prb_error_nomem();
	*slot = map->inode;
	return NULL;
}

static struct prb_error *open_dump(struct prb_jitdump *dump, struct prb_target *target)
{
	const struct prb_map *map;

	if (!dump->pid)
		dump->pid = prb_task_inner_tid(target, target->pid);
	prb_vec_each (map, &target->maps.list) {
		struct prb_error *err;

		if (!is_dump(dump, map) || is_refused(dump, map))
			continue;
		err = open_file(dump, target, map);
		if (!err)
			err = keep_or_refuse(dump, map);
		if (dump->names.fd >= 0 || (err && err->code == PRB_ERROR_NOMEM))
			return err;
		if (err)
			prb_log("profile", 1, "%s", err->message);
		prb_error_destroy(err);
	}
	return NULL;
}

struct prb_error *prb_jitdump_update(struct prb_jitdump *dump, struct prb_target *target)
{
	if (dump->names.fd < 0)
		PRB_TRY(open_dump(dump, target));
	return dump->names.fd < 0 ? NULL : prb_jitdump_read(dump);
}
