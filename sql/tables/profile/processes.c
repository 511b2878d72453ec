/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/recordings.h"

enum { PID, COMMAND, PYTHON, CPU };

static const struct prb_column columns[] = {
	[PID] = {"pid", PRB_COLUMN_INTEGER, "Process id"},
	[COMMAND] = {"command", PRB_COLUMN_TEXT, "Its command line"},
	[PYTHON] = {"python", PRB_COLUMN_TEXT, "Version of its Python"},
	[CPU] = {"cpu_ms", PRB_COLUMN_REAL,
		 "How long all its threads had processors meanwhile, also those never looked at",
		 "ms"},
	{},
};

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_profile_process *other;
	const struct prb_recording *about;
	struct prb_load *load;

	PRB_TRY(prb_scan_recording(scan, &load));
	about = prb_load_about(load);
	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, PID, about->pid);
	prb_put_static(scan, COMMAND, about->command);
	prb_put_static(scan, PYTHON, about->python);
	if (about->process_cpu >= 0)
		prb_put_real(scan, CPU, prb_milliseconds(about->process_cpu));
	prb_vec_each (other, &about->others) {
		PRB_TRY(prb_scan_row(scan));
		prb_put_integer(scan, PID, other->pid);
		prb_put_static(scan, COMMAND, other->command);
		prb_put_static(scan, PYTHON, other->python);
		if (other->cpu >= 0)
			prb_put_real(scan, CPU, prb_milliseconds(other->cpu));
	}
	return NULL;
}

const struct prb_table prb_table_profile_processes = {
	.schema = "profile",
	.name = "processes",
	.doc = "Processes of a recording",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 1,
	.scan = scan,
};
