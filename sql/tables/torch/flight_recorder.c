/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "control/flight.h"
#include "sql/engine/instant.h"
#include "sql/engine/json_rows.h"
#include "sql/spec/table.h"

static const struct prb_column columns[] = {
	{"record_id", PRB_COLUMN_INTEGER, "Number of the entry"},
	{"group_name", PRB_COLUMN_TEXT, "Name of the process group"},
	{"group_desc", PRB_COLUMN_TEXT, "What the process group is for, as the program says"},
	{"backend", PRB_COLUMN_TEXT, "Backend, as gloo or nccl"},
	{"operation", PRB_COLUMN_TEXT, "What is done, as torch calls it"},
	{"seq", PRB_COLUMN_INTEGER, "Number of the collective in its group, the same on all ranks"},
	{"p2p_seq", PRB_COLUMN_INTEGER, "Number among the operations between two ranks"},
	{"state", PRB_COLUMN_TEXT, "scheduled, started or completed"},
	{"created", PRB_COLUMN_REAL, "When the rank called it, since the epoch", "s",
	 PRB_COLUMN_TIME},
	{"started", PRB_COLUMN_REAL,
	 "When it was seen to have started, since the epoch; NULL: not seen", "s", PRB_COLUMN_TIME},
	{"completed", PRB_COLUMN_REAL,
	 "When it was seen to have ended, since the epoch; NULL: not seen", "s", PRB_COLUMN_TIME},
	{"duration", PRB_COLUMN_REAL, "How long it took; NULL: not measured", "ms"},
	{"input_sizes", PRB_COLUMN_TEXT, "JSON: shapes of the tensors that it was given"},
	{"input_dtypes", PRB_COLUMN_TEXT, "JSON: their types"},
	{"output_sizes", PRB_COLUMN_TEXT, "JSON: shapes of the tensors that it writes to"},
	{"output_dtypes", PRB_COLUMN_TEXT, "JSON: their types"},
	{"timeout", PRB_COLUMN_REAL, "Time after which its group gives up", "ms"},
	{},
};

/** In the order of the columns; two recorders may have the same entry. */
static const char query[] =
	"SELECT DISTINCT json_extract(e, '$.record_id'), json_extract(e, '$.process_group[0]'), "
	"json_extract(e, '$.process_group[1]'), CASE WHEN colon > 1 THEN substr(name, 1, colon - "
	"1) "
	"END, substr(name, colon + 1), json_extract(e, '$.collective_seq_id'), "
	"json_extract(e, '$.p2p_seq_id'), json_extract(e, '$.state'), "
	"nullif(json_extract(e, '$.time_created_ns') + 0, 0) / 1e9, "
	"nullif(json_extract(e, '$.time_discovered_started_ns') + 0, 0) / 1e9, "
	"nullif(json_extract(e, '$.time_discovered_completed_ns') + 0, 0) / 1e9, "
	"json_extract(e, '$.duration_ms'), json_extract(e, '$.input_sizes'), "
	"json_extract(e, '$.input_dtypes'), json_extract(e, '$.output_sizes'), "
	"json_extract(e, '$.output_dtypes'), json_extract(e, '$.timeout_ms') "
	"FROM (SELECT e.value AS e, json_extract(e.value, '$.profiling_name') AS name, "
	"instr(json_extract(e.value, '$.profiling_name'), ':') AS colon "
	"FROM json_each(?1) AS d, json_each(d.value, '$.entries') AS e)";

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_str struct prb_str json = {};
	struct prb_error *err =
		prb_flight_dump(prb_instant_target(scan->instant), PRB_FLIGHT_SECONDS, &json);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) {
		prb_scan_note(scan, "torch.flight_recorder is empty: the process has no agent that "
				    "could ask torch; 'probing PID inject' loads it");
		return NULL;
	}
	if (err && err->code == PRB_ERROR_UNSUPPORTED) {
		prb_scan_note(scan, "torch.flight_recorder is empty: %s", err->message);
		prb_error_destroy(err);
		return NULL;
	}
	PRB_TRY(err);
	return prb_scan_json(scan, query, &json);
}

const struct prb_table prb_table_torch_flight_recorder = {
	.schema = "torch",
	.name = "flight_recorder",
	.doc = "Operations of torch.distributed that torch itself has recorded",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 2000,
	.scan = scan,
};
