/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/model/program_frame.h"
#include "judge/connections.h"
#include "judge/facts.h"
#include "judge/hub.h"
#include "judge/limits.h"
#include "judge/polling.h"
#include "judge/threads.h"
#include "target/proc/process.h"
#include "target/proc/subprocesses.h"
#include "target/proc/text.h"

/* Functions of libraries that wait for an answer, and call nothing of the program. */
static const struct {
	const char *func, *file; /* the end of its path */
	bool polls;		 /* by waits with a limit, one after the other */
} askers[] = {
	{"result", "/concurrent/futures/_base.py"},
	{"exception", "/concurrent/futures/_base.py"},
	{"wait", "/concurrent/futures/_base.py"},
	{"as_completed", "/concurrent/futures/_base.py"},
	{"wait", "/multiprocessing/pool.py"},
	{"next", "/multiprocessing/pool.py"},
	{"_block", "/grpc/_utilities.py"},
	{"_blocking", "/grpc/_channel.py", true},
	{"result", "/grpc/_channel.py", true},
	{"_next", "/grpc/_channel.py", true},
	{"sync", "/distributed/utils.py", true},
};

/* The frame that waits for an answer; NULL: none, or it is known that the wait ends by itself. */
static const struct prb_dump_frame *asks(const struct prb_case *c,
					 const struct prb_dump_thread *thread)
{
	if (!prb_thread_is(thread, "idle"))
		return NULL;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(askers); i++) {
		const struct prb_dump_frame *frame =
			prb_thread_frame(thread, askers[i].func, askers[i].file);

		if (!frame)
			continue;
		if (askers[i].polls)
			return prb_case_is_older(c, prb_limit(PRB_LIMIT_ANSWER)) ? frame : NULL;
		return prb_thread_waits_inside(thread) &&
				       prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_ANSWER) &&
				       prb_case_waits_without_limit(c, thread)
			       ? frame
			       : NULL;
	}
	return NULL;
}

bool prb_thread_asks(const struct prb_dump_thread *thread)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(askers); i++)
		if (prb_thread_frame(thread, askers[i].func, askers[i].file))
			return true;
	return false;
}

bool prb_thread_is_idle_worker(const struct prb_dump_thread *thread)
{
	static const struct {
		const char *worker, *file, *get, *of; /* the function that gets a task */
	} pools[] = {
		{"_process_worker", "/concurrent/futures/process.py", "get",
		 "/multiprocessing/queues.py"},
		{"worker", "/multiprocessing/pool.py", "get", "/multiprocessing/queues.py"},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(pools); i++) {
		const struct prb_dump_frame *worker =
			prb_thread_frame(thread, pools[i].worker, pools[i].file);

		/* Called by it directly: not by a task. */
		if (worker && worker > thread->frames.items &&
		    prb_frame_is(worker - 1, pools[i].get, pools[i].of))
			return true;
	}
	return false;
}

bool prb_case_is_older(const struct prb_case *c, double seconds)
{
	prb_auto_str struct prb_str line = {};
	struct prb_stat stat;

	return prb_proc_read(c->pid, "stat", &line) && prb_stat_parse(prb_str_text(&line), &stat) &&
	       prb_proc_age(stat.start_ticks) >= seconds;
}

/* The words are ours up to the endpoint. */
static bool lacks_server(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	static const char of[] = " of ZeroMQ REQ ", not [] = ", not connected";
	const struct prb_enders *enders = &thread->enders;
	const char *type = thread->waits_for ? strstr(thread->waits_for, of) : NULL;

	return prb_thread_is(thread, "idle") && enders->kind && !strcmp(enders->kind, "zmq") &&
	       enders->endless && type && prb_text_ends(type, not ) &&
	       prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_ANSWER);
}

const struct prb_dump_thread *prb_case_find_unconnected(const struct prb_case *c)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &c->dump->threads)
		if (lacks_server(c, thread))
			return thread;
	return NULL;
}

