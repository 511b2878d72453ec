/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "judge/rings.h"
#include "sql/engine/instant.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/facts.h"

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

static void put(struct prb_scan *scan, const struct prb_ring_peers *peers,
		const struct prb_shared_ring *ring, int64_t reader)
{
	const struct prb_shared_ring *writing, *reading;
	const struct prb_ring_peer *writer = prb_ring_peers_find(peers, ring, -1, &writing);
	const struct prb_ring_peer *other = prb_ring_peers_find(peers, ring, reader, &reading);

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
	prb_auto_ring_peers struct prb_ring_peers peers = {};
	const struct prb_shared_rings *own;
	bool told;

	PRB_TRY(prb_fact_told(scan, prb_ring_peers_read(prb_instant_target(scan->instant), &peers),
			      &told));
	if (!told)
		return NULL;
	own = &peers.list.items[0].rings;
	for (size_t i = 0; i < own->list.count; i++)
		for (int64_t reader = 0; reader < own->list.items[i].readers; reader++) {
			PRB_TRY(prb_scan_row(scan));
			put(scan, &peers, &own->list.items[i], reader);
		}
	if (!own->list.count)
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
