/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/who_blocks.h"

#include <string.h>

#include "agent/threads.h"
#include "dump/text/paths.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "control/interpreters.h"
#include "dump/dump.h"
#include "dump/tasks/tasks.h"

static const char evaluating[] = PRB_AGENT_THREAD PRB_AGENT_THREAD_EVAL;

/** "thread 4250 (worker-0), in leaf at target.py:22, in futex: …". */
static void describe(const struct prb_dump_thread *thread, struct prb_str *ret)
{
	const char *name = thread->name ? thread->name : thread->os_name;

	prb_str_printf(ret, "thread %d", (int)thread->tid);
	if (name)
		prb_str_printf(ret, " (%.100s)", name);
	if (thread->frames.count) {
		const struct prb_dump_frame *frame = &thread->frames.items[0];

		prb_str_printf(ret, ", %s in %.200s",
			       strcmp(thread->state, "idle") != 0 ? thread->state : "asleep",
			       frame->qualname ? frame->qualname
			       : frame->func   ? frame->func
					       : "?");
		if (frame->file)
			prb_str_printf(ret, " at %.200s:%d", prb_path_last(frame->file),
				       frame->line);
	}
	if (thread->waits_for)
		prb_str_printf(ret, ", in %.300s", thread->waits_for);
}

/** Appends what one thread or the GIL holder does; nothing if that cannot be seen. */
static void see(struct prb_target *t, bool main_only, pid_t tid, struct prb_str *ret)
{
	const struct prb_dump_options options = {
		.mode = PRB_DUMP_NONBLOCKING, .main_only = main_only, .tid = tid, .max_frames = 1};
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_thread *thread;

	if (!t)
		return;

	prb_auto_error struct prb_error *err = prb_dump_create(t, &options, &dump);
	if (err)
		return;
	prb_vec_each (thread, &dump->threads) {
		if (main_only ? thread->tid == dump->main_tid
		    : tid     ? thread->tid == tid
			      : thread->gil && !strcmp(thread->gil, "holds")) {
			describe(thread, ret);
			return;
		}
	}
}

/* With several evaluating threads, each may belong to another client. */
static pid_t find_evaluating(struct prb_target *t)
{
	struct prb_tasks tasks = {};
	const struct prb_task_watch *task;
	pid_t found = 0;
	unsigned count = 0;

	prb_auto_error struct prb_error *err = prb_tasks_create(t, &tasks);
	prb_vec_each (task, &tasks.list)
		if (!strcmp(task->name, evaluating)) {
			found = task->tid;
			count++;
		}
	prb_tasks_deinit(&tasks);
	return !err && count == 1 ? found : 0;
}

static bool imports(const struct prb_dump_thread *thread, size_t frames)
{
	static const char name[] = "<frozen importlib";
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if ((size_t)(frame - thread->frames.items) < frames && frame->file &&
		    !strncmp(frame->file, name, sizeof(name) - 1))
			return true;
	return false;
}

struct prb_error *prb_agent_blame_import(struct prb_target *t, double seconds, const char *so)
{
	const struct prb_dump_options options = {.mode = PRB_DUMP_NONBLOCKING};
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_str struct prb_str who = {};
	const struct prb_dump_thread *thread;
	unsigned count = 0;
	bool waits = false;

	if (!t)
		return NULL;

	prb_auto_error struct prb_error *err = prb_dump_create(t, &options, &dump);
	if (err)
		return NULL;
	prb_vec_each (thread, &dump->threads) {
		if (thread->os_name && !strcmp(thread->os_name, evaluating))
			waits |= imports(thread, 1);
		else if (imports(thread, SIZE_MAX) && !count++)
			describe(thread, &who);
	}
	if (!waits || !count)
		return NULL;
	/* A server may have been started by an import: which of several it is, is not known. */
	if (count == 1)
		prb_str_puts(&who, "; ");
	return prb_error_hint(
		prb_error_create(PRB_ERROR_TIMEOUT,
				 "the agent has waited %g s to import a module, while %s of the "
				 "process import%s",
				 seconds, count == 1 ? "another thread" : "other threads",
				 count == 1 ? "s" : ""),
		"%s%s", count == 1 ? prb_str_text(&who) : "", so);
}

