/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/run/standstill.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "dump/dump.h"
#include "judge/polling.h"
#include "judge/sharing.h"
#include "dump/tasks/tasks.h"
#include "judge/facts.h"
#include "judge/threads.h"
#include "target/task.h"

void prb_standstill_deinit(struct prb_standstill *s)
{
	struct prb_still_process *process;

	prb_vec_each (process, &s->list) {
		prb_vec_free(&process->threads);
		free(process->words);
	}
	prb_vec_free(&s->list);
	prb_vec_free(&s->chain);
	prb_why_deinit(&s->why);
}

void prb_standstill_forget(struct prb_standstill *s)
{
	struct prb_still_process *process;

	prb_vec_each (process, &s->list)
		process->one = NULL;
	prb_why_deinit(&s->why);
}

const struct prb_dump_thread *prb_why_main(const struct prb_why_one *one)
{
	return one && one->dump && one->dump->threads.count ? one->dump->threads.items : NULL;
}

/** Of another program's thread the switches are not known: its process says whether it ran. */
static struct prb_error *add_thread(struct prb_still_process *process, pid_t tid,
				    struct prb_rest rest, bool polls, int64_t switches)
{
	struct prb_still_thread *thread = prb_vec_push(&process->threads);

	if (!thread)
		return prb_error_nomem();
	*thread = (struct prb_still_thread){tid, rest, polls, switches};
	return NULL;
}

/** A process outside of the tree has the semaphore that the thread waits for, too. */
static bool waits_above(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	struct prb_futex_call call = prb_case_futex_call(c, thread);

	return call.endless && !call.own && prb_case_shares_above(c, call.address);
}

static struct prb_error *add_python(struct prb_still_process *process, bool is_root)
{
	const struct prb_case *c = &process->one->judged;
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &process->one->dump->threads) {
		bool polls = prb_polling_thread(thread);
		struct prb_rest rest = prb_case_rest(c, thread);

		if (!thread->tid)
			continue;
		if (is_root && rest.kind == PRB_REST_INSIDE && waits_above(c, thread))
			rest.kind = PRB_REST_OUTSIDE;
		PRB_TRY(add_thread(process, thread->tid,
				   polls ? (struct prb_rest){PRB_REST_INSIDE} : rest, polls,
				   prb_case_switches(c, thread->tid)));
	}
	return NULL;
}

/** A thread of another program: the kernel says what it waits for. */
static struct prb_error *add_task(struct prb_still_process *process, struct prb_target *t,
				  pid_t tid)
{
	struct prb_task task;
	struct prb_wait wait;
	struct prb_rest rest = {PRB_REST_RUNS};

	PRB_TRY(prb_task_read(t, tid, &task));
	PRB_TRY(prb_task_wait(t, &task, &wait));

	prb_auto_free char *words =
		wait.call && wait.what ? prb_format("%s: %s", wait.call, wait.what) : NULL;
	const struct prb_enders enders = wait.enders;
	prb_wait_deinit(&wait);
	if (task.state == 'T' || task.state == 't' || task.state == 'D')
		rest.kind = PRB_REST_INSIDE;
	else if (task.state == 'S')
		/* What is not described may be anything. */
		rest = words ? prb_rest_of(&enders, process->pid)
			     : (struct prb_rest){PRB_REST_OUTSIDE};
	if (!process->threads.count)
		process->words = prb_steal(&words);
	if (process->polls)
		rest = (struct prb_rest){PRB_REST_CHILDREN};
	return add_thread(process, tid, rest, process->polls, -1);
}

static struct prb_error *add_other(struct prb_still_process *process)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_tasks tasks = {};
	struct prb_error *err = prb_target_open_process(process->pid, &target);

	if (!err)
		err = prb_tasks_create(target, &tasks);
	for (size_t i = 0; i < tasks.list.count && !err; i++)
		if (!prb_task_has_ended(&tasks.list.items[i]))
			err = prb_error_tolerate(add_task(process, target, tasks.list.items[i].tid),
						 NULL);
	prb_tasks_deinit(&tasks);
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *describe(struct prb_standstill *s, const struct prb_tree *tree)
{
	struct prb_why_one *const *one;

	prb_vec_each (one, &s->why.list) {
		struct prb_still_process *process = prb_vec_push(&s->list);

		if (!process)
			return prb_error_nomem();
		process->pid = (*one)->process.pid;
		process->one = *one;
		process->polls = prb_polling_program(&(*one)->process);
		process->ran = prb_tree_find(tree, process->pid)->ran;
		PRB_TRY(prb_why_main(*one) ? add_python(process, process->pid == tree->root)
					   : add_other(process));
	}
	return NULL;
}

