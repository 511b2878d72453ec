/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "judge/chain.h"
#include "judge/threads.h"
#include "sql/spec/table.h"
#include "sql/tables/shared/peers.h"

enum {
	TID,
	NAME,
	STEPS,
	CHAIN,
	CIRCLE,
	ROOT_PID,
	ROOT_TID,
	ROOT_NAME,
	ROOT_STATE,
	ROOT_WAITS_FOR,
	ROOT_PLACE,
};

static const struct prb_column columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread that waits for a thread or a process"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Its name"},
	[STEPS] = {"steps", PRB_COLUMN_INTEGER, "How many waits lead to the root"},
	[CHAIN] = {"chain", PRB_COLUMN_TEXT,
		   "All threads on the way, with what each is waited for by"},
	[CIRCLE] = {"circle", PRB_COLUMN_INTEGER, "1 if the root waits for one of the chain"},
	[ROOT_PID] = {"root_pid", PRB_COLUMN_INTEGER, "Process at the end of the chain"},
	[ROOT_TID] = {"root_tid", PRB_COLUMN_INTEGER,
		      "Thread at its end; NULL if that process cannot be read"},
	[ROOT_NAME] = {"root_name", PRB_COLUMN_TEXT, "Its name"},
	[ROOT_STATE] = {"root_state", PRB_COLUMN_TEXT, "As in python.threads"},
	[ROOT_WAITS_FOR] = {"root_waits_for", PRB_COLUMN_TEXT, "What it waits for"},
	[ROOT_PLACE] = {"root_place", PRB_COLUMN_TEXT, "Function, file and line it is in"},
	{},
};

static void put_root(struct prb_scan *scan, const struct prb_peers *peers,
		     const struct prb_chain *chain)
{
	struct prb_peer_thread at = chain->list.items[chain->list.count - 1];
	const struct prb_dump_thread *root = prb_peer_thread(peers, at);
	prb_auto_str struct prb_str place = {};

	if (chain->unread) {
		prb_put_integer(scan, ROOT_PID, chain->unread);
		return;
	}
	prb_put_integer(scan, ROOT_PID, peers->list.items[at.peer].pid);
	prb_put_integer(scan, ROOT_TID, root->tid);
	prb_put_text(scan, ROOT_NAME, root->name ? root->name : root->os_name);
	prb_put_static(scan, ROOT_STATE, root->state);
	prb_put_text(scan, ROOT_WAITS_FOR, root->waits_for);
	if (prb_case_put_place(&place, root))
		prb_put_text(scan, ROOT_PLACE, prb_str_text(&place));
}

static struct prb_error *put(struct prb_scan *scan, struct prb_peers *peers, size_t number,
			     size_t *rows)
{
	prb_auto_chain struct prb_chain chain = {};
	prb_auto_str struct prb_str text = {};
	const struct prb_dump_thread *thread;

	PRB_TRY(prb_chain_follow(peers, peers->list.items[0].pid, number, &chain));
	if (chain.list.count < 2 && !chain.unread && !chain.circle)
		return NULL;
	prb_chain_put(&text, peers, &chain);
	if (text.failed)
		return prb_error_nomem();
	thread = &peers->list.items[0].dump->threads.items[number];
	++*rows;
	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, TID, thread->tid);
	prb_put_static(scan, NAME, thread->name ? thread->name : thread->os_name);
	prb_put_integer(scan, STEPS, (int64_t)chain.list.count - !chain.unread);
	prb_put_text(scan, CHAIN, prb_str_text(&text));
	prb_put_integer(scan, CIRCLE, chain.circle);
	put_root(scan, peers, &chain);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	struct prb_peers *peers;
	size_t rows = 0;

	PRB_TRY(prb_peers_of(scan, &peers));
	for (size_t i = 0; peers && i < peers->list.items[0].dump->threads.count; i++)
		PRB_TRY(put(scan, peers, i, &rows));
	if (peers)
		prb_peers_note_none(scan, rows);
	return NULL;
}

const struct prb_table prb_table_wait_roots = {
	.schema = "wait",
	.name = "roots",
	.doc = "What each thread waits for in the end, through threads and other processes",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 20,
	.scan = scan,
};
