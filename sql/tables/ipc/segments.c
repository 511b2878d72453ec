/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/facts.h"
#include "target/task.h"

enum { MOST_SEGMENTS = 1024 };

enum { NAME, KIND, SIZE, START, INODE, DELETED, PEER_PID, ALL_KNOWN };

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT,
		  "Its name: psm_4f1c0a2b of multiprocessing.shared_memory"},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "What it is: posix (a file in /dev/shm), semaphore, memfd, sysv, anonymous"},
	[SIZE] = {"size", PRB_COLUMN_INTEGER, "How much of it is mapped here", "bytes"},
	[START] = {"start", PRB_COLUMN_INTEGER, "Where it is mapped first"},
	[INODE] = {"inode", PRB_COLUMN_INTEGER, "Inode of its file"},
	[DELETED] = {"deleted", PRB_COLUMN_INTEGER, "1 if nobody can open it by its name any more"},
	[PEER_PID] = {"peer_pid", PRB_COLUMN_INTEGER,
		      "Another process that has mapped it; NULL if none is known"},
	[ALL_KNOWN] = {"all_known", PRB_COLUMN_INTEGER,
		       "1 if all processes could be asked; needs root outside of containers"},
	{},
};

static const char *kind_of(const char *path)
{
	static const struct {
		const char *start, *kind;
	} kinds[] = {{"/dev/shm/sem.", "semaphore"},
		     {"/dev/shm/", "posix"},
		     {"/memfd:", "memfd"},
		     {"/SYSV", "sysv"},
		     {"/dev/zero", "anonymous"}};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(kinds); i++)
		if (!strncmp(path, kinds[i].start, strlen(kinds[i].start)))
			return kinds[i].kind;
	return NULL;
}

struct segment {
	const struct prb_map *map; /**< the first one */
	const char *kind;
	uint64_t size;
};

struct segments {
	PRB_VEC(struct segment) list;
	PRB_VEC(struct prb_sharers) sharers; /**< one for each */
	struct prb_maps maps;
};

static void segments_deinit(struct segments *s)
{
	struct prb_sharers *sharers;

	prb_vec_each (sharers, &s->sharers)
		prb_pids_deinit(&sharers->pids);
	prb_vec_free(&s->sharers);
	prb_vec_free(&s->list);
	prb_maps_deinit(&s->maps);
}

static struct segment *find(const struct segments *s, const struct prb_map *map)
{
	struct segment *segment;

	prb_vec_each (segment, &s->list)
		if (segment->map->inode == map->inode && segment->map->major == map->major &&
		    segment->map->minor == map->minor)
			return segment;
	return NULL;
}

static struct prb_error *collect(struct segments *s)
{
	const struct prb_map *map;

	prb_vec_each (map, &s->maps.list) {
		const char *kind = map->shared && map->inode ? kind_of(map->path) : NULL;
		struct segment *segment = kind ? find(s, map) : NULL;
		struct prb_sharers *sharers;

		if (segment)
			segment->size += map->end - map->start;
		if (segment || !kind || s->list.count >= MOST_SEGMENTS)
			continue;
		segment = prb_vec_push(&s->list);
		sharers = prb_vec_push(&s->sharers);
		if (!segment || !sharers)
			return prb_error_nomem();
		*segment = (struct segment){map, kind, map->end - map->start};
		sharers->word = (struct prb_shared_word){.inode = map->inode,
							 .offset = map->offset,
							 .major = map->major,
							 .minor = map->minor};
	}
	return NULL;
}

static void put(struct prb_scan *scan, const struct segment *segment, bool all)
{
	const char *name = strrchr(segment->map->path, '/');

	prb_put_text(scan, NAME, name ? name + 1 : segment->map->path);
	prb_put_static(scan, KIND, segment->kind);
	prb_put_integer(scan, SIZE, (int64_t)segment->size);
	prb_put_integer(scan, START, (int64_t)segment->map->start);
	prb_put_integer(scan, INODE, (int64_t)segment->map->inode);
	prb_put_integer(scan, DELETED, segment->map->deleted);
	prb_put_integer(scan, ALL_KNOWN, all);
}

static struct prb_error *put_all(struct prb_scan *scan, const struct segments *s, bool all)
{
	pid_t own = prb_instant_target(scan->instant)->pid;

	for (size_t i = 0; i < s->list.count; i++) {
		const struct prb_pids *pids = &s->sharers.items[i].pids;
		bool alone = true;

		for (size_t k = 0; k < pids->list.count; k++) {
			if (pids->list.items[k] == own)
				continue;
			PRB_TRY(prb_scan_row(scan));
			put(scan, &s->list.items[i], all);
			prb_put_integer(scan, PEER_PID, pids->list.items[k]);
			alone = false;
		}
		if (!alone)
			continue;
		PRB_TRY(prb_scan_row(scan));
		put(scan, &s->list.items[i], all);
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	__attribute__((cleanup(segments_deinit))) struct segments s = {};
	struct prb_target *t = prb_instant_target(scan->instant);
	bool all = false, told;

	PRB_TRY(prb_fact_told(scan, prb_target_read_maps(t, &s.maps), &told));
	if (!told)
		return NULL;
	PRB_TRY(collect(&s));
	if (t->live && t->local && prb_scan_wants(scan, PEER_PID))
		PRB_TRY(prb_sharers_find(s.sharers.items, s.sharers.count, &all));
	if (!s.list.count)
		prb_scan_note(scan, "ipc.segments: the process shares no memory");
	return put_all(scan, &s, all);
}

const struct prb_table prb_table_ipc_segments = {
	.schema = "ipc",
	.name = "segments",
	.doc = "Shared memory that is mapped, a row for each other process that has it",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 20,
	.scan = scan,
};
