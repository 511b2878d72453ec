/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/training_thread.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

static bool same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/** The function that calls the user's, in the two generations of Ray Train. */
static bool is_runner(const struct prb_dump_frame *frame)
{
	static const char *const runners[][2] = {
		{"ray.train.v2._internal.execution.worker_group.thread_runner", "_run_target"},
		{"ray.air._internal.util", "run"}};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(runners); i++)
		if (same(frame->module, runners[i][0]) && same(frame->func, runners[i][1]))
			return true;
	return false;
}

static bool is_training(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (is_runner(frame))
			return true;
	return false;
}

struct prb_error *prb_training_thread_find(struct prb_watch *watch, struct prb_seen *seen)
{
	static const char ray[] = "ray::";
	const struct prb_dump_options options = {.no_waits = true, .no_command = true};
	const struct prb_dump_thread *thread;
	struct prb_dump *dump;

	seen->trains = 0;
	if (!seen->rank->command || strncmp(seen->rank->command, ray, strlen(ray)) != 0)
		return NULL;
	PRB_TRY(prb_dump_create_with(watch->target, &options, &watch->found, &dump));
	prb_vec_each (thread, &dump->threads)
		if (!seen->trains && thread->tid != dump->main_tid && is_training(thread))
			seen->trains = thread->tid;
	prb_dump_destroy(dump);
	return NULL;
}

void prb_training_thread_only(const struct prb_seen *seen, struct prb_dump_options *options)
{
	options->tid = seen->trains;
	options->main_only = !seen->trains;
}