static struct prb_still_process *find(const struct prb_standstill *s, pid_t pid)
{
	struct prb_still_process *process;

	prb_vec_each (process, &s->list)
		if (process->pid == pid)
			return process;
	return NULL;
}

/** What can end the wait, given all processes that can. One outside the tree may do so any time. */
static struct prb_rest rest_with(const struct prb_standstill *s, const struct prb_enders *enders,
				 pid_t own)
{
	struct prb_rest rest = prb_rest_of(enders, own);

	for (unsigned i = 0; rest.kind == PRB_REST_PROCESS && i < enders->count; i++)
		if (!find(s, enders->pids[i]))
			rest.kind = PRB_REST_OUTSIDE;
	return rest;
}

static void search_thread(const struct prb_standstill *s, const struct prb_dump_thread *seen,
			  struct prb_still_process *process)
{
	struct prb_rest rest = rest_with(s, &seen->enders, process->pid);
	struct prb_still_thread *thread;

	if (!prb_thread_is(seen, "idle") ||
	    (rest.kind != PRB_REST_OUTSIDE && rest.kind != PRB_REST_PROCESS))
		return;
	prb_vec_each (thread, &process->threads)
		if (thread->tid == seen->tid && !thread->polls &&
		    thread->rest.kind == PRB_REST_INSIDE)
			thread->rest = rest;
}

/** The first look does not search all processes for the other ends of sockets. */
static struct prb_error *search(const struct prb_standstill *s, struct prb_still_process *process)
{
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_thread *seen;

	process->searched = true;
	PRB_TRY(prb_target_open_process(process->pid, &target));
	PRB_TRY(prb_dump_create_stackless(target, true, NULL, &dump));
	prb_vec_each (seen, &dump->threads)
		search_thread(s, seen, process);
	return NULL;
}

static struct prb_error *follow(struct prb_standstill *s, const struct prb_tree *tree, pid_t pid,
				bool *idle);

/** True, if any child has a reason to wait: then its parent has, too. */
static struct prb_error *follow_children(struct prb_standstill *s, const struct prb_tree *tree,
					 pid_t parent, bool *idle)
{
	const struct prb_tree_process *child;

	prb_vec_each (child, &tree->list)
		if (child->parent == parent && !*idle)
			PRB_TRY(follow(s, tree, child->pid, idle));
	return NULL;
}

/** The last of the threads that wait for each other's locks; a circle has no last one. */
static const struct prb_still_thread *last_holder(const struct prb_still_process *process)
{
	const struct prb_still_thread *at = process->threads.items, *thread;

	for (size_t steps = 0; at->rest.kind == PRB_REST_THREAD; steps++) {
		const struct prb_still_thread *holder = NULL;

		prb_vec_each (thread, &process->threads)
			if (thread->tid == at->rest.pid)
				holder = thread;
		if (!holder || steps > process->threads.count)
			return NULL;
		at = holder;
	}
	return at;
}

static struct prb_error *follow_thread(struct prb_standstill *s, const struct prb_tree *tree,
				       const struct prb_still_process *process,
				       const struct prb_still_thread *thread, bool *idle)
{
	switch (thread->rest.kind) {
	case PRB_REST_RUNS:
	case PRB_REST_CLOCK:
	case PRB_REST_OUTSIDE:
		*idle = true;
		break;
	case PRB_REST_PROCESS:
		if (thread->rest.pid != process->pid)
			return follow(s, tree, thread->rest.pid, idle);
		break;
	case PRB_REST_CHILDREN:
		return follow_children(s, tree, process->pid, idle);
	case PRB_REST_THREAD:
	case PRB_REST_INSIDE:
		break;
	}
	return NULL;
}

