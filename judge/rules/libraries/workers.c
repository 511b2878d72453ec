/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All threads of a pool wait for results of tasks that are in the queue of the same pool: no thread
 * is left that could run these.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/dump.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"
#include "values/thread_pools.h"

enum { MOST_LINES = 8, MOST_POOLS = 8 };

/* A function of a library. */
struct place {
	const char *file, *function;
};

/* Where threads of pools get their tasks, and where one waits for the result of a task. */
static const struct kind {
	struct place worker, wait;
	const char *queue, *task; /* variables of `worker` */
} kinds[] = {
	{{"/concurrent/futures/thread.py", "_worker"},
	 {"/concurrent/futures/_base.py", "result"},
	 "work_queue",
	 "work_item"},
	{{"/multiprocessing/pool.py", "worker"},
	 {"/multiprocessing/pool.py", "wait"},
	 "inqueue",
	 "job"},
};

static const struct prb_dump_frame *frame_at(const struct prb_dump_thread *thread,
					     const struct place *place)
{
	return prb_thread_frame(thread, place->function, place->file);
}

/* The kind of pool whose thread it is; NULL: none. */
static const struct kind *kind_of(const struct prb_dump_thread *thread)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(kinds); i++)
		if (frame_at(thread, &kinds[i].worker))
			return &kinds[i];
	return NULL;
}

/* The object in a variable of that frame; 0: there is none. */
static uint64_t variable(const struct prb_dump_thread *thread, const struct place *place,
			 const char *name)
{
	const struct prb_dump_frame *frame = frame_at(thread, place);
	const struct prb_dump_local *local;

	if (frame)
		prb_vec_each (local, &frame->locals)
			if (local->name && !strcmp(local->name, name))
				return local->address;
	return 0;
}

/* The result that a thread waits for, without a limit of time; 0: none, or of another kind. */
static uint64_t awaited_by(const struct prb_case *c, const struct prb_dump_thread *thread,
			   const struct kind *kind)
{
	const struct prb_dump_thread *known = prb_case_thread(c, thread->tid);

	return known && prb_thread_waits_inside(known) && prb_case_waits_without_limit(c, known)
		       ? variable(thread, &kind->wait, "self")
		       : 0;
}

struct pool {
	struct prb_thread_pool read;
	const struct kind *kind;
	PRB_VEC(pid_t) tids; /* its threads; awaited[i] is what tids[i] waits for */
};

static void pool_deinit(struct pool *pool)
{
	prb_thread_pool_deinit(&pool->read);
	prb_vec_free(&pool->tids);
}

static struct prb_error *add_worker(const struct prb_case *c, const struct prb_dump_thread *thread,
				    struct pool *pool)
{
	uint64_t task = variable(thread, &pool->kind->worker, pool->kind->task);
	struct prb_awaited *awaited = prb_vec_push(&pool->read.awaited);
	pid_t *tid = prb_vec_push(&pool->tids);
	uint64_t *place = task ? prb_vec_push(&pool->read.running) : NULL;

	if (!awaited || !tid || (task && !place))
		return prb_error_nomem();
	*awaited = (struct prb_awaited){.object = awaited_by(c, thread, pool->kind)};
	*tid = thread->tid;
	if (place)
		*place = task;
	return NULL;
}

/* Before Python 3.8, only the thread in _handle_workers() refers to the ThreadPool. */
static struct prb_error *add_candidate(const struct prb_dump_thread *thread, struct pool *pool)
{
	const struct place keeper = {"/multiprocessing/pool.py", "_handle_workers"};
	uint64_t object = variable(thread, &keeper, "pool");
	uint64_t *place = object ? prb_vec_push(&pool->read.candidates) : NULL;

	if (place)
		*place = object;
	return object && !place ? prb_error_nomem() : NULL;
}

/* The pool of the thread @p first, with all of its threads that the dump has. */
static struct prb_error *collect(const struct prb_case *c, const struct prb_dump *dump,
				 const struct prb_dump_thread *first, struct pool *pool)
{
	const struct place *place = &pool->kind->worker;
	const char *queue = pool->kind->queue;
	const struct prb_dump_thread *thread;

	pool->read.queue = variable(first, place, queue);
	pool->read.reference = variable(first, place, "executor_reference");
	prb_vec_each (thread, &dump->threads) {
		if (pool->read.queue && variable(thread, place, queue) == pool->read.queue)
			PRB_TRY(add_worker(c, thread, pool));
		PRB_TRY(add_candidate(thread, pool));
	}
	return NULL;
}

