/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/facts.h"
#include "target/task.h"
#include "values/shared_rings.h"

enum { MOST_PEERS = 64 };

enum {
	NAME,
	WRITES,
	OWN_READER,
	CHUNKS,
	CHUNK_BYTES,
	READERS,
	CURRENT,
	WRITER_PID,
	READER,
	READER_PID,
	UNREAD,
	BLOCKS,
};

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name of its shared memory, as in ipc.segments"},
	[WRITES] = {"writes", PRB_COLUMN_INTEGER,
		    "1 if this process writes it, 0 if it reads; NULL if unknown"},
	[OWN_READER] = {"own_reader", PRB_COLUMN_INTEGER,
			"Which of its readers this process is; NULL if none"},
	[CHUNKS] = {"chunks", PRB_COLUMN_INTEGER, "How many messages it can hold"},
	[CHUNK_BYTES] = {"chunk_bytes", PRB_COLUMN_INTEGER, "Size of each, at most", "bytes"},
	[READERS] = {"readers", PRB_COLUMN_INTEGER, "How many read it"},
	[CURRENT] = {"current", PRB_COLUMN_INTEGER,
		     "The chunk that this process is to write or read next"},
	[WRITER_PID] = {"writer_pid", PRB_COLUMN_INTEGER,
			"The process that writes it; NULL if it cannot be found"},
	[READER] = {"reader", PRB_COLUMN_INTEGER, "Number of the reader that the row is about"},
	[READER_PID] = {"reader_pid", PRB_COLUMN_INTEGER,
			"Its process; NULL if it cannot be found"},
	[UNREAD] = {"unread", PRB_COLUMN_INTEGER, "Messages written that it has not read"},
	[BLOCKS] = {"blocks", PRB_COLUMN_INTEGER,
		    "1 if the writer's next chunk is one of these: it waits for this reader. NULL "
		    "if the writer cannot be found"},
	{},
};

/* The rings of one process that shares one with the target. */
struct peer {
	pid_t pid;
	struct prb_shared_rings rings;
};

struct peers {
	PRB_VEC(struct peer) list; /**< the first is the target */
};

static void peers_deinit(struct peers *peers)
{
	struct peer *peer;

	prb_vec_each (peer, &peers->list)
		prb_shared_rings_deinit(&peer->rings);
	prb_vec_free(&peers->list);
}

static struct prb_error *add(struct peers *peers, struct prb_target *t)
{
	struct peer *peer = prb_vec_push(&peers->list);

	if (!peer)
		return prb_error_nomem();
	peer->pid = t->pid;
	return prb_shared_rings_read(t, &peer->rings);
}

/* One that cannot be read is not known. */
static struct prb_error *add_process(struct peers *peers, pid_t pid)
{
	prb_auto_target struct prb_target *t = NULL;
	const struct peer *peer;
	struct prb_error *err;

	prb_vec_each (peer, &peers->list)
		if (peer->pid == pid)
			return NULL;
	if (peers->list.count >= MOST_PEERS)
		return NULL;
	err = prb_target_open_process(pid, &t);
	if (!err)
		err = add(peers, t);
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *add_sharers(struct peers *peers)
{
	const struct prb_shared_rings *own = &peers->list.items[0].rings;
	size_t count = own->list.count;
	struct prb_sharers *sharers = count ? calloc(count, sizeof(*sharers)) : NULL;
	struct prb_error *err;
	bool all;

	if (!sharers)
		return count ? prb_error_nomem() : NULL;
	for (size_t i = 0; i < count; i++) {
		const struct prb_shared_ring *ring = &own->list.items[i];

		sharers[i].word = (struct prb_shared_word){
			.inode = ring->inode, .major = ring->major, .minor = ring->minor};
	}
	err = prb_sharers_find(sharers, count, &all);
	for (size_t i = 0; i < count; i++) {
		const pid_t *pid;

		prb_vec_each (pid, &sharers[i].pids.list)
			if (!err)
				err = add_process(peers, *pid);
		prb_pids_deinit(&sharers[i].pids);
	}
	free(sharers);
	return err;
}

/* The process that is the reader @p reader of the ring; -1: that writes it. NULL: not known. */
static const struct peer *find(const struct peers *peers, const struct prb_shared_ring *ring,
			       int64_t reader, const struct prb_shared_ring **ret)
{
	const struct peer *peer;

	prb_vec_each (peer, &peers->list)
		for (size_t i = 0; i < peer->rings.list.count; i++) {
			const struct prb_shared_ring *other = &peer->rings.list.items[i];

			*ret = other;
			if (other->has_queue && prb_shared_ring_same(other, ring) &&
			    (reader < 0 ? other->writes : other->reader == reader))
				return peer;
		}
	return NULL;
}

static void put(struct prb_scan *scan, const struct peers *peers,
		const struct prb_shared_ring *ring, int64_t reader)
{
	const struct prb_shared_ring *writing, *reading;
	const struct peer *writer = find(peers, ring, -1, &writing);
	const struct peer *other = find(peers, ring, reader, &reading);

	prb_put_text(scan, NAME, prb_str_text(&ring->name));
	if (ring->has_queue)
		prb_put_integer(scan, WRITES, ring->writes);
	prb_put_natural(scan, OWN_READER, ring->reader);
	prb_put_integer(scan, CHUNKS, ring->chunks);
	prb_put_integer(scan, CHUNK_BYTES, ring->chunk_bytes);
	prb_put_integer(scan, READERS, ring->readers);
	prb_put_natural(scan, CURRENT, ring->current);
	prb_put_integer(scan, READER, reader);
	prb_put_integer(scan, UNREAD, prb_shared_ring_unread(ring, reader));
	if (other)
		prb_put_integer(scan, READER_PID, other->pid);
	if (!writer)
		return;
	prb_put_integer(scan, WRITER_PID, writer->pid);
	if (writing->current >= 0)
		prb_put_integer(scan, BLOCKS,
				prb_shared_ring_is_unread(ring, writing->current, reader));
}

static struct prb_error *scan(struct prb_scan *scan)
{
	__attribute__((cleanup(peers_deinit))) struct peers peers = {};
	struct prb_target *t = prb_instant_target(scan->instant);
	bool told;

	PRB_TRY(prb_fact_told(scan, add(&peers, t), &told));
	if (!told)
		return NULL;
	if (t->live && t->local)
		PRB_TRY(add_sharers(&peers));
	/* The list may have moved, not the rings. */
	for (size_t i = 0; i < peers.list.items[0].rings.list.count; i++) {
		const struct prb_shared_ring *ring = &peers.list.items[0].rings.list.items[i];

		for (int64_t reader = 0; reader < ring->readers; reader++) {
			PRB_TRY(prb_scan_row(scan));
			put(scan, &peers, ring, reader);
		}
	}
	if (!peers.list.items[0].rings.list.count)
		prb_scan_note(scan, "ipc.rings: the process has no ShmRingBuffer");
	return NULL;
}

const struct prb_table prb_table_ipc_rings = {
	.schema = "ipc",
	.name = "rings",
	.doc = "Rings of messages in shared memory (ShmRingBuffer of vLLM and SGLang), a row for "
	       "each "
	       "reader",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 20,
	.scan = scan,
};
