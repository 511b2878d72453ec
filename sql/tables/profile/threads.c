/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/recordings.h"

enum { TID, NAME, OS_NAME, CPU, WALL, QUEUE, GIL, GIL_WAIT, SAMPLES, ENDED };

static const struct prb_column columns[] = {
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread id"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Python's name of the thread; NULL if it has none"},
	[OS_NAME] = {"os_name", PRB_COLUMN_TEXT, "The kernel's"},
	[CPU] = {"cpu_ms", PRB_COLUMN_REAL, "How long it had a processor", "ms"},
	[WALL] = {"wall_ms", PRB_COLUMN_REAL, "How long it was recorded", "ms"},
	[QUEUE] = {"runqueue_ms", PRB_COLUMN_REAL, "How long it waited for a processor", "ms"},
	[GIL] = {"gil_ms", PRB_COLUMN_REAL, "How long it held the GIL", "ms"},
	[GIL_WAIT] = {"gil_wait_ms", PRB_COLUMN_REAL, "How long it waited for the GIL", "ms"},
	[SAMPLES] = {"samples", PRB_COLUMN_INTEGER, "How often it was looked at"},
	[ENDED] = {"ended", PRB_COLUMN_INTEGER,
		   "Whether it ended before the recording did: 1 or 0"},
	{},
};

struct sums {
	int64_t wall, queue, gil, gil_wait;
	uint64_t samples;
};

static struct prb_error *put(struct prb_scan *scan, const struct prb_recording *r,
			     const struct sums *sums)
{
	for (size_t i = 0; i < r->threads.count; i++) {
		const struct prb_profile_thread *thread = &r->threads.items[i];

		PRB_TRY(prb_scan_row(scan));
		prb_put_integer(scan, TID, thread->tid);
		prb_put_static(scan, NAME, thread->name);
		prb_put_static(scan, OS_NAME, thread->os_name);
		prb_put_real(scan, CPU, prb_milliseconds(thread->cpu));
		prb_put_real(scan, WALL, prb_milliseconds(sums[i].wall));
		prb_put_real(scan, QUEUE, prb_milliseconds(sums[i].queue));
		prb_put_real(scan, GIL, prb_milliseconds(sums[i].gil));
		prb_put_real(scan, GIL_WAIT, prb_milliseconds(sums[i].gil_wait));
		prb_put_integer(scan, SAMPLES, (int64_t)sums[i].samples);
		prb_put_integer(scan, ENDED, thread->ended);
	}
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_recording *r;
	prb_auto_free struct sums *sums = NULL;
	const struct prb_run *run;

	PRB_TRY(prb_scan_recording_runs(scan, &r));
	sums = calloc(r->threads.count + 1, sizeof(*sums));
	if (!sums)
		return prb_error_nomem();
	prb_vec_each (run, &r->runs) {
		sums[run->thread].wall += run->wall;
		sums[run->thread].queue += run->queue;
		sums[run->thread].gil += run->gil ? run->wall : 0;
		sums[run->thread].gil_wait += run->wait_kind == PRB_WAIT_GIL ? run->wall : 0;
		sums[run->thread].samples += run->samples;
	}
	return put(scan, r, sums);
}

const struct prb_table prb_table_profile_threads = {
	.schema = "profile",
	.name = "threads",
	.doc = "Threads of a recording",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 50,
	.scan = scan,
};