/** Sets *idle if the process has a reason to wait; a process outside of the tree always has. */
static struct prb_error *follow(struct prb_standstill *s, const struct prb_tree *tree, pid_t pid,
				bool *idle)
{
	struct prb_still_process *process = find(s, pid);
	const struct prb_still_thread *first, *thread;
	pid_t *place;

	if (!process || !process->threads.count) {
		*idle = true;
		return NULL;
	}
	if (process->followed)
		return NULL;
	process->followed = true;
	if (s->searches && !process->searched)
		PRB_TRY(prb_error_tolerate(search(s, process), NULL));
	place = prb_vec_push(&s->chain);
	if (!place)
		return prb_error_nomem();
	*place = pid;
	first = last_holder(process);
	if (!first)
		return NULL;
	if (first->rest.kind != PRB_REST_INSIDE)
		return follow_thread(s, tree, process, first, idle);
	/* A holder of a lock that waits inside, or a wait that any thread may end. */
	if (first != process->threads.items)
		return NULL;
	prb_vec_each (thread, &process->threads)
		if (!*idle)
			PRB_TRY(follow_thread(s, tree, process, thread, idle));
	return first->polls && !*idle ? follow_children(s, tree, pid, idle) : NULL;
}

struct prb_error *prb_standstill_read(const struct prb_tree *tree, pid_t first,
				      struct prb_standstill *ret)
{
	prb_auto_free pid_t *pids = calloc(tree->list.count + 1, sizeof(*pids));
	bool idle = false;

	if (!pids)
		return prb_error_nomem();
	for (size_t i = 0; i < tree->list.count; i++)
		pids[i] = tree->list.items[i].pid;
	PRB_TRY(prb_why_of(pids, tree->list.count, &ret->why));
	PRB_TRY(describe(ret, tree));
	PRB_TRY(follow(ret, tree, first, &idle));
	ret->hung = !idle;
	return NULL;
}

struct prb_error *prb_standstill_search(const struct prb_tree *tree, pid_t first,
					struct prb_standstill *s)
{
	struct prb_still_process *process;
	bool idle = false;

	if (!s->hung)
		return NULL;
	prb_vec_each (process, &s->list)
		process->followed = false;
	s->chain.count = 0;
	s->searches = true;
	PRB_TRY(follow(s, tree, first, &idle));
	s->hung = !idle;
	return NULL;
}

static bool has_slept(const struct prb_still_process *before, const struct prb_still_thread *thread)
{
	const struct prb_still_thread *was;

	prb_vec_each (was, &before->threads)
		if (was->tid == thread->tid)
			return thread->switches >= 0 && was->switches == thread->switches;
	return false;
}

static bool is_quiet(const struct prb_still_process *before, const struct prb_still_process *now)
{
	const struct prb_still_thread *thread;

	if (now->ran == before->ran || now->polls)
		return true;
	prb_vec_each (thread, &now->threads)
		if (!thread->polls && !has_slept(before, thread))
			return false;
	return now->threads.count == before->threads.count;
}

bool prb_standstill_is_quiet(const struct prb_standstill *before, const struct prb_standstill *now)
{
	const struct prb_still_process *process, *was;

	if (!now->list.count || before->list.count != now->list.count)
		return false;
	prb_vec_each (process, &now->list) {
		was = find(before, process->pid);
		if (!was || !is_quiet(was, process))
			return false;
	}
	return true;
}

/** True if the main thread is one of the finding's, or waits for the lock of one. */
static bool is_kept(const struct prb_why_one *one, const struct prb_finding *finding)
{
	const struct prb_dump_thread *at = prb_why_main(one);

	for (size_t steps = 0; at && steps <= one->dump->threads.count; steps++) {
		for (size_t i = 0; i < finding->tids.count; i++)
			if (finding->tids.items[i] == at->tid)
				return true;
		at = prb_case_thread(&one->judged, prb_thread_owner(at));
	}
	return false;
}

const struct prb_finding *prb_standstill_proof(const struct prb_standstill *s, double seconds)
{
	for (size_t i = 0; i < s->chain.count; i++) {
		const struct prb_still_process *process = find(s, s->chain.items[i]);
		const struct prb_why_one *one = process ? process->one : NULL;

		if (!prb_why_main(one) || prb_why_main(one)->idle_seconds < seconds)
			continue;
		for (size_t k = 0; k < one->findings.list.count; k++) {
			const struct prb_finding *f = one->findings.list.items[k];

			if ((f->kind == PRB_FINDING_DEADLOCK || f->kind == PRB_FINDING_ORPHAN) &&
			    f->confidence == PRB_CONFIDENCE_HIGH && is_kept(one, f))
				return f;
		}
	}
	return NULL;
}
