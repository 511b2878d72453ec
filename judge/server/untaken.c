/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A server of which nothing is known but frontends and their queues. Where a request is old, and
 * neither a thread, a task, another process nor a connection is left that could take it, nobody
 * will: else it may only be long.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/model/program_frame.h"
#include "dump/waiting.h"
#include "judge/answers.h"
#include "judge/connections.h"
#include "judge/server/private.h"
#include "target/proc/process.h"
#include "target/proc/subprocesses.h"

/** True if the Python function that @p frame has called is that one; frames are innermost first. */
static bool calls(const struct prb_dump_thread *thread, const struct prb_dump_frame *frame,
		  const char *function, const char *file)
{
	while (frame && frame-- > thread->frames.items)
		if (frame->kind == PRB_FRAME_PYTHON)
			return prb_frame_is(frame, function, file);
	return false;
}

/** A thread of a pool that has no task. */
static bool is_idle_in_pool(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *innermost = prb_dump_innermost(thread);

	return (innermost && prb_frame_is(innermost, "_worker", "/concurrent/futures/thread.py")) ||
	       calls(thread, prb_thread_frame(thread, "run", "/anyio/_backends/_asyncio.py"), "get",
		     "/queue.py") ||
	       prb_thread_is_idle_worker(thread) || prb_thread_is_agents(thread);
}

/** True if no thread but the main one, which waits for events, can take a request. */
static bool only_loop_is_left(const struct prb_server_process *p)
{
	const struct prb_dump_thread *thread, *main = prb_server_main(p);
	const struct prb_dump_frame *innermost = main ? prb_dump_innermost(main) : NULL;

	if (!innermost || !prb_dump_is_library(innermost))
		return false;
	prb_vec_each (thread, &p->dump->threads)
		if (thread != main && !is_idle_in_pool(thread))
			return false;
	return true;
}

/** True for a frame of the library of the web server, or of Python: none of what serves. */
static bool is_others(const struct prb_dump_frame *frame, const char *module)
{
	size_t length = strcspn(module, ".");
	const char *packages = frame->file ? strstr(frame->file, "-packages/") : NULL;

	return prb_dump_is_library(frame) &&
	       (!packages || strncmp(packages + strlen("-packages/"), module, length) != 0);
}

/**
 * True if the task cannot take a request: it has none of the program's functions, or one of them
 * waits for a future, an event or a queue, which only another task could fill.
 */
static bool cannot_take(const struct prb_dump_task *task, const char *module)
{
	static const char *const waits[] = {"Event.", "Queue.", "Condition.", "Server."};
	const struct prb_dump_frame *frame, *innermost = NULL;
	bool own = false;

	if (task->current || task->error || !task->waits_for)
		return false;
	prb_vec_each (frame, &task->frames) {
		if (frame->kind != PRB_FRAME_PYTHON)
			continue;
		innermost = innermost ? innermost : frame;
		own = own || !is_others(frame, module);
	}
	if (!innermost || !own)
		return innermost;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(waits); i++)
		if (!strncmp(task->waits_for, waits[i], strlen(waits[i])))
			return true;
	return !is_others(innermost, module) && !strncmp(task->waits_for, "Future at ", 10);
}

static struct prb_error *read_tasks(const struct prb_server_process *p, bool *ret)
{
	const struct prb_dump_options options = {.mode = PRB_DUMP_NONBLOCKING,
						 .no_values = true,
						 .no_command = true,
						 .no_waits = true};
	struct prb_dump_found found = {};
	struct prb_dump *dump = NULL;
	const struct prb_dump_task *task;
	struct prb_error *err = prb_dump_create_with(p->target, &options, &found, &dump);

	const size_t warned = dump ? dump->warnings.count : 0;

	if (!err)
		err = prb_dump_add_tasks(p->target, options.mode, &found, dump);
	/* A warning says that tasks may be missing. */
	*ret = !err && dump && dump->tasks.count && dump->warnings.count == warned;
	if (*ret)
		prb_vec_each (task, &dump->tasks)
			*ret = *ret && cannot_take(task, p->engine->module);
	prb_dump_destroy(dump);
	prb_dump_found_deinit(&found);
	return prb_error_tolerate(err, NULL);
}

static bool is_frontend(const struct prb_server *server, pid_t pid)
{
	const struct prb_server_process *known = prb_server_find(server, pid);

	return known && known->part && known->part->role == PRB_ENGINE_FRONTEND;
}

/** Clears *ret unless the server has no other process but frontends, and this one no connection to
 * others. */