const struct prb_dump_thread *prb_case_find_asker(struct prb_case *c,
						  const struct prb_dump_frame **frame)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &c->dump->threads) {
		*frame = asks(c, thread);
		if (*frame)
			return thread;
	}
	return NULL;
}

/* The program's code, or a function of C in its place, that a pool was given. */
static bool runs_task(const struct prb_dump_thread *thread)
{
	return prb_dump_program_frame(thread) ||
	       prb_thread_frame(thread, "run", "/concurrent/futures/thread.py") ||
	       prb_thread_frame(thread, "worker", "/multiprocessing/pool.py");
}

/* A thread of the own process, whose stack is known. */
static bool thread_works(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	if (prb_thread_is_agents(thread) || prb_polling_thread(thread) || asks(c, thread))
		return false;
	if (!prb_thread_is(thread, "idle"))
		return true;
	/* Unless it waits for another thread, too. */
	return runs_task(thread) &&
	       !(prb_thread_waits_inside(thread) && prb_case_waits_without_limit(c, thread));
}

/* A thread of another process, of which the kernel's words alone are known. */
static bool may_work(const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	if (!prb_thread_is(thread, "idle") || !thread->waits_for || !enders->endless)
		return true;
	return enders->kind && !strcmp(enders->kind, "socket") && !enders->outside;
}

static struct prb_error *look_at_process(pid_t pid, bool *works)
{
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_thread *thread;

	*works = true;
	PRB_TRY(prb_target_open_process(pid, &target));
	PRB_TRY(prb_dump_create_stackless(target, false, NULL, &dump));
	*works = false;
	prb_vec_each (thread, &dump->threads)
		*works = *works || may_work(thread);
	return NULL;
}

static struct prb_error *look_at_processes(const struct prb_subprocesses *processes,
					   struct prb_workers *ret)
{
	const struct prb_process *process;

	prb_vec_each (process, &processes->list) {
		if (ret->seen)
			return NULL;
		ret->processes++;
		PRB_TRY(prb_error_tolerate(look_at_process(process->pid, &ret->seen), NULL));
	}
	return NULL;
}

struct prb_error *prb_case_find_workers(const struct prb_case *c,
					const struct prb_dump_thread *asker,
					struct prb_workers *ret)
{
	__attribute__((cleanup(prb_subprocesses_deinit))) struct prb_subprocesses processes = {};
	const struct prb_dump_thread *thread;

	*ret = (struct prb_workers){};
	prb_vec_each (thread, &c->dump->threads)
		ret->seen = ret->seen || (thread != asker && thread_works(c, thread));
	if (ret->seen)
		return NULL;
	PRB_TRY(prb_subprocesses_find(c->pid, &processes));
	PRB_TRY(prb_case_count_connections(c, &processes, &ret->connections));
	ret->seen = ret->connections > 0;
	return look_at_processes(&processes, ret);
}

/* A loop that watches no file, or only that by which other threads of its process wake it. */
static bool watches_itself(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;
	bool own = enders->kind && enders->count == 1 && enders->pids[0] == c->dump->pid;

	if (prb_thread_frame(thread, "run", "/gevent/hub.py"))
		return own || !enders->kind;
	return own && (prb_thread_frame(thread, "_run_once", "/asyncio/base_events.py") ||
		       prb_case_loop_has_no_timer(c, thread));
}

static bool waits_for_own_process(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	/* A semaphore of several processes is posted by another one. */
	if (prb_thread_waits_inside(thread))
		return !thread->enders.word.inode &&
		       prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_ANSWER) &&
		       prb_case_waits_without_limit(c, thread);
	return prb_thread_is(thread, "idle") && watches_itself(c, thread) &&
	       prb_case_is_older(c, prb_limit(PRB_LIMIT_ANSWER));
}

bool prb_case_waits_for_itself(const struct prb_case *c)
{
	const struct prb_dump_thread *thread;

	if (!prb_case_is_here(c) || !c->dump || !c->dump->threads.count ||
	    !waits_for_own_process(c, c->dump->threads.items))
		return false;
	prb_vec_each (thread, &c->dump->threads)
		if (thread->enders.outside)
			return false;
	return true;
}
