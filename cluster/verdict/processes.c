/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/verdict/processes.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/looks/thread_text.h"
#include "cluster/looks/why.h"
#include "cluster/verdict/verdict_private.h"
#include "dump/model/program_frame.h"

enum { MOST_WIDTH = 50 /* of a command line */ };

/** What a process does for the others. */
enum role {
	UNREAD, /* it could not be read */
	IDLE,	/* a worker waits for work */
	WAITS,	/* it waits for a worker's result */
	WORKS,	/* it runs code of the program */
};

struct process {
	enum role role;
	const struct prb_dump_thread *thread; /* that waits or works */
	const struct prb_dump_frame *frame;   /* of the program */
	const char *module;		      /* in which it waits */
};

static bool begins(const char *text, const char *with)
{
	return text && !strncmp(text, with, strlen(with));
}

/** Functions below which a worker does what it was given. */
static bool is_worker_loop(const struct prb_dump_frame *frame)
{
	static const char *const loops[][2] = {{"multiprocessing.process", "_bootstrap"},
					       {"billiard.process", "_bootstrap"},
					       {"concurrent.futures.thread", "_worker"},
					       {"concurrent.futures.process", "_process_worker"},
					       {"distributed.threadpoolexecutor", "_worker"},
					       {"ray._private.worker", "main_loop"},
					       {"threading", "_bootstrap_inner"}};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(loops); i++)
		if (frame->module && frame->func && !strcmp(frame->module, loops[i][0]) &&
		    !strcmp(frame->func, loops[i][1]))
			return true;
	return false;
}

/** True if the module waits for what a worker does. */
static bool waits_for_worker(const struct prb_dump_frame *frame)
{
	static const char *const modules[] = {"multiprocessing.pool",
					      "multiprocessing.process",
					      "multiprocessing.popen_",
					      "concurrent.futures.",
					      "ray.",
					      "ray._private.worker",
					      "distributed.client",
					      "distributed.utils",
					      "celery.",
					      "kombu.",
					      "billiard.pool",
					      "joblib."};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(modules); i++)
		if (begins(frame->module, modules[i]))
			return true;
	return false;
}

/** True if a process takes what others put into a queue: a worker has no work then. */
static bool takes_from_queue(const struct prb_dump_frame *frame)
{
	return frame->module && frame->func && !strcmp(frame->func, "get") &&
	       !strcmp(frame->module, "multiprocessing.queues");
}

/** The role of one thread: what the frames say that are within the program's innermost one. */
static void judge_thread(const struct prb_dump_thread *thread, bool first, struct process *ret)
{
	const struct prb_dump_frame *frame;
	const char *module = NULL;
	bool takes = false;

	prb_vec_each (frame, &thread->frames) {
		if (frame->kind != PRB_FRAME_PYTHON)
			continue;
		if (is_worker_loop(frame))
			return;
		if (prb_dump_is_library(frame)) {
			module = waits_for_worker(frame) ? frame->module : module;
			takes |= takes_from_queue(frame);
			continue;
		}
		if ((module && ret->role == WORKS) || (takes && !module && !first))
			return;
		module = takes && !module ? "multiprocessing.queues" : module;
		*ret = (struct process){module ? WAITS : WORKS, thread, frame, module};
		return;
	}
}

/** @p first: it is the one that has started the others, and takes their results from a queue. */
static struct process judge_process(const struct prb_seen *seen, bool first)
{
	struct process ret = {.role = seen->main ? IDLE : UNREAD};
	const struct prb_dump_thread *thread;

	if (!seen->main)
		return ret;
	/* The main thread is the process's own unless it has nothing to do. */
	judge_thread(seen->main, first, &ret);
	prb_vec_each (thread, &seen->dump->threads)
		if (thread != seen->main && ret.role == IDLE)
			judge_thread(thread, first, &ret);
	return ret;
}

static void put_process(struct prb_str *s, const struct prb_seen *seen)
{
	prb_str_printf(s, "process %d (", (int)seen->rank->pid);
	/* Escaped already. */
	prb_text_column(s, seen->rank->command,
			PRB_MIN(prb_text_width(seen->rank->command), MOST_WIDTH));
	prb_str_puts(s, ")");
}

static struct prb_error *tell(const struct prb_round *round, const struct process *processes,
			      struct prb_verdict *v)
{
	static const char *const roles[] = {[UNREAD] = "cannot be read",
					    [IDLE] = "waits for work",
					    [WAITS] = "waits for a worker, at ",
					    [WORKS] = "is at "};

	for (size_t i = 0; i < round->list.count; i++) {
		put_process(&v->evidence, &round->list.items[i]);
		prb_str_printf(&v->evidence, " %s", roles[processes[i].role]);
		if (processes[i].role >= WAITS)
			prb_put_thread(&v->evidence, processes[i].thread);
		prb_str_putc(&v->evidence, '\n');
	}
	prb_str_printf(&v->rests_on, "the stacks of %zu processes, seen for %.1f s",
		       round->list.count, round->span);
	return NULL;
}

static struct prb_error *sign(struct prb_verdict *v, enum prb_sign_source source,
			      const struct prb_seen *seen, const char *what)
{
	struct prb_str *s;

	PRB_TRY(prb_signs_add(&v->signs, source, seen->rank->rank, &s));
	put_process(s, seen);
	prb_str_printf(s, " %s", what);
	return NULL;
}

