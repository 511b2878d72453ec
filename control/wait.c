/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Distinguishes a late agent from one that does not answer. */
#include <string.h>

#include "agent/threads.h"
#include "control/client.h"
#include "control/pause_state.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "dump/tasks/tasks.h"

/** An agent whose threads sleep for so long, and do not answer, will not answer. */
static const double STILL_SECONDS = 1;
/** An agent that only lacks a processor or a page gets so many times that. */
enum { MOST_WAITS = 60 };
/**
 * It counts as such if it was kept from running for this part of the time. An agent that runs
 * freely, and answers slowly or not at all, gets no more time.
 */
static const double WANTED = 0.5;
/** Added for a remote agent, which may have to be loaded first and whose threads are unknown. */
static const double REMOTE_SECONDS = 30;

/** The state of its threads. */
enum life { STILL, RUNS, LATE, STOPPED, TRACED };

/** True if a thread was kept from running for most of the time since it was noted. */
static bool was_kept(struct prb_tasks *tasks, const struct prb_task_watch *task, double seconds)
{
	struct prb_task_times before, now;
	double ran, waited;

	if (!prb_task_times(tasks, task, &before) || !prb_task_times_now(tasks, task, &now))
		return true; /* this kernel does not count it */
	ran = (double)(now.ran - before.ran) / 1e9;
	waited = (double)(now.waited - before.waited) / 1e9;
	/* The kernel adds the wait when it is over. Without a page it sleeps without being woken.
	 */
	return waited > seconds * WANTED || (strchr("RD", task->state) && ran < seconds * WANTED);
}

/** Their activity since they were noted, @p seconds ago. */
static enum life judge(struct prb_tasks *tasks, double seconds)
{
	enum life life = STILL;
	const struct prb_task_watch *task;

	prb_vec_each (task, &tasks->list) {
		if (!prb_is_agent_thread(task->name))
			continue;
		if (task->state == 'T' || task->state == 't')
			return task->state == 'T' ? STOPPED : TRACED;
		if (prb_task_slept(tasks, task, false))
			continue;
		if (was_kept(tasks, task, seconds))
			life = LATE;
		else if (life == STILL)
			life = RUNS;
	}
	return life;
}

static struct prb_error *explain_tracer(struct prb_target *t, struct prb_error *err)
{
	prb_auto_str struct prb_str by = {};
	struct prb_pause_state state;

	prb_pause_state_find_hard(t, &state);
	if (!state.paused)
		return prb_error_hint(err, "the process is held by a debugger");
	prb_pause_state_put(&state, &by);
	return prb_error_hint(err, "it is paused with --hard, %s; 'probing %d resume' ends that",
			      prb_str_text(&by), (int)t->pid);
}

static struct prb_error *explain(enum life life, struct prb_target *t)
{
	int pid = (int)t->pid;
	struct prb_error *err =
		prb_error_create(PRB_ERROR_TIMEOUT, "the agent of process %d does not answer", pid);

	switch (life) {
	case STOPPED:
		return prb_error_hint(err, "the process is stopped by job control: kill -CONT %d",
				      pid);
	case TRACED:
		return explain_tracer(t, err);
	case LATE:
		return prb_error_hint(err,
				      "it is not stopped, but gets hardly any processor time: is "
				      "the machine, or the process's control group, overloaded?");
	case RUNS:
		return prb_error_hint(err,
				      "it runs, and does not send a whole answer: something else "
				      "may listen in its place");
	case STILL:
		break;
	}
	return prb_error_hint(err,
			      "it sleeps: is its control group frozen? 'probing %d debug --dump' "
			      "shows what the process does",
			      pid);
}

struct prb_error *prb_agent_await(struct prb_agent *agent, double seconds,
				  struct prb_wire_frame *ret)
{
	struct prb_target *t = prb_agent_target(agent);
	double away = t || seconds < 0 ? 0 : REMOTE_SECONDS;
	struct prb_error *err = prb_agent_receive(agent, seconds + away, ret);
	enum life life = LATE;

	if (!t || prb_agent_never_answers(agent))
		return err;

	for (int waits = 0; life == LATE && waits < MOST_WAITS; waits++) {
		struct prb_tasks tasks = {};
		double began;

		if (!prb_error_catch(&err, PRB_ERROR_TIMEOUT))
			return err;
		err = prb_tasks_create(t, &tasks);
		began = prb_clock_seconds();
		if (!err)
			err = prb_agent_receive(agent, STILL_SECONDS, ret);
		if (prb_agent_never_answers(agent)) {
			prb_tasks_deinit(&tasks);
			return err;
		}
		life = judge(&tasks, prb_clock_seconds() - began);
		prb_tasks_deinit(&tasks);
	}
	return prb_error_catch(&err, PRB_ERROR_TIMEOUT) ? explain(life, t) : err;
}
