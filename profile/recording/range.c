/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/range.h"

#include <math.h>

#include "base/checked.h"

static uint32_t part_of(uint32_t count, double part)
{
	return (uint32_t)PRB_MAX(ceil(count * part - 1e-9), 1.0);
}

bool prb_run_inside(const struct prb_run *run, int64_t from, int64_t to, struct prb_run *ret)
{
	int64_t begin = PRB_MAX(run->begin, from), end = PRB_MIN(run->begin + run->wall, to);
	double part;

	*ret = *run;
	if (run->begin >= from && run->begin + run->wall <= to && run->begin < to)
		return true;
	if (begin >= end)
		return false;
	part = (double)(end - begin) / (double)run->wall;
	ret->begin = begin;
	ret->wall = end - begin;
	ret->cpu = (int64_t)((double)run->cpu * part);
	ret->queue = (int64_t)((double)run->queue * part);
	ret->samples = part_of(run->samples, part);
	ret->reads = part_of(run->reads, part);
	ret->cpu_squares *= part;
	ret->wall_squares *= part;
	ret->queue_squares *= part;
	return true;
}

int64_t prb_recording_moment(const struct prb_recording *recording, int64_t covered)
{
	const struct prb_profile_window *window;

	if (!recording->condition)
		return covered;
	prb_vec_each (window, &recording->windows) {
		int64_t length = window->end - window->begin;

		if (covered <= length)
			return window->begin + covered;
		covered -= length;
	}
	return recording->duration;
}

static void clip_windows(struct prb_recording *recording, int64_t from, int64_t to)
{
	size_t kept = 0;

	for (size_t i = 0; i < recording->windows.count; i++) {
		struct prb_profile_window window = recording->windows.items[i];

		window.begin = PRB_MAX(window.begin, from) - from;
		window.end = PRB_MIN(window.end, to) - from;
		if (window.begin < window.end)
			recording->windows.items[kept++] = window;
	}
	recording->windows.count = kept;
}

void prb_recording_clip(struct prb_recording *recording, int64_t from, int64_t to)
{
	struct prb_profile_process *other;
	struct prb_profile_thread *thread;
	size_t kept = 0;

	to = PRB_MIN(to, recording->duration);
	from = PRB_MIN(from, to);
	prb_vec_each (thread, &recording->threads)
		thread->cpu = 0;
	for (size_t i = 0; i < recording->runs.count; i++) {
		struct prb_run inside;

		if (!prb_run_inside(&recording->runs.items[i], from, to, &inside))
			continue;
		inside.begin -= from;
		recording->threads.items[inside.thread].cpu += inside.cpu;
		recording->runs.items[kept++] = inside;
	}
	recording->runs.count = kept;
	recording->duration = to - from;
	recording->started += (double)from / 1e9;
	recording->begun += from;
	recording->process_cpu = -1;
	prb_vec_each (other, &recording->others)
		other->cpu = -1;
	clip_windows(recording, from, to);
	recording->unseen_children = 0;
}
