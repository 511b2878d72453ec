/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/peers.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"

static void destroy(void *peers)
{
	prb_peers_deinit(peers);
	free(peers);
}

static struct prb_error *create(struct prb_instant *instant, void **ret)
{
	struct prb_peers *peers = calloc(1, sizeof(*peers));
	struct prb_error *err;
	size_t first;

	if (!peers)
		return prb_error_nomem();
	err = prb_peers_add(peers, prb_instant_target(instant)->pid, &first);
	if (!err)
		err = prb_peers_find_holders(peers, first);
	if (!err)
		err = prb_peers_note_idle(peers);
	if (err)
		destroy(peers);
	else
		*ret = peers;
	return err;
}

struct prb_error *prb_peers_of(struct prb_scan *scan, struct prb_peers **ret)
{
	static const char key;
	const struct prb_target *target = prb_instant_target(scan->instant);
	void *peers;

	*ret = NULL;
	if (!target->live || !target->local) {
		prb_scan_note(scan,
			      "%s.%s: other processes can be asked about a live process of "
			      "this machine only",
			      scan->table->schema, scan->table->name);
		return NULL;
	}
	PRB_TRY(prb_instant_memo(scan->instant, &key, create, destroy, &peers));
	*ret = peers;
	if ((*ret)->list.items[0].dump)
		return NULL;
	prb_scan_note(scan, "%s.%s: the threads of %d cannot be read", scan->table->schema,
		      scan->table->name, (int)target->pid);
	*ret = NULL;
	return NULL;
}

void prb_peers_note_none(struct prb_scan *scan, size_t rows)
{
	if (!rows)
		prb_scan_note(scan, "%s.%s: no thread waits for a thread or process that is known",
			      scan->table->schema, scan->table->name);
}