/** Processes that run the program's code while another one waits for a worker. */
static struct prb_error *judge_late(const struct prb_round *round, const struct process *processes,
				    const struct prb_seen *waiting, struct prb_verdict *v)
{
	const struct prb_seen *first = NULL;
	const struct prb_dump_thread *thread = NULL;
	size_t others = 0;

	for (size_t i = 0; i < round->list.count; i++) {
		const struct prb_seen *seen = &round->list.items[i];

		if (processes[i].role != WORKS || seen == waiting)
			continue;
		PRB_TRY(prb_verdict_blame(v, seen->rank->pid));
		others += first != NULL;
		thread = first ? thread : processes[i].thread;
		first = first ? first : seen;
	}
	if (!first)
		return NULL;
	v->kind = PRB_VERDICT_LATE;
	v->confidence = !others && first->movement == PRB_STILL ? "high" : "medium";
	put_process(&v->sentence, first);
	if (others)
		prb_str_printf(&v->sentence, " and %zu more have", others);
	prb_str_puts(&v->sentence, others ? " work to do; the first of them "
					  : " has not finished its work; it ");
	if (thread == first->main) {
		prb_why_put_reason(&v->sentence, first);
	} else {
		prb_str_puts(&v->sentence, "is at ");
		prb_put_thread(&v->sentence, thread);
	}
	prb_str_printf(&v->sentence, "; process %d waits for its workers", (int)waiting->rank->pid);
	prb_str_puts(&v->refuted_by, "it is only slow, and goes on: look again");
	PRB_TRY(sign(v, PRB_SIGN_WAITERS, waiting,
		     "waits for a worker, and no other one has work"));
	if (first->movement == PRB_STILL)
		PRB_TRY(sign(v, PRB_SIGN_SCHEDULER, first, "does not move"));
	prb_str_printf(&v->next, "probing %d dump --locals",
		       (int)(first->keeper ? first->keeper : first->rank->pid));
	return NULL;
}

/** Nobody works: workers wait for each other, or what they were given is lost. */
static struct prb_error *judge_waiting(const struct prb_round *round,
				       const struct process *processes,
				       const struct prb_seen *waiting, struct prb_verdict *v)
{
	size_t workers = 0;

	for (size_t i = 1; i < round->list.count; i++) {
		if (processes[i].role != WAITS)
			continue;
		workers++;
		PRB_TRY(prb_verdict_blame(v, round->list.items[i].rank->pid));
		PRB_TRY(sign(v, PRB_SIGN_STACK, &round->list.items[i], "waits for another worker"));
	}
	v->kind = workers ? PRB_VERDICT_CYCLE : PRB_VERDICT_UNKNOWN;
	v->confidence = workers ? "medium" : "low";
	if (workers > 1)
		prb_str_printf(&v->sentence,
			       "%zu workers wait for each other, or for work that none is free to "
			       "do: the first of them, ",
			       workers);
	for (size_t i = 1, told = 0; i < round->list.count; i++) {
		if (processes[i].role != WAITS || told++)
			continue;
		put_process(&v->sentence, &round->list.items[i]);
		prb_str_puts(&v->sentence, workers > 1 ? ", "
						       : " waits for itself, or for work that no "
							 "worker is free to do: it ");
		prb_why_put_state(&v->sentence, &round->list.items[i]);
		prb_str_printf(&v->next, "probing %d dump --locals",
			       (int)round->list.items[i].rank->pid);
	}
	if (!workers) {
		prb_str_printf(
			&v->sentence,
			"process %d waits for its workers, which all wait for work: there is "
			"none now, it was lost, as when a worker was killed, or is elsewhere",
			(int)waiting->rank->pid);
		prb_str_printf(&v->next, "probing %d dump", (int)waiting->rank->pid);
	}
	prb_str_puts(&v->refuted_by,
		     "another process, which is no child of this one, has the work");
	return NULL;
}

static struct prb_error *judge(const struct prb_round *round, const struct process *processes,
			       struct prb_verdict *v)
{
	const struct prb_seen *waiting = NULL, *moves = NULL;
	size_t works = 0;

	for (size_t i = 0; i < round->list.count; i++) {
		const struct prb_seen *seen = &round->list.items[i];

		if (processes[i].role == WAITS && !waiting)
			waiting = seen;
		works += processes[i].role == WORKS;
		if (processes[i].role == WORKS && seen->movement == PRB_MOVES)
			moves = seen;
	}
	if (moves) {
		v->kind = PRB_VERDICT_MOVES;
		v->confidence = "medium";
		put_process(&v->sentence, moves);
		prb_str_puts(&v->sentence, " moves");
		prb_str_puts(&v->refuted_by, "it repeats one step without ever finishing it");
		prb_str_printf(&v->next, "probing %d top", (int)moves->rank->pid);
		return NULL;
	}
	if (waiting && works)
		return judge_late(round, processes, waiting, v);
	if (waiting)
		return judge_waiting(round, processes, waiting, v);
	v->kind = PRB_VERDICT_UNKNOWN;
	v->confidence = "low";
	prb_str_puts(&v->sentence, "no process waits for a worker");
	prb_str_puts(&v->refuted_by, "the stacks say more");
	prb_str_printf(&v->next, "probing why %d", (int)round->list.items[0].rank->pid);
	return NULL;
}

struct prb_error *prb_verdict_find_processes(const struct prb_round *round, struct prb_verdict *ret)
{
	prb_auto_free struct process *processes = calloc(round->list.count + 1, sizeof(*processes));

	if (!processes)
		return prb_error_nomem();
	for (size_t i = 0; i < round->list.count; i++)
		processes[i] = judge_process(&round->list.items[i], !i);
	PRB_TRY(judge(round, processes, ret));
	ret->confidence = prb_signs_confidence(&ret->signs, ret->confidence);
	PRB_TRY(tell(round, processes, ret));
	return ret->sentence.failed || ret->evidence.failed ? prb_error_nomem() : NULL;
}
