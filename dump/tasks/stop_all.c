/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/tasks/stop_all.h"

#include "base/cleanup.h"
#include "base/log.h"

enum { STOP_TIMEOUT_MS = 2000 };

static bool must_stop(const struct prb_stop_all *s, size_t index, bool everyone)
{
	const struct prb_task_watch *task = &s->tasks->list.items[index];

	if (prb_task_has_ended(task))
		return false;
	return everyone || task->state == 'R' || s->restless.items[index];
}

static struct prb_error *seize(struct prb_stop_all *s, bool everyone)
{
	struct prb_tasks *tasks = s->tasks;

	s->list.count = 0;
	for (size_t i = 0; i < tasks->list.count; i++) {
		struct prb_stop *stop = prb_vec_push(&s->list);

		if (!stop)
			return prb_error_nomem();
		stop->tid = tasks->list.items[i].tid;
		prb_task_note(tasks, &tasks->list.items[i]);
		if (!must_stop(s, i, everyone))
			continue;

		struct prb_error *err = prb_stop_seize_after(stop->tid, &s->patience, stop);
		if (err && err->code != PRB_ERROR_NO_PROCESS)
			return err;
		prb_error_destroy(err);
	}
	return NULL;
}

/* Requests all stops before it waits, so that threads stop together. */
static void stop_seized(struct prb_stop_all *s)
{
	struct prb_stop *stop;

	prb_vec_each (stop, &s->list)
		if (stop->seized)
			prb_error_destroy(prb_stop_ask(stop));
	prb_vec_each (stop, &s->list) {
		struct prb_error *err = stop->seized ? prb_stop_wait(stop, STOP_TIMEOUT_MS) : NULL;

		/* A timeout: the thread sleeps uninterruptibly, so it does not run either. */
		if (err)
			prb_log("stop", 1, "%s", err->message);
		prb_error_destroy(err);
	}
}

struct prb_error *prb_stop_all_begin(struct prb_stop_all *s, bool everyone)
{
	struct prb_tasks *tasks = s->tasks;

	while (s->restless.count < tasks->list.count)
		if (!prb_vec_push(&s->restless))
			return prb_error_nomem();
	PRB_TRY(seize(s, everyone));
	stop_seized(s);
	/* From here on the other threads must sleep. */
	for (size_t i = 0; i < tasks->list.count; i++)
		if (!s->list.items[i].stopped)
			prb_task_note(tasks, &tasks->list.items[i]);
	return NULL;
}

bool prb_stop_all_held(struct prb_stop_all *s)
{
	bool all = true;

	for (size_t i = 0; i < s->tasks->list.count; i++) {
		struct prb_task_watch *task = &s->tasks->list.items[i];

		if (s->list.items[i].stopped || prb_task_has_ended(task) ||
		    prb_task_slept(s->tasks, task, false))
			continue;
		s->restless.items[i] = true;
		all = false;
	}
	return all;
}

void prb_stop_all_end(struct prb_stop_all *s, double *pause_us)
{
	struct prb_stop *stop;

	*pause_us = 0;
	prb_vec_each (stop, &s->list) {
		double pause;

		prb_stop_end(stop, &pause);
		*pause_us = pause > *pause_us ? pause : *pause_us;
	}
}

void prb_stop_all_deinit(struct prb_stop_all *s)
{
	prb_vec_free(&s->list);
	prb_vec_free(&s->restless);
}
