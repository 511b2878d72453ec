/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Threads that wait for a connection of a pool whose connections are all in use, and who has them;
 * or tasks, of a loop in which nothing has run for long.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/model/program_frame.h"
#include "judge/judge.h"
#include "judge/limits.h"
#include "judge/suspended.h"
#include "judge/threads.h"

enum { MOST_LINES = 8 };

/* Where the pools of libraries wait until a connection is given back. */
static const struct pool {
	const char *file, *function, *name;
} pools[] = {
	{"/sqlalchemy/pool/impl.py", "_do_get", "SQLAlchemy"},
	{"/psycopg_pool/pool.py", "_getconn_unchecked", "psycopg_pool"},
	{"/psycopg_pool/pool.py", "getconn", "psycopg_pool"},
	{"/dbutils/pooled_db.py", "_wait_lock", "DBUtils"},
	{"/redis/connection.py", "get_connection", "redis"},
	{"/pymongo/synchronous/pool.py", "_get_conn", "pymongo"},
	{"/pymongo/pool.py", "_get_conn", "pymongo"},
	{"/urllib3/connectionpool.py", "_get_conn", "urllib3"},
};

/* The same for tasks. aiohttp waited in connect() itself before 3.10. */
static const struct pool task_pools[] = {
	{"/aiohttp/connector.py", "_wait_for_available_connection", "aiohttp"},
	{"/aiohttp/connector.py", "connect", "aiohttp"},
	{"/httpcore/_async/connection_pool.py", "wait_for_connection", "httpcore"},
	{"/asyncpg/pool.py", "_acquire_impl", "asyncpg"},
	{"/psycopg_pool/pool_async.py", "_getconn_unchecked", "psycopg_pool"},
	{"/psycopg_pool/pool_async.py", "getconn", "psycopg_pool"},
	{"/redis/asyncio/connection.py", "get_connection", "redis"},
	{"/pymongo/asynchronous/pool.py", "_get_conn", "pymongo"},
};

/* Within these, a task waits for another one, and does no work of the pool. */
static const char *const waits[] = {"/asyncio/", "/anyio/", "/async_timeout/",
				    "/httpcore/_synchronization.py"};

/* Classes of variables that have a connection. */
static const char *const holding[] = {"Connection", "Session", "_ConnectionFairy",
				      "PooledDedicatedDBConnection", "PooledSharedDBConnection"};

static const struct pool *find_pool(const struct pool *list, size_t count,
				    const struct prb_dump_frame *frame)
{
	for (size_t i = 0; i < count; i++)
		if (prb_frame_is(frame, list[i].function, list[i].file))
			return &list[i];
	return NULL;
}

/* The pool that a thread asks for a connection, for however long. */
static const struct pool *asks(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;
	const struct pool *pool = NULL;

	prb_vec_each (frame, &thread->frames)
		pool = pool ? pool : find_pool(pools, PRB_ARRAY_SIZE(pools), frame);
	return pool;
}

static const struct pool *pool_of(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	return prb_thread_waits_inside(thread) &&
			       !prb_case_moved(c, thread, prb_limit(PRB_LIMIT_WAIT))
		       ? asks(thread)
		       : NULL;
}

static bool holds(const struct prb_dump_local *local)
{
	for (size_t i = 0; local->type && i < PRB_ARRAY_SIZE(holding); i++)
		if (!strcmp(local->type, holding[i]))
			return true;
	return false;
}

/* The variable of a thread that has a connection, and its frame; NULL: none is seen. */
static const struct prb_dump_local *held(const struct prb_dump_thread *thread,
					 const struct prb_dump_frame **ret)
{
	const struct prb_dump_frame *frame;
	const struct prb_dump_local *local;

	prb_vec_each (frame, &thread->frames)
		prb_vec_each (local, &frame->locals)
			if (holds(local)) {
				*ret = frame;
				return local;
			}
	return NULL;
}

static struct prb_error *tell_holders(struct prb_finding *f, const struct prb_case *c,
				      const struct prb_dump *dump, unsigned *count)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads) {
		const struct prb_dump_frame *frame;
		const struct prb_dump_local *local = held(thread, &frame);
		const struct prb_dump_thread *known = prb_case_thread(c, thread->tid);
		struct prb_str *line;

		if (!local || !known || asks(known) || (*count)++ >= MOST_LINES)
			continue;
		PRB_TRY(prb_finding_line(f, thread->tid, &line));
		prb_case_put_thread(line, known);
		prb_str_puts(line, " has a ");
		prb_text_escape(line, local->type);
		prb_str_puts(line, " in ");
		prb_text_escape(line, local->name);
		prb_str_puts(line, " of `");
		prb_text_escape(line, frame->func ? frame->func : "?");
		prb_str_puts(line, "`: ");
		prb_case_put_doing(line, c, known);
	}
	return NULL;
}