static bool is_in(const struct pool *pool, pid_t tid)
{
	for (size_t i = 0; i < pool->tids.count; i++)
		if (pool->tids.items[i] == tid)
			return true;
	return false;
}

/* Adds what the threads outside of the pool wait for. */
static struct prb_error *add_others(const struct prb_case *c, const struct prb_dump *dump,
				    struct pool *pool)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads) {
		struct prb_awaited *awaited;

		if (is_in(pool, thread->tid))
			continue;
		awaited = prb_vec_push(&pool->read.awaited);
		if (!awaited)
			return prb_error_nomem();
		*awaited = (struct prb_awaited){.object = awaited_by(c, thread, pool->kind)};
	}
	return NULL;
}

/* True if each thread of the pool waits, and the pool has as many as it may have. */
static bool is_full(const struct pool *pool)
{
	for (size_t i = 0; i < pool->tids.count; i++)
		if (!pool->read.awaited.items[i].object)
			return false;
	return pool->tids.count && pool->read.whole && pool->read.queued &&
	       pool->read.threads == pool->read.most &&
	       pool->read.most == (int64_t)pool->tids.count;
}

/* Threads that wait for a task which another of them runs wait for what that one waits for. */
static bool waits_for_itself(const struct pool *pool)
{
	const struct prb_awaited *awaited = pool->read.awaited.items;

	for (size_t i = 0; i < pool->tids.count; i++)
		if (!awaited[i].queued && !awaited[i].running)
			return false;
	return true;
}

static bool is_nested(const struct pool *pool)
{
	for (size_t i = 0; i < pool->tids.count; i++)
		if (!pool->read.awaited.items[i].queued)
			return true;
	return false;
}

/* True if no thread is left that could cancel one of the tasks. */
static bool is_proof(struct prb_case *c, const struct prb_dump *dump, const struct pool *pool)
{
	const struct prb_awaited *awaited;

	prb_vec_each (awaited, &pool->read.awaited)
		if (!awaited->object || (!awaited->queued && !awaited->running))
			return false;
	return prb_case_status(c, "Threads") == (int64_t)dump->threads.count &&
	       pool->read.awaited.count == dump->threads.count;
}

/* Seconds that all threads of the pool have slept; negative: not known. */
static double slept(const struct prb_case *c, const struct pool *pool)
{
	double least = -1;

	for (size_t i = 0; i < pool->tids.count; i++) {
		const struct prb_dump_thread *thread = prb_case_thread(c, pool->tids.items[i]);
		double idle = thread ? prb_case_idle(c, thread) : -1;

		if (idle < 0)
			return -1;
		least = i ? PRB_MIN(least, idle) : idle;
	}
	return least;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct pool *pool, bool proof, struct prb_findings *ret)
{
	const struct prb_dump_thread *first = prb_case_thread(c, pool->tids.items[0]);
	bool itself = waits_for_itself(pool), one = pool->tids.count == 1;
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->kind = itself ? PRB_FINDING_DEADLOCK : PRB_FINDING_UNKNOWN;
	f->proof = itself && proof;
	f->confidence = itself ? PRB_CONFIDENCE_HIGH : PRB_CONFIDENCE_LOW;
	prb_str_puts(&f->brief, itself ? "a pool waits for itself" : "a pool waits for results");
	prb_str_printf(&f->sentence,
		       one ? "the only thread of a pool waits for the result of a task"
			   : "all %zu threads of a pool wait for results of tasks",
		       pool->tids.count);
	if (itself)
		prb_str_printf(&f->sentence,
			       " that %s queued %sin the same pool: ", one ? "is" : "are",
			       is_nested(pool) ? "or running " : "");
	else
		prb_str_printf(&f->sentence,
			       ", while %zu task%s for a thread of the pool, and whether %s ends "
			       "these waits is not known: ",
			       pool->read.queued, pool->read.queued == 1 ? " waits" : "s wait",
			       pool->read.queued == 1 ? "it" : "one of them");
	prb_case_put_thread(&f->sentence, first);
	prb_str_puts(&f->sentence, " in ");
	prb_case_put_place(&f->sentence, first);
	for (size_t i = 0; i < PRB_MIN(pool->tids.count, (size_t)MOST_LINES); i++)
		PRB_TRY(prb_finding_thread(f, c, prb_case_thread(c, pool->tids.items[i])));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_printf(&f->rests_on, ", and the queue of the pool, with %zu task%s",
		       pool->read.queued, pool->read.queued == 1 ? "" : "s");
	prb_str_puts(&f->wrong_if,
		     proof    ? "a signal handler or a debugger ends one of the waits"
		     : itself ? "another thread cancels one of the tasks, or ends the pool"
			      : "something else ends one of the waits: look again");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

/* What was read between two readings of the context switches is of one instant. */
struct look {
	struct prb_case *c;
	const struct prb_dump *dump; /* with variables */
	const int64_t *switches;     /* before that, of each thread of the case */
};

static bool has_slept(const struct look *look, pid_t tid)
{
	const struct prb_dump *dump = look->c->dump;

	for (size_t i = 0; i < dump->threads.count; i++)
		if (dump->threads.items[i].tid == tid)
			return look->switches[i] >= 0 &&
			       look->switches[i] == prb_case_switches(look->c, tid);
	return false;
}

static bool all_have_slept(const struct look *look)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &look->dump->threads)
		if (!has_slept(look, thread->tid))
			return false;
	return true;
}

