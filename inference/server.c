/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the processes of a server: the topmost one that runs it, and what descends from that. */
#include "inference/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "inference/process.h"
#include "target/proc/pids.h"
#include "target/proc/process.h"

enum { ANCESTORS_MAX = 16 };

/** A process of this machine. */
struct relative {
	pid_t pid, ppid;
	bool descends, ended;
	double started;
	char *comm;
};

struct relatives {
	PRB_VEC(struct relative) list; /* by pid */
};

static void relatives_deinit(struct relatives *all)
{
	struct relative *one;

	prb_vec_each (one, &all->list)
		free(one->comm);
	prb_vec_free(&all->list);
}

const struct prb_server_process *prb_server_find(const struct prb_server *server, pid_t pid)
{
	struct prb_server_process *const *p;

	prb_vec_each (p, &server->processes)
		if ((*p)->pid == pid)
			return *p;
	return NULL;
}

void prb_server_deinit(struct prb_server *server)
{
	struct prb_server_process **process;
	struct prb_server_helper *helper;

	prb_vec_each (process, &server->processes) {
		prb_server_process_deinit(*process);
		prb_target_destroy((*process)->target);
		free(*process);
	}
	prb_vec_each (helper, &server->helpers)
		free(helper->comm);
	prb_vec_free(&server->processes);
	prb_vec_free(&server->helpers);
}

static struct prb_error *is_server(const struct prb_engines *engines, pid_t pid,
				   const struct prb_engine **engine, bool *ret)
{
	prb_auto_target struct prb_target *target = NULL;
	bool failed = false;

	*ret = false;
	*engine = NULL;
	PRB_TRY(prb_error_tolerate(prb_target_open_process(pid, &target), &failed));
	return failed ? NULL : prb_server_engine_of(engines, target, NULL, engine, ret);
}

static struct prb_error *list_all(struct relatives *ret)
{
	prb_auto_pids struct prb_pids pids = {};
	pid_t *pid;

	PRB_TRY(prb_pids_of_all(&pids));
	prb_vec_each (pid, &pids.list) {
		struct prb_process process = {};
		struct prb_error *err = prb_process_describe(*pid, &process);
		struct relative *added = NULL;

		if (!err && process.kind != PRB_PROCESS_KERNEL &&
		    (added = prb_vec_push(&ret->list))) {
			*added = (struct relative){.pid = *pid,
						   .ppid = process.ppid,
						   .ended = process.kind == PRB_PROCESS_ZOMBIE,
						   .started = process.start_time,
						   .comm = process.comm};
			process.comm = NULL;
		}
		prb_process_deinit(&process);
		PRB_TRY(prb_error_tolerate(err, NULL));
	}
	return NULL;
}

static struct relative *find(const struct relatives *all, pid_t pid)
{
	struct relative *one;

	prb_vec_each (one, &all->list)
		if (one->pid == pid)
			return one;
	return NULL;
}

/** The topmost of its ancestors in a row that run the server; 0: it does not itself. */
static struct prb_error *find_top(const struct prb_engines *engines, const struct relatives *all,
				  pid_t pid, pid_t *ret)
{
	const struct relative *at = find(all, pid);
	const struct prb_engine *engine = NULL, *own;
	bool is = false;

	*ret = 0;
	for (unsigned n = 0; at && n < ANCESTORS_MAX; n++) {
		PRB_TRY(is_server(engines, at->pid, &own, &is));
		engine = own ? own : engine;
		if (is || (engine && engine->below && at->comm && !strcmp(at->comm, engine->below)))
			*ret = at->pid;
		else if (n)
			return NULL; /* a process that only started it may be the asked one */
		at = find(all, at->ppid);
	}
	return NULL;
}

/** Parents can have higher numbers than their children: repeated until nothing is added. */
static void mark_descendants(const struct relatives *all, pid_t top)
{
	struct relative *one;
	bool more = true;

	while (more) {
		more = false;
		prb_vec_each (one, &all->list) {
			const struct relative *parent = find(all, one->ppid);

			if (!one->descends && (one->pid == top || (parent && parent->descends)))
				more = one->descends = true;
		}
	}
}

