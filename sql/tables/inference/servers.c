/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "sql/tables/shared/servers.h"

enum { PID, ENGINE, VERSION, PART, ROLE, ACTIVITY, REQUESTS, MISSING };

static const struct prb_column columns[] = {
	[PID] = {"pid", PRB_COLUMN_INTEGER, "The process"},
	[ENGINE] = {"engine", PRB_COLUMN_TEXT, "'vLLM', 'SGLang', …"},
	[VERSION] = {"version", PRB_COLUMN_TEXT, "Version of the engine"},
	[PART] = {"part", PRB_COLUMN_TEXT, "'API server', 'engine core', 'worker TP1', …"},
	[ROLE] = {"role", PRB_COLUMN_TEXT, "'frontend', 'scheduler', 'worker' or 'detokenizer'"},
	[ACTIVITY] = {"activity", PRB_COLUMN_TEXT,
		      "'waits for work', 'waits for its workers', 'in a step'; NULL: not known"},
	[REQUESTS] = {"requests", PRB_COLUMN_INTEGER, "How many requests it has"},
	[MISSING] = {"_error", PRB_COLUMN_TEXT, "What could not be read or found, and why"},
	{},
};

struct reading {
	struct prb_engines engines;
	struct prb_server server;
};

static void destroy(void *memo)
{
	struct reading *reading = memo;

	prb_server_deinit(&reading->server);
	prb_engines_deinit(&reading->engines);
	free(reading);
}

static struct prb_error *create(struct prb_instant *instant, void **ret)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	struct prb_error *err;

	if (!reading)
		return prb_error_nomem();
	err = prb_engines_load(getenv("PROBING_ENGINES"), &reading->engines);
	if (!err)
		err = prb_server_read(&reading->engines, prb_instant_target(instant)->pid,
				      prb_instant_mode(instant), &reading->server);
	if (err)
		destroy(reading);
	else
		*ret = reading;
	return err;
}

static void put(struct prb_scan *scan, const struct prb_server_process *p)
{
	prb_put_integer(scan, PID, p->pid);
	prb_put_static(scan, ENGINE, p->engine ? p->engine->name : NULL);
	prb_put_static(scan, VERSION, p->version);
	prb_put_static(scan, PART, p->name);
	prb_put_static(scan, ROLE, p->part ? prb_engine_role_name(p->part->role) : NULL);
	prb_put_static(scan, ACTIVITY, prb_engine_activity_text(p->activity));
	if (!p->unreadable)
		prb_put_integer(scan, REQUESTS, (int64_t)p->requests.count);
	prb_put_static(scan, MISSING, p->unreadable ? p->unreadable : p->missing);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	static const char key;
	const struct prb_target *target = prb_instant_target(scan->instant);
	struct prb_server_process *const *p;
	const struct reading *reading;
	void *memo;

	if (!target->live || !target->local) {
		prb_scan_note(scan,
			      "inference.servers: only processes of this machine have others");
		return NULL;
	}
	PRB_TRY(prb_instant_memo(scan->instant, &key, create, destroy, &memo));
	reading = memo;
	prb_vec_each (p, &reading->server.processes) {
		PRB_TRY(prb_scan_row(scan));
		put(scan, *p);
	}
	if (!reading->server.processes.count)
		prb_scan_note(scan, "inference.servers is empty: the process is none of an "
				    "inference server that is known");
	return NULL;
}

const struct prb_table prb_table_inference_servers = {
	.schema = "inference",
	.name = "servers",
	.doc = "The processes of the inference server that the target is one of: a row each",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 8,
	.scan = scan,
};
