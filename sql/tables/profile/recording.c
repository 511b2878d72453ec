/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/recordings.h"

enum {
	STARTED,
	DURATION,
	RATE,
	TID,
	ENDED,
	TIMES,
	LATE,
	MISSED,
	UNREADABLE,
	STOPS,
	AGAIN,
	PAUSE_P50,
	PAUSE_P99,
	PAUSE_MAX,
	PAUSE_TOTAL,
	OWN_CPU,
	PROBING,
	SYSTEM,
};

static const struct prb_column columns[] = {
	[STARTED] = {"started", PRB_COLUMN_REAL, "When it began, in seconds since the epoch", "s",
		     .flags = PRB_COLUMN_TIME},
	[DURATION] = {"duration", PRB_COLUMN_REAL, "How long it took", "s"},
	[RATE] = {"rate", PRB_COLUMN_REAL, "Samples a second that were asked for"},
	[TID] = {"tid", PRB_COLUMN_INTEGER, "The only thread that was sampled; NULL for all"},
	[ENDED] = {"ended", PRB_COLUMN_TEXT, "Why it ended; NULL if its time was over"},
	[TIMES] = {"times", PRB_COLUMN_INTEGER, "How often threads were looked at"},
	[LATE] = {"late", PRB_COLUMN_INTEGER, "Of these, those more than half a mean gap late"},
	[MISSED] = {"missed", PRB_COLUMN_INTEGER, "Times that passed unused"},
	[UNREADABLE] = {"unreadable", PRB_COLUMN_INTEGER, "Samples whose stack could not be read"},
	[STOPS] = {"stops", PRB_COLUMN_INTEGER, "How often a thread was stopped"},
	[AGAIN] = {"stopped_again", PRB_COLUMN_INTEGER,
		   "Of these, those because the one before came between two frames"},
	[PAUSE_P50] = {"pause_p50_us", PRB_COLUMN_REAL, "How long half of the stops were at most",
		       "µs"},
	[PAUSE_P99] = {"pause_p99_us", PRB_COLUMN_REAL, "How long 99 of 100 stops were at most",
		       "µs"},
	[PAUSE_MAX] = {"pause_max_us", PRB_COLUMN_REAL, "The longest stop", "µs"},
	[PAUSE_TOTAL] = {"pause_total_us", PRB_COLUMN_REAL, "All stops together", "µs"},
	[OWN_CPU] = {"own_cpu_ms", PRB_COLUMN_REAL, "What probing itself used of a processor",
		     "ms"},
	[PROBING] = {"probing", PRB_COLUMN_TEXT, "Version of probing that recorded it"},
	[SYSTEM] = {"system", PRB_COLUMN_TEXT, "Kernel and machine"},
	{},
};

static void put_cost(struct prb_scan *scan, const struct prb_profile_cost *cost)
{
	prb_put_integer(scan, TIMES, (int64_t)cost->times);
	prb_put_integer(scan, LATE, (int64_t)cost->late);
	prb_put_integer(scan, MISSED, (int64_t)cost->missed);
	prb_put_integer(scan, UNREADABLE, (int64_t)cost->unreadable);
	prb_put_integer(scan, STOPS, (int64_t)cost->stops);
	prb_put_integer(scan, AGAIN, (int64_t)cost->again);
	prb_put_real(scan, PAUSE_P50, cost->pause_p50);
	prb_put_real(scan, PAUSE_P99, cost->pause_p99);
	prb_put_real(scan, PAUSE_MAX, cost->pause_max);
	prb_put_real(scan, PAUSE_TOTAL, cost->pause_total);
	prb_put_real(scan, OWN_CPU, prb_milliseconds(cost->own_cpu));
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_recording *about;
	struct prb_load *load;

	PRB_TRY(prb_scan_recording(scan, &load));
	about = prb_load_about(load);
	PRB_TRY(prb_scan_row(scan));
	prb_put_real(scan, STARTED, about->started);
	prb_put_real(scan, DURATION, (double)about->duration / 1e9);
	prb_put_real(scan, RATE, about->rate);
	if (about->tid)
		prb_put_integer(scan, TID, about->tid);
	prb_put_static(scan, ENDED, prb_profile_end_text(about->end));
	put_cost(scan, &about->cost);
	prb_put_static(scan, PROBING, prb_load_writer(load));
	prb_put_static(scan, SYSTEM, prb_load_system(load));
	return NULL;
}

const struct prb_table prb_table_profile_recording = {
	.schema = "profile",
	.name = "recording",
	.doc = "The recording itself: when it was made, and what it cost",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 1,
	.scan = scan,
};