void prb_agent_blame_code(struct prb_target *t, bool on_main, struct prb_str *ret)
{
	prb_auto_str struct prb_str where = {};
	pid_t tid = t && !on_main ? find_evaluating(t) : 0;

	if (on_main || tid)
		see(t, on_main, tid, &where);
	if (where.length)
		prb_str_printf(ret, ": %s", prb_str_text(&where));
}

/** The switch interval of the first Python's main interpreter. */
struct interval {
	struct prb_target *target;
	const struct prb_python *first;
	double seconds;
};

static void look_for_interval(void *context, struct prb_python *py,
			      const struct prb_py_threads *threads)
{
	struct interval *interval = context;
	const struct prb_interp *interp;

	if (interval->first)
		return;
	interval->first = py;
	if (threads)
		prb_vec_each (interp, &threads->interps)
			if (interp->main)
				interval->seconds = prb_python_switch_interval(
					py, interval->target->mem, interp);
}

double prb_agent_long_switch_interval(struct prb_target *t)
{
	static const double USUAL_SECONDS = 0.005;
	struct interval interval = {.target = t};

	if (t)
		prb_interpreters_look(t, look_for_interval, &interval);
	return interval.seconds > USUAL_SECONDS ? interval.seconds : 0;
}

/** "its switch interval is 10 s, …; ", of a program that has set a long one. */
static void put_switch_interval(struct prb_target *t, struct prb_str *ret)
{
	double interval = prb_agent_long_switch_interval(t);

	if (!interval)
		return;
	prb_str_puts(ret, "a thread that runs Python drops it when another one has waited for ");
	prb_text_duration(ret, interval);
	prb_str_puts(ret, ", as the program's sys.setswitchinterval() says; ");
}

struct prb_error *prb_agent_blame_gil(struct prb_target *t, int pid, double seconds, const char *so)
{
	prb_auto_str struct prb_str who = {}, interval = {};
	struct prb_error *err;

	see(t, false, 0, &who);
	err = who.length ? NULL : prb_agent_blame_import(t, seconds, so);
	if (err)
		return err;
	err = prb_error_create(PRB_ERROR_TIMEOUT, "the interpreter was not free within %g s",
			       seconds);
	put_switch_interval(t, &interval);
	if (!who.length)
		return prb_error_hint(err, "%s%s; 'probing %d debug --dump' shows what is running",
				      prb_str_text(&interval), so, pid);
	return prb_error_hint(err, "the GIL is held by %s; %s%s", prb_str_text(&who),
			      prb_str_text(&interval), so);
}

struct prb_error *prb_agent_blame_main(struct prb_target *t, double seconds, bool asked_for)
{
	prb_auto_str struct prb_str who = {};
	struct prb_error *err = prb_error_create(
		PRB_ERROR_TIMEOUT, "the main thread executed no Python code within %g s", seconds);

	see(t, true, 0, &who);
	return prb_error_hint(err, "%s%sthe code was not run; %s", prb_str_text(&who),
			      who.length ? "; " : "",
			      asked_for ? "without --thread main it need not wait for that thread"
					: "before Python 3.7, a program without threads has no GIL "
					  "until that thread makes it");
}

struct prb_error *prb_agent_blame_line(struct prb_target *t, pid_t tid, double seconds,
				       const char *why)
{
	prb_auto_str struct prb_str who = {};
	struct prb_error *err = prb_error_create(PRB_ERROR_TIMEOUT,
						 "thread %d reached no such line within %g s%s%s",
						 (int)tid, seconds, *why ? ": " : "", why);

	see(t, false, tid, &who);
	return prb_error_hint(err, "it is paused again: %s",
			      who.length ? prb_str_text(&who)
					 : "that thread runs no Python any more");
}