static struct prb_error *add_helper(struct prb_server *server, struct relative *one)
{
	struct prb_server_helper *helper = prb_vec_push(&server->helpers);

	if (!helper)
		return prb_error_nomem();
	*helper = (struct prb_server_helper){one->pid, one->ppid, one->ended, one->started,
					     prb_steal(&one->comm)};
	return NULL;
}

static struct prb_error *note_unreadable(struct prb_server_process *process, struct prb_error *err)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	free(process->unreadable);
	process->unreadable = strdup(err->message);
	prb_error_destroy(err);
	return process->unreadable ? NULL : prb_error_nomem();
}

static struct prb_error *read_one(const struct prb_engines *engines, enum prb_dump_mode mode,
				  struct relative *one, struct prb_server *server)
{
	struct prb_server_process *process = calloc(1, sizeof(*process)), **place;
	struct prb_error *err;

	place = process ? prb_vec_push(&server->processes) : NULL;
	if (!place) {
		free(process);
		return prb_error_nomem();
	}
	*place = process;
	err = prb_target_open_process(one->pid, &process->target);
	if (!err)
		err = prb_server_process_read(engines, process->target, mode, process);
	process->pid = one->pid;
	process->ppid = one->ppid;
	process->started = one->started;
	PRB_TRY(note_unreadable(process, err));
	if (process->engine || process->missing || process->unreadable)
		return NULL;
	/* Python, but not of the server: a resource tracker, say. */
	server->processes.count--;
	prb_server_process_deinit(process);
	prb_target_destroy(process->target);
	free(process);
	return add_helper(server, one);
}

static struct prb_error *read_all(const struct prb_engines *engines, enum prb_dump_mode mode,
				  const struct relatives *all, struct prb_server *ret)
{
	struct prb_python_judge judge = {};
	struct prb_python_processes python = {};
	struct prb_error *err = NULL;
	struct relative *one;

	prb_vec_each (one, &all->list) {
		size_t before = python.list.count;

		if (!one->descends || err)
			continue;
		if (!one->ended)
			err = prb_process_judge(&judge, one->pid, &python);
		if (err)
			err = prb_error_tolerate(err, NULL);
		if (!err && python.list.count == before)
			err = add_helper(ret, one);
		else if (!err && ret->processes.count >= PRB_SERVER_PROCESSES_MAX)
			ret->cut = true;
		else if (!err)
			err = read_one(engines, mode, one, ret);
	}
	prb_python_processes_deinit(&python);
	prb_python_judge_deinit(&judge);
	return err;
}

struct prb_error *prb_server_read(const struct prb_engines *engines, pid_t pid,
				  enum prb_dump_mode mode, struct prb_server *ret)
{
	__attribute__((cleanup(relatives_deinit))) struct relatives all = {};
	pid_t top;

	PRB_TRY(list_all(&all));
	PRB_TRY(find_top(engines, &all, pid, &top));
	if (!top)
		return NULL;
	mark_descendants(&all, top);
	return read_all(engines, mode, &all, ret);
}

const struct prb_server_process *prb_server_next(const struct prb_server *server,
						 enum prb_engine_role role,
						 const struct prb_server_process *after)
{
	struct prb_server_process *const *p;

	prb_vec_each (p, &server->processes) {
		if (!after && (*p)->part && (*p)->part->role == role)
			return *p;
		if (*p == after)
			after = NULL;
	}
	return NULL;
}

bool prb_server_serves(const struct prb_server *server, const struct prb_server_process *worker,
		       const struct prb_server_process *scheduler)
{
	const struct prb_server_process *first =
		prb_server_next(server, PRB_ENGINE_SCHEDULER, NULL);

	return worker->ppid == scheduler->pid ||
	       (first == scheduler && !prb_server_next(server, PRB_ENGINE_SCHEDULER, first));
}