static struct prb_error *is_alone(const struct prb_server *server,
				  const struct prb_server_process *p, bool *ret)
{
	const struct prb_case other = {.target = p->target, .dump = p->dump, .pid = p->pid};
	struct prb_subprocesses all = {}, none = {};
	const struct prb_process *process;
	size_t connections = 1;
	bool failed = false;

	PRB_TRY(prb_error_tolerate(prb_subprocesses_find(server->processes.items[0]->pid, &all),
				   &failed));
	prb_vec_each (process, &all.list)
		*ret = *ret && (prb_process_has_word(process, PRB_RESOURCE_TRACKER) ||
				is_frontend(server, process->pid));
	prb_subprocesses_deinit(&all);
	if (!failed && *ret)
		PRB_TRY(prb_error_tolerate(prb_case_count_connections(&other, &none, &connections),
					   &failed));
	*ret = *ret && !failed && !connections && !server->cut;
	return NULL;
}

/** True if its requests lie in a queue of Python: to be taken, not only noted. */
static bool has_queue(const struct prb_server_process *p)
{
	const struct prb_server_queue *queue;

	prb_vec_each (queue, &p->queues)
		if (queue->count > 0 && queue->path &&
		    (prb_text_ends(queue->path, "._queue") || prb_text_ends(queue->path, ".queue")))
			return true;
	return false;
}

static const struct prb_server_helper *ended_child(const struct prb_server *server, pid_t pid)
{
	const struct prb_server_helper *helper;

	prb_vec_each (helper, &server->helpers)
		if (helper->ended && helper->ppid == pid)
			return helper;
	return NULL;
}

static struct prb_error *is_forgotten(const struct prb_server_verdict *v,
				      const struct prb_server_process *p, bool *ret)
{
	const struct prb_server *server = &v->looks->now;

	*ret = v->looks->twice && p->dump && p->target &&
	       (has_queue(p) || ended_child(server, p->pid)) && only_loop_is_left(p);
	if (*ret)
		PRB_TRY(is_alone(server, p, ret));
	return *ret ? read_tasks(p, ret) : NULL;
}

static void put_forgotten(struct prb_str *text, const struct prb_server *server, pid_t pid)
{
	const struct prb_server_helper *child = ended_child(server, pid);

	prb_str_puts(text,
		     ", and nothing is left that could take them: no thread, task, process or "
		     "connection");
	if (child) {
		prb_str_printf(text, "; its child %d (", (int)child->pid);
		prb_text_escape(text, child->comm ? child->comm : "?");
		prb_str_puts(text, ") has ended");
	}
}

static struct prb_error *judge(struct prb_server_verdict *v, const struct prb_server_process *p)
{
	const struct prb_server_request *request;
	struct prb_str *text;
	double oldest = -1;
	bool forgotten;

	prb_vec_each (request, &p->requests)
		oldest = PRB_MAX(oldest, prb_server_age(v->looks, request));
	if (oldest < prb_limit(PRB_LIMIT_REQUEST))
		return NULL;
	PRB_TRY(is_forgotten(v, p, &forgotten));
	PRB_TRY(prb_server_found(v, forgotten ? PRB_CONFIDENCE_MEDIUM : PRB_CONFIDENCE_LOW,
				 forgotten ? "nothing takes the requests"
					   : "old requests, of which none goes on"));
	v->finding->lasted = oldest;
	text = &v->finding->sentence;
	prb_server_put_count(text, p->requests.count, "request");
	prb_str_puts(text, " of ");
	prb_server_put(text, p);
	prb_str_puts(text, p->requests.count == 1 ? " waits" : " wait");
	if (forgotten)
		put_forgotten(text, &v->looks->now, p->pid);
	else
		prb_str_puts(text, ", and none has ended between two looks");
	prb_str_puts(text, "; the oldest is ");
	prb_text_duration(text, oldest);
	prb_str_puts(text, " old");
	prb_str_puts(&v->finding->wrong_if,
		     forgotten ? "a timer of the program, or a later request of "
				 "a client, takes them"
			       : "a request takes that long");
	return prb_server_evidence(v, p);
}

struct prb_error *prb_server_judge_untaken(struct prb_server_verdict *v)
{
	static const enum prb_engine_role OTHERS[] = {PRB_ENGINE_SCHEDULER, PRB_ENGINE_WORKER,
						      PRB_ENGINE_DETOKENIZER};
	const struct prb_server *server = &v->looks->now;
	const struct prb_server_process *p = NULL;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(OTHERS); i++)
		if (prb_server_next(server, OTHERS[i], NULL))
			return NULL;
	if (v->looks->twice && prb_server_moved(v->looks))
		return NULL;
	while (!v->finding && (p = prb_server_next(server, PRB_ENGINE_FRONTEND, p)))
		PRB_TRY(judge(v, p));
	return NULL;
}
