/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread waits for the result of work that it has handed out, and nobody can be seen to work on
 * it: the worker was killed, the server cannot be reached, or the lock is the asker's own. Which of
 * these is not known.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "judge/answers.h"
#include "judge/connections.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/suspended.h"
#include "judge/threads.h"

enum { MOST_LINES = 8 };

static struct prb_error *begin(const struct prb_rule *rule, struct prb_findings *ret,
			       struct prb_finding **f)
{
	PRB_TRY(prb_finding_add(rule, ret, f));
	(*f)->confidence = PRB_CONFIDENCE_LOW;
	prb_str_puts(&(*f)->brief, "waits for an answer");
	return NULL;
}

static struct prb_error *tell(const struct prb_rule *rule, const struct prb_case *c,
			      const struct prb_dump_thread *asker,
			      const struct prb_workers *workers, struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	struct prb_finding *f;

	PRB_TRY(begin(rule, ret, &f));
	prb_case_put_thread(&f->sentence, asker);
	prb_str_puts(&f->sentence, " waits for a result in ");
	prb_case_put_place(&f->sentence, asker);
	prb_str_puts(&f->sentence, ", and nobody can be seen who works on it");
	PRB_TRY(prb_finding_thread(f, c, asker));
	prb_vec_each (thread, &c->dump->threads)
		if (thread != asker && f->evidence.count < MOST_LINES)
			PRB_TRY(prb_finding_thread(f, c, thread));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_printf(&f->rests_on,
		       ", its %zu subprocess%s, and its connections; whether the work "
		       "was lost is not known",
		       workers->processes, workers->processes == 1 ? "" : "es");
	prb_str_puts(&f->wrong_if, "a program without a connection to it is to send the result");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static struct prb_error *find_asker(const struct prb_rule *rule, struct prb_case *c,
				    struct prb_findings *ret)
{
	const struct prb_dump_frame *frame;
	const struct prb_dump_thread *asker = prb_case_find_asker(c, &frame);
	struct prb_workers workers;

	if (!asker)
		return NULL;
	PRB_TRY(prb_case_find_workers(c, asker, &workers));
	return workers.seen ? NULL : tell(rule, c, asker, &workers, ret);
}

static struct prb_error *find_unconnected(const struct prb_rule *rule, struct prb_case *c,
					  struct prb_findings *ret)
{
	const struct prb_dump_thread *thread = prb_case_find_unconnected(c);
	struct prb_finding *f;

	if (!thread)
		return NULL;
	PRB_TRY(begin(rule, ret, &f));
	f->lasted = prb_case_idle(c, thread);
	prb_case_put_thread(&f->sentence, thread);
	prb_str_puts(&f->sentence, " waits for the answer to a request by ZeroMQ, and is connected "
				   "to no server, in ");
	prb_case_put_place(&f->sentence, thread);
	PRB_TRY(prb_finding_thread(f, c, thread));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, ", and the pipes of the socket");
	prb_str_puts(&f->wrong_if, "the server starts late");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static bool begins(const char *words, const char *start)
{
	return words && !strncmp(words, start, strlen(start));
}

/* The greenlet for whose end it waits, as our words say; 0: none. */
static uint64_t joined_by(const struct prb_dump_task *task)
{
	static const char words[] = "gevent._gevent_cgreenlet.Greenlet at ";

	return begins(task->waits_for, words) ? strtoull(task->waits_for + strlen(words), NULL, 16)
					      : 0;
}

/* A greenlet without frames is in C code of gevent: it waits for a lock there. */
static bool has_frames(const struct prb_dump *dump, uint64_t id)
{
	const struct prb_dump_task *task;

	prb_vec_each (task, &dump->tasks)
		if (task->id == id)
			return true;
	return false;
}

/*
 * Another task waits until this one ends, and this one until somebody sets an event. What the main
 * task or greenlet does itself is mostly to wait until the program is to end.
 */
static bool is_awaited(const struct prb_dump *dump, const struct prb_dump_task *task)
{
	if (task->limited)
		return false;
	if (prb_task_is_main(task) && joined_by(task))
		return !has_frames(dump, joined_by(task));
	if (prb_task_is_main(task))
		return task->lock && !task->holder;
	return task->awaiters.count && begins(task->waits_for, "Event.");
}

static const struct prb_dump_task *find_task(const struct prb_dump *dump, uint64_t id)
{
	const struct prb_dump_task *task;

	prb_vec_each (task, &dump->tasks)
		if (is_awaited(dump, task) && (!id || task->id == id))
			return task;
	return NULL;
}

static struct prb_error *tell_task(const struct prb_rule *rule, const struct prb_case *c,
				   const struct prb_dump *dump, const struct prb_dump_task *task,
				   struct prb_findings *ret)
{
	struct prb_finding *f;
	struct prb_str *line;

	PRB_TRY(begin(rule, ret, &f));
	prb_str_puts(&f->sentence,
		     prb_task_is_main(task)
			     ? "nobody can be seen who is to resume what the program waits "
			       "for: "
			     : "what the program awaits is an event that nobody can be seen "
			       "to set: ");
	prb_case_put_task(&f->sentence, task);
	PRB_TRY(prb_finding_line(f, task->tid, &line));
	prb_case_put_task(line, task);
	PRB_TRY(prb_finding_tid(f, task->tid));
	prb_str_printf(&f->rests_on,
		       "%zu task%s, and what their loop watches: no client, and no other process; "
		       "for how long it waits is not known",
		       dump->tasks.count, dump->tasks.count == 1 ? "" : "s");
	prb_str_puts(&f->wrong_if, "another task, or a timer, does so later");
	prb_case_put_command(&f->next, c, "dump");
	return NULL;
}

/* Two looks: a task that goes on waits elsewhere soon. */
static struct prb_error *find_awaited(const struct prb_rule *rule, struct prb_case *c,
				      struct prb_findings *ret)
{
	enum { PAUSE_NS = 200000000 };
	prb_auto_dump struct prb_dump *before = NULL, *now = NULL;
	const double began = prb_clock_seconds();
	const struct prb_subprocesses none = {};
	const struct prb_dump_task *task;
	size_t connections;

	if (c->patience <= 0 || prb_case_handles_signals(c))
		return NULL;
	PRB_TRY(prb_case_count_connections(c, &none, &connections));
	if (connections)
		return NULL;
	PRB_TRY(prb_case_read_tasks(c, &before));
	task = before ? find_task(before, 0) : NULL;
	if (!task)
		return NULL;
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	PRB_TRY(prb_case_read_tasks(c, &now));
	prb_case_spent(c, began);
	task = now ? find_task(now, task->id) : NULL;
	return task ? tell_task(rule, c, now, task, ret) : NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const size_t count = ret->list.count;

	if (prb_findings_explain(ret))
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (ret->list.items[i]->kind == PRB_FINDING_STILL)
			return NULL;
	if (!c->dump || !c->dump->threads.count || !prb_case_is_here(c))
		return NULL;
	PRB_TRY(find_asker(rule, c, ret));
	if (ret->list.count == count)
		PRB_TRY(find_unconnected(rule, c, ret));
	if (ret->list.count > count || prb_thread_waits_inside(c->dump->threads.items) ||
	    !prb_case_waits_for_itself(c))
		return NULL;
	return find_awaited(rule, c, ret);
}

const struct prb_rule prb_rule_answer = {
	.rank = 850,
	.name = "answer",
	.kind = PRB_FINDING_UNKNOWN,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.waits = true,
	.proves = "a result is waited for, and nobody can be seen who works on it",
	.find = find,
};