static struct prb_error *judge(const struct prb_rule *rule, const struct look *look,
			       struct pool *pool, struct prb_findings *ret)
{
	enum prb_limit limit;

	PRB_TRY(add_others(look->c, look->dump, pool));
	PRB_TRY(prb_thread_pool_read(look->c->target, &pool->read));
	for (size_t i = 0; i < pool->tids.count; i++)
		if (!has_slept(look, pool->tids.items[i]))
			return NULL;
	limit = waits_for_itself(pool) ? PRB_LIMIT_WAIT : PRB_LIMIT_STILL;
	if (!is_full(pool) || slept(look->c, pool) < prb_limit(limit))
		return NULL;
	return tell(rule, look->c, pool,
		    is_proof(look->c, look->dump, pool) && all_have_slept(look), ret);
}

static bool is_among(const uint64_t *queues, size_t count, uint64_t queue)
{
	for (size_t i = 0; i < count; i++)
		if (queues[i] == queue)
			return true;
	return false;
}

/* Each pool is judged at its first thread. */
static struct prb_error *judge_all(const struct prb_rule *rule, const struct look *look,
				   struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	uint64_t queues[MOST_POOLS];
	size_t count = 0;

	prb_vec_each (thread, &look->dump->threads) {
		__attribute__((cleanup(pool_deinit))) struct pool pool = {.kind = kind_of(thread)};
		uint64_t queue =
			pool.kind ? variable(thread, &pool.kind->worker, pool.kind->queue) : 0;

		if (!queue || is_among(queues, count, queue))
			continue;
		if (count == MOST_POOLS)
			break;
		queues[count++] = queue;
		PRB_TRY(collect(look->c, look->dump, thread, &pool));
		if (pool.tids.count)
			PRB_TRY(judge(rule, look, &pool, ret));
	}
	return NULL;
}

/* A look at the variables costs nothing where no thread of a pool waits for a result. */
static bool has_waiter(const struct prb_case *c)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &c->dump->threads) {
		const struct kind *kind = kind_of(thread);

		if (kind && frame_at(thread, &kind->wait) && prb_thread_waits_inside(thread) &&
		    prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_WAIT))
			return true;
	}
	return false;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_options options = {.mode = PRB_DUMP_NONBLOCKING,
						 .locals = true,
						 .no_values = true,
						 .no_command = true,
						 .no_waits = true};
	prb_auto_free int64_t *switches = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;

	if (!c->dump || !prb_case_is_here(c) || !has_waiter(c))
		return NULL;
	switches = calloc(c->dump->threads.count, sizeof(*switches));
	if (!switches)
		return prb_error_nomem();
	for (size_t i = 0; i < c->dump->threads.count; i++)
		switches[i] = prb_case_switches(c, c->dump->threads.items[i].tid);
	PRB_TRY(prb_error_tolerate(prb_dump_create(c->target, &options, &dump), NULL));
	return dump ? judge_all(rule, &(struct look){c, dump, switches}, ret) : NULL;
}

const struct prb_rule prb_rule_workers = {
	.rank = 21,
	.name = "workers",
	.kind = PRB_FINDING_DEADLOCK,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.proves = "all threads of a pool wait for tasks that the same pool has queued or runs",
	.find = find,
};
