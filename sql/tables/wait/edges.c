/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/peers.h"

enum { TID, NAME, KIND, PEER_PID, PEER_TID, ONLY, ALL_KNOWN, ENDLESS, IDLE_SECONDS, WAITS_FOR };

static const struct prb_column columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread that waits"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Its name"},
	[KIND] =
		{"kind", PRB_COLUMN_TEXT,
		 "lock, thread, child, process, pipe, socket, file lock, semaphore, shared memory, "
		 "zmq or ring (ipc.rings)"},
	[PEER_PID] = {"peer_pid", PRB_COLUMN_INTEGER,
		      "Process that can end the wait; may be its own"},
	[PEER_TID] = {"peer_tid", PRB_COLUMN_INTEGER,
		      "Thread that holds the lock or is to end; NULL if any of the process can"},
	[ONLY] = {"only", PRB_COLUMN_INTEGER, "1 if nobody but that thread can"},
	[ALL_KNOWN] = {"all_known", PRB_COLUMN_INTEGER,
		       "1 if all processes that can have a row; not known without root, or in a "
		       "container"},
	[ENDLESS] = {"endless", PRB_COLUMN_INTEGER, "1 if the wait has no limit of time"},
	[IDLE_SECONDS] = {"idle_seconds", PRB_COLUMN_REAL, "How long it has slept; NULL if unknown",
			  "s"},
	[WAITS_FOR] = {"waits_for", PRB_COLUMN_TEXT, "What it waits for"},
	{},
};

static void put(struct prb_scan *scan, const struct prb_dump_thread *thread, unsigned number)
{
	const struct prb_enders *enders = &thread->enders;

	prb_put_integer(scan, TID, thread->tid);
	prb_put_static(scan, NAME, thread->name ? thread->name : thread->os_name);
	prb_put_static(scan, KIND, prb_enders_kind(enders, enders->pids[number]));
	prb_put_integer(scan, PEER_PID, enders->pids[number]);
	if (enders->tid)
		prb_put_integer(scan, PEER_TID, enders->tid);
	else if (enders->holder_pid == enders->pids[number])
		prb_put_integer(scan, PEER_TID, enders->holder_tid);
	prb_put_integer(scan, ONLY, enders->alone);
	prb_put_integer(scan, ALL_KNOWN, enders->certain);
	prb_put_integer(scan, ENDLESS, enders->endless);
	if (thread->idle_seconds >= 0)
		prb_put_real(scan, IDLE_SECONDS, thread->idle_seconds);
	prb_put_static(scan, WAITS_FOR, thread->waits_for);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_dump_thread *thread;
	struct prb_peers *peers;
	size_t rows = 0;

	PRB_TRY(prb_peers_of(scan, &peers));
	if (!peers)
		return NULL;
	prb_vec_each (thread, &peers->list.items[0].dump->threads)
		for (unsigned i = 0; thread->enders.kind && i < thread->enders.count; i++) {
			PRB_TRY(prb_scan_row(scan));
			put(scan, thread, i);
			rows++;
		}
	prb_peers_note_none(scan, rows);
	return NULL;
}

const struct prb_table prb_table_wait_edges = {
	.schema = "wait",
	.name = "edges",
	.doc = "Threads that wait for a thread or a process, and for which: a row for each process "
	       "that can end the wait",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 20,
	.scan = scan,
};
