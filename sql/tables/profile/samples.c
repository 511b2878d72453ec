/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/recordings.h"

enum { TIME, SECONDS, TID, THREAD, STACK, STATE, SAMPLES, CPU, WALL, QUEUE, GIL, WAITS };

static const struct prb_column columns[] = {
	[TIME] = {"time", PRB_COLUMN_REAL, "When it began, in seconds since the epoch", "s",
		  .flags = PRB_COLUMN_TIME},
	[SECONDS] = {"second", PRB_COLUMN_REAL, "The same from the start of the recording on", "s"},
	[TID] = {"tid", PRB_COLUMN_INTEGER, "Thread id"},
	[THREAD] = {"thread", PRB_COLUMN_TEXT, "Name of the thread: Python's, or the kernel's"},
	[STACK] = {"stack", PRB_COLUMN_INTEGER, "Which stack: its frames are in profile.stacks"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "What it did: on a processor, waits for a processor, asleep, asleep in the "
		   "kernel, stopped"},
	[SAMPLES] = {"samples", PRB_COLUMN_INTEGER,
		     "How many in a row found the same stack in the same state"},
	[CPU] = {"cpu_ns", PRB_COLUMN_INTEGER, "How long the thread had a processor", "ns"},
	[WALL] = {"wall_ns", PRB_COLUMN_INTEGER, "How much time passed", "ns"},
	[QUEUE] = {"runqueue_ns", PRB_COLUMN_INTEGER, "How long it waited for a processor", "ns"},
	[GIL] = {"gil", PRB_COLUMN_TEXT,
		 "Whether it holds the GIL, or waits for it: holds, waits, or NULL"},
	[WAITS] = {"waits_for", PRB_COLUMN_TEXT,
		   "What it waited for, and who held that, if it is known"},
	{},
};

struct way {
	struct prb_load_cursor *cursor;
	const struct prb_run *runs; /* of the chunk */
	size_t count, next;
};

static void end(void *state)
{
	struct way *way = state;

	prb_load_cursor_destroy(way->cursor);
	free(way);
}

static struct prb_error *begin(struct prb_scan *scan, struct prb_load *load)
{
	struct way *way = calloc(1, sizeof(*way));

	if (!way)
		return prb_error_nomem();
	scan->state = way;
	scan->end = end;
	return prb_load_cursor_create(load, &way->cursor);
}

static const char *name_of(const struct prb_profile_thread *thread)
{
	return thread->name ? thread->name : thread->os_name;
}

static void put(struct prb_scan *scan, const struct prb_recording *about, const struct prb_run *run)
{
	const struct prb_profile_thread *thread = &about->threads.items[run->thread];
	double second = (double)run->begin / 1e9;

	prb_put_real(scan, TIME, about->started + second);
	prb_put_real(scan, SECONDS, second);
	prb_put_integer(scan, TID, thread->tid);
	prb_put_static(scan, THREAD, name_of(thread));
	prb_put_integer(scan, STACK, run->stack);
	prb_put_static(scan, STATE, prb_run_state_name(run->state));
	prb_put_integer(scan, SAMPLES, run->samples);
	prb_put_integer(scan, CPU, run->cpu);
	prb_put_integer(scan, WALL, run->wall);
	prb_put_recorded_wait(scan, GIL, WAITS, about, run);
	prb_put_integer(scan, QUEUE, run->queue);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	struct prb_load *load;
	struct way *way;

	PRB_TRY(prb_scan_recording(scan, &load));
	if (!scan->state)
		PRB_TRY(begin(scan, load));
	for (way = scan->state;;) {
		if (way->next == way->count) {
			way->next = 0;
			PRB_TRY(prb_load_next(way->cursor, &way->runs, &way->count));
			if (!way->count)
				return NULL;
		}
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		PRB_TRY(prb_scan_row(scan));
		put(scan, prb_load_about(load), &way->runs[way->next++]);
	}
}

const struct prb_table prb_table_profile_samples = {
	.schema = "profile",
	.name = "samples",
	.doc = "What threads did, in order of time, as a recording has it",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 100000,
	.scan = scan,
};