/* The variables are read now only, and without a stop: mostly nobody waits for a connection. */
static struct prb_error *find_holders(struct prb_finding *f, const struct prb_case *c,
				      unsigned *count)
{
	const struct prb_dump_options options = {
		.mode = PRB_DUMP_NONBLOCKING, .locals = true, .no_command = true, .no_waits = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	struct prb_error *err = c->target ? prb_dump_create(c->target, &options, &dump) : NULL;

	if (!err && dump)
		err = tell_holders(f, c, dump, count);
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct pool *pool, unsigned waiters, struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	struct prb_finding *f;
	unsigned holders = 0, lines = 0;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "%u thread%s for a pool's connection", waiters,
		       waiters == 1 ? " waits" : "s wait");
	PRB_TRY(find_holders(f, c, &holders));
	prb_str_printf(&f->sentence,
		       "%u thread%s for a connection of a pool of %s, all of which "
		       "are in use",
		       waiters, waiters == 1 ? " waits" : "s wait", pool->name);
	if (holders)
		prb_str_printf(&f->sentence, "; %u thread%s one: %s", holders,
			       holders == 1 ? " has" : "s have",
			       prb_str_text(&f->evidence.items[0].text));
	prb_vec_each (thread, &c->dump->threads)
		if (pool_of(c, thread) && lines++ < MOST_LINES)
			PRB_TRY(prb_finding_thread(f, c, thread));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, ", and the classes of their variables");
	prb_str_puts(&f->wrong_if, "a connection is given back in a moment: look again");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static bool is_wait(const struct prb_dump_frame *frame)
{
	for (size_t i = 0; frame->file && i < PRB_ARRAY_SIZE(waits); i++)
		if (strstr(frame->file, waits[i]))
			return true;
	return false;
}

/* The pool that a task of that thread waits for; NULL: none. */
static const struct pool *task_asks(const struct prb_dump_task *task, pid_t tid)
{
	const size_t count = prb_dump_own_frames(task);

	if (task->tid != tid || task->current || task->limited)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const struct prb_dump_frame *frame = &task->frames.items[i];
		const struct pool *pool = find_pool(task_pools, PRB_ARRAY_SIZE(task_pools), frame);

		if (pool || !is_wait(frame))
			return pool;
	}
	return NULL;
}

static struct prb_error *tell_tasks(const struct prb_rule *rule, struct prb_case *c,
				    const struct prb_dump *dump,
				    const struct prb_dump_thread *thread, struct prb_findings *ret)
{
	const struct prb_dump_task *task;
	const struct pool *pool = NULL;
	unsigned count = 0;
	struct prb_finding *f;
	struct prb_str *line;

	prb_vec_each (task, &dump->tasks) {
		const struct pool *of = task_asks(task, thread->tid);

		pool = of ? of : pool;
		count += of != NULL;
	}
	if (!pool)
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	f->lasted = prb_case_idle(c, thread);
	prb_str_printf(&f->brief, "%u task%s for a pool's connection", count,
		       count == 1 ? " waits" : "s wait");
	prb_vec_each (task, &dump->tasks) {
		if (!task_asks(task, thread->tid) || f->evidence.count >= MOST_LINES)
			continue;
		PRB_TRY(prb_finding_line(f, task->tid, &line));
		prb_case_put_task(line, task);
	}
	prb_str_printf(&f->sentence,
		       "%u task%s for a connection of a pool of %s, all of which are in use: %s",
		       count, count == 1 ? " waits" : "s wait", pool->name,
		       prb_str_text(&f->evidence.items[0].text));
	PRB_TRY(prb_finding_tid(f, thread->tid));
	prb_str_printf(&f->rests_on, "the stacks of %zu tasks, while their loop has slept for ",
		       dump->tasks.count);
	prb_text_duration(&f->rests_on, f->lasted);
	prb_str_puts(&f->wrong_if, "an answer from outside gives a connection back: look again");
	prb_case_put_command(&f->next, c, "dump");
	return NULL;
}

static bool is_loop(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (frame->file &&
		    (strstr(frame->file, "/asyncio/") || strstr(frame->file, "/uvloop/")))
			return true;
	return false;
}

/* While the thread of a loop sleeps, its tasks stay where they are. */
static struct prb_error *find_tasks(const struct prb_rule *rule, struct prb_case *c,
				    struct prb_findings *ret)
{
	const double began = prb_clock_seconds();
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_thread *thread;
	struct prb_error *err = NULL;

	if (c->patience <= 0 || !c->target)
		return NULL;
	prb_vec_each (thread, &c->dump->threads) {
		if (err || !prb_thread_is(thread, "idle") || prb_thread_waits_inside(thread) ||
		    prb_case_idle(c, thread) < prb_limit(PRB_LIMIT_LONG) || !is_loop(thread))
			continue;
		if (!dump)
			err = prb_case_read_tasks(c, &dump);
		if (!err && dump)
			err = tell_tasks(rule, c, dump, thread, ret);
	}
	prb_case_spent(c, began);
	return err;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	const struct pool *pool = NULL;
	unsigned waiters = 0;
	bool is_long = false;

	prb_vec_each (thread, &c->dump->threads) {
		const struct pool *of = pool_of(c, thread);

		pool = of ? of : pool;
		waiters += of != NULL;
		is_long = is_long || (of && prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_LONG));
	}
	if (!pool)
		return find_tasks(rule, c, ret);
	if (waiters < prb_limit(PRB_LIMIT_WAITERS) && !is_long)
		return NULL;
	return tell(rule, c, pool, waiters, ret);
}

const struct prb_rule prb_rule_pool = {
	.rank = 32,
	.name = "pool",
	.kind = PRB_FINDING_LOCKS,
	.needs = PRB_RULE_THREADS,
	.proves = "threads or tasks wait for a connection of a pool, all of which are in use",
	.find = find,
};
