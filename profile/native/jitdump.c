/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/jitdump.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"

enum {
	MAGIC = 0x4A695444, /* "JiTD", in the byte order of this machine */
	MOST_HEADER = 4096,
	MOST_RECORDS = 1 << 20,
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
}

void prb_jitdump_deinit(struct prb_jitdump *dump)
{
	prb_perf_map_deinit(&dump->names);
	prb_number_map_deinit(&dump->places);
}

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
	return pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

/* The name's place in the text, so that code that moves keeps its name. */
static struct prb_error *add(struct prb_jitdump *dump, uint64_t address, uint64_t size,
			     uint64_t index, const char *name, size_t length)
{
	const size_t before = dump->names.symbols.count;

	PRB_TRY(prb_perf_map_add(&dump->names, address, size, name, length));
	if (dump->names.symbols.count > before &&
	    !prb_number_map_put(&dump->places, index, dump->names.symbols.items[before].name))
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
	return length ? add(dump, load.address, load.size, load.index, name, length) : NULL;
}

static struct prb_error *take_move(struct prb_jitdump *dump, uint64_t at, uint64_t size)
{
	struct code_move move;
	char name[NAME_MOST + 1];
	size_t place, length;

	if (size < sizeof(move) || !read_at(dump->names.fd, &move, sizeof(move), at) ||
	    !prb_number_map_get(&dump->places, move.index, &place))
		return NULL;
	/* A copy: the text may move when it grows. */
	length = strnlen(dump->names.text.items + place, NAME_MOST);
	memcpy(name, dump->names.text.items + place, length);
	return add(dump, move.address, move.size, move.index, name, length);
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
	dump->bad =
		header.magic != MAGIC || header.size < sizeof(header) || header.size > MOST_HEADER;
	dump->names.read = header.size;
}

struct prb_error *prb_jitdump_read(struct prb_jitdump *dump)
{
	struct stat st;
	const size_t before = dump->names.symbols.count;

	if (dump->bad || fstat(dump->names.fd, &st))
		return NULL;
	if (!dump->names.read)
		begin(dump);
	while (!dump->bad && dump->names.read && dump->records < MOST_RECORDS) {
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
		dump->records++;
	}
	if (dump->names.symbols.count > before)
		prb_perf_map_sort(&dump->names);
	return NULL;
}

/* "jit-4242.dump", or "perf-4242.dump". */
static bool is_dump(const struct prb_map *map)
{
	const char *slash = strrchr(map->path, '/');
	size_t digits, begin;

	if (!map->exec || map->deleted || !slash)
		return false;
	begin = !strncmp(slash, "/jit-", 5) ? 5 : !strncmp(slash, "/perf-", 6) ? 6 : 0;
	digits = begin ? strspn(slash + begin, "0123456789") : 0;
	return digits && !strcmp(slash + begin + digits, ".dump");
}

static struct prb_error *open_dump(struct prb_jitdump *dump, struct prb_target *target)
{
	const struct prb_map *map;
	struct prb_error *err;

	prb_vec_each (map, &target->maps.list) {
		if (!is_dump(map))
			continue;
		free(dump->names.path);
		dump->names.path = strdup(map->path);
		if (!dump->names.path)
			return prb_error_nomem();
		err = prb_perf_map_open(target, map->path, &dump->names.fd);
		if (!err || err->code == PRB_ERROR_NOMEM)
			return err;
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
