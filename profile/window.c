/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/window.h"

#include "base/checked.h"

static int64_t part_of(int64_t value, double part)
{
	return (int64_t)((double)value * part);
}

/* False if it ended before. */
static bool cut_run(struct prb_run *run, int64_t from)
{
	int64_t end = run->begin + run->wall;
	double part;

	if (run->begin >= from)
		return true;
	if (end <= from)
		return false;
	part = (double)(end - from) / (double)run->wall;
	run->begin = from;
	run->wall = end - from;
	run->cpu = part_of(run->cpu, part);
	run->queue = part_of(run->queue, part);
	run->cpu_squares *= part;
	run->samples = PRB_MAX((uint32_t)((double)run->samples * part), 1u);
	run->reads = PRB_MIN(run->reads, run->samples);
	return true;
}

void prb_recording_cut_before(struct prb_recording *r, int64_t from)
{
	struct prb_profile_thread *thread;
	struct prb_profile_process *other;
	size_t kept = 0;

	if (from <= r->gone)
		return;
	prb_vec_each (thread, &r->threads)
		thread->cpu = 0;
	for (size_t i = 0; i < r->runs.count; i++) {
		struct prb_run run = r->runs.items[i];

		if (!cut_run(&run, from))
			continue;
		r->threads.items[run.thread].cpu += run.cpu;
		r->runs.items[kept++] = run;
	}
	r->runs.count = kept;
	r->gone = from;
	r->process_cpu = -1;
	prb_vec_each (other, &r->others)
		other->cpu = -1;
}
