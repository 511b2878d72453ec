/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>

#include "base/cleanup.h"
#include "sql/tables/shared/servers.h"

enum {
	ID,
	STATE,
	QUEUE,
	SLOT,
	ARRIVAL,
	AGE,
	PROMPT_TOKENS,
	OUTPUT_TOKENS,
	COMPUTED_TOKENS,
	PRIORITY,
	BLOCKS,
	LORA,
	PART,
	CLASS,
	ADDRESS,
};

static const struct prb_column columns[] = {
	[ID] = {"id", PRB_COLUMN_TEXT, "The request's id, as clients have it"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "Its state, in the engine's own words; NULL if it has none"},
	[QUEUE] = {"queue", PRB_COLUMN_TEXT, "The queue that it is in; NULL: in none"},
	[SLOT] = {"slot", PRB_COLUMN_INTEGER, "Its place in that queue, from 0 on"},
	[ARRIVAL] = {"arrival", PRB_COLUMN_REAL, "When it came, since the epoch", "s",
		     PRB_COLUMN_TIME},
	[AGE] = {"age", PRB_COLUMN_REAL, "How long it has been here", "s"},
	[PROMPT_TOKENS] = {"prompt_tokens", PRB_COLUMN_INTEGER, "Tokens of its prompt"},
	[OUTPUT_TOKENS] = {"output_tokens", PRB_COLUMN_INTEGER, "Tokens made for it so far"},
	[COMPUTED_TOKENS] = {"computed_tokens", PRB_COLUMN_INTEGER,
			     "Tokens, of both kinds, that are in the KV cache"},
	[PRIORITY] = {"priority", PRB_COLUMN_INTEGER, "Its priority"},
	[BLOCKS] = {"blocks", PRB_COLUMN_INTEGER, "Blocks of the KV cache that it holds"},
	[LORA] = {"lora", PRB_COLUMN_TEXT, "Its LoRA adapter; NULL: none"},
	[PART] = {"part", PRB_COLUMN_TEXT, "The process that has it: 'engine core', 'API server'"},
	[CLASS] = {"class", PRB_COLUMN_TEXT, "Class of the object that was read"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER,
		     "Address of that object, for python.attributes"},
	{},
};

static void put(struct prb_scan *scan, const struct prb_server_process *p,
		const struct prb_server_request *request)
{
	prb_put_static(scan, ID, request->id);
	prb_put_static(scan, STATE, request->state);
	prb_put_static(scan, QUEUE, request->queue);
	prb_put_natural(scan, SLOT, request->slot);
	prb_put_real(scan, ARRIVAL, request->arrival);
	prb_put_age(scan, AGE, request->arrival);
	prb_put_natural(scan, PROMPT_TOKENS, request->prompt_tokens);
	prb_put_natural(scan, OUTPUT_TOKENS, request->output_tokens);
	prb_put_natural(scan, COMPUTED_TOKENS, request->computed_tokens);
	if (request->priority != INT64_MIN)
		prb_put_integer(scan, PRIORITY, request->priority);
	prb_put_natural(scan, BLOCKS, request->blocks);
	prb_put_static(scan, LORA, request->lora);
	prb_put_static(scan, PART, p->name);
	prb_put_static(scan, CLASS, p->request_class);
	prb_put_integer(scan, ADDRESS, (int64_t)request->address);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_server_process *p;

	PRB_TRY(prb_server_of(scan, &p));
	if (!p)
		return NULL;
	while (scan->position < p->requests.count) {
		PRB_TRY(prb_scan_row(scan));
		put(scan, p, &p->requests.items[scan->position++]);
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
	}
	if (p->cut)
		prb_scan_note(scan, "inference.requests: only the first %d requests were read",
			      PRB_SERVER_REQUESTS_MAX);
	return NULL;
}

const struct prb_table prb_table_inference_requests = {
	.schema = "inference",
	.name = "requests",
	.doc = "Requests that a process of an inference server has: a row each; empty for workers",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 100,
	.scan = scan,
};
