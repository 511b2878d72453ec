/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Processes that wait for each other: a child for its full pipe, and its parent for the child. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/answers.h"
#include "judge/facts.h"
#include "judge/glance.h"
#include "judge/limits.h"
#include "judge/peers.h"
#include "judge/rest.h"
#include "judge/threads.h"

struct circle {
	const struct prb_peers *peers;
	struct prb_peer_circle list;
	bool one_user, certain, handles, old;
};

static void measure(struct circle *circle)
{
	const struct prb_peer_thread *at;

	circle->one_user = circle->certain = circle->old = true;
	prb_vec_each (at, &circle->list.list) {
		const struct prb_peer *peer = &circle->peers->list.items[at->peer];

		if (peer->user < 0 || peer->user != circle->peers->list.items[0].user)
			circle->one_user = false;
		if (prb_peer_thread(circle->peers, *at)->idle_seconds <
		    prb_limit(PRB_LIMIT_PROCESSES))
			circle->old = false;
	}
	for (size_t i = 0; i < circle->peers->list.count; i++) {
		const struct prb_peer *peer = &circle->peers->list.items[i];

		circle->handles = circle->handles || peer->handles;
		for (size_t k = 0; peer->dump && k < peer->dump->threads.count; k++)
			if (peer->stuck[k] && !peer->dump->threads.items[k].enders.certain)
				circle->certain = false;
	}
}

/** Appends "4711 python3" or, for another thread than the first one, "thread 4712 reader of 4711".
 */
static void put_name(struct prb_str *s, const struct circle *circle, struct prb_peer_thread at)
{
	const struct prb_dump_thread *thread = prb_peer_thread(circle->peers, at);
	pid_t pid = circle->peers->list.items[at.peer].pid;

	if (thread->tid == pid) {
		prb_str_printf(s, "%d ", (int)pid);
		prb_text_escape(s, thread->os_name ? thread->os_name : "?");
		return;
	}
	prb_str_puts(s, "thread ");
	prb_case_put_thread(s, thread);
	prb_str_printf(s, " of %d", (int)pid);
}

/** Appends "in `read` a.py:3 waits for read: pipe 3 ← 4711 (cat)". */
static void put_wait(struct prb_str *s, const struct prb_dump_thread *thread)
{
	size_t before = s->length;

	prb_str_puts(s, " in ");
	if (!prb_case_put_place(s, thread))
		prb_str_truncate(s, before);
	prb_str_puts(s, " waits in ");
	prb_text_escape(s, thread->waits_for);
}

static void put_sentence(struct prb_str *s, const struct circle *circle)
{
	const struct prb_peer_thread *at;
	size_t count = circle->list.list.count;

	if (count == 1) {
		prb_str_puts(s, "nobody but the process itself can end its wait: ");
	} else {
		prb_str_puts(s, "processes wait for each other: ");
	}
	prb_vec_each (at, &circle->list.list) {
		if (at != circle->list.list.items)
			prb_str_puts(s, "; ");
		put_name(s, circle, *at);
		put_wait(s, prb_peer_thread(circle->peers, *at));
	}
	if (count > 1)
		prb_str_puts(s, "; until one of them is ended");
}

static struct prb_error *add_evidence(struct prb_finding *f, const struct prb_case *c,
				      const struct circle *circle)
{
	const struct prb_peer_thread *at;

	prb_vec_each (at, &circle->list.list) {
		const struct prb_peer *peer = &circle->peers->list.items[at->peer];
		const struct prb_dump_thread *thread = prb_peer_thread(circle->peers, *at);
		const struct prb_case other = {.target = peer->target, .dump = peer->dump};
		bool own = peer->pid == c->pid;
		struct prb_str *line;

		PRB_TRY(prb_finding_line(f, own ? thread->tid : 0, &line));
		put_name(line, circle, *at);
		prb_str_putc(line, ' ');
		prb_case_put_doing(line, &other, thread);
		if (own)
			PRB_TRY(prb_finding_tid(f, thread->tid));
		else
			PRB_TRY(prb_finding_pid(f, peer->pid));
	}
	return NULL;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct circle *circle, struct prb_findings *ret)
{
	size_t count = circle->list.list.count, threads = 0;
	struct prb_finding *f;

	for (size_t i = 0; i < circle->peers->list.count; i++)
		if (circle->peers->list.items[i].dump)
			threads += circle->peers->list.items[i].dump->threads.count;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->proof = circle->certain && circle->one_user && circle->old && !circle->handles;
	f->confidence = f->proof	   ? PRB_CONFIDENCE_HIGH
			: circle->one_user ? PRB_CONFIDENCE_MEDIUM
					   : PRB_CONFIDENCE_LOW;
	if (count == 1)
		prb_str_puts(&f->brief, "waits for itself");
	else
		prb_str_puts(&f->brief, "processes wait for each other");
	put_sentence(&f->sentence, circle);
	PRB_TRY(add_evidence(f, c, circle));
	prb_str_printf(&f->rests_on, "the stack%s of %zu thread%s of %zu process%s, and %s",
		       threads == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
		       circle->peers->list.count, circle->peers->list.count == 1 ? "" : "es",
		       circle->certain ? "the open files of all processes"
				       : "the open files of the processes that may be read");
	prb_str_puts(&f->wrong_if,
		     circle->handles
			     ? "the processes are to sleep until one of them gets a signal"
			     : "a signal or an alarm ends one of the processes, or a descriptor "
			       "is under way in a message");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

/** Sets *ret to false if one of those that can end the wait surely goes on. */
static struct prb_error *may_last(struct prb_glances *glances, const struct prb_case *c,
				  const struct prb_dump_thread *thread, bool *ret)
{
	const struct prb_enders *enders = &thread->enders;
	struct prb_glance glance;

	*ret = true;
	for (unsigned i = 0; i < enders->count && *ret; i++) {
		if (enders->pids[i] == c->pid)
			continue;
		PRB_TRY(prb_glances_at(glances, enders->pids[i], &glance));
		*ret = !glance.moves;
	}
	if (*ret && enders->word.inode) {
		bool moves;

		PRB_TRY(prb_glances_at_memory(glances, &enders->word, &moves));
		*ret = !moves;
	}
	return NULL;
}

/** *ret: a thread may have waited long for a process that does not go on. */
static struct prb_error *may_be_stuck(const struct prb_case *c, bool *ret)
{
	prb_auto_glances struct prb_glances own = {};
	const struct prb_dump_thread *thread;

	*ret = false;
	/* None waits for a process that can do something else. */
	prb_vec_each (thread, &c->dump->threads)
		if (prb_thread_moves(thread))
			return NULL;
	prb_vec_each (thread, &c->dump->threads)
		if (!*ret && prb_thread_waits_outside(thread) &&
		    !prb_case_moved(c, thread, prb_limit(PRB_LIMIT_PROCESSES)))
			PRB_TRY(may_last(c->glances ? c->glances : &own, c, thread, ret));
	return NULL;
}

/** A circle of threads of one process by their locks: the rule `deadlock` has said that. */
static bool is_told(const struct circle *circle, const struct prb_findings *findings)
{
	const struct prb_peer_thread *at;
	struct prb_finding *const *finding;

	prb_vec_each (at, &circle->list.list)
		if (at->peer || !prb_peer_thread(circle->peers, *at)->enders.alone)
			return false;
	prb_vec_each (finding, &findings->list)
		if ((*finding)->kind == PRB_FINDING_DEADLOCK)
			return true;
	return false;
}

/**
 * Workers that wait for a task, and the thread that waits for their results, are a circle while the
 * program has nothing for them to do.
 */
static bool is_idle_pool(const struct circle *circle)
{
	const struct prb_peer_thread *at;
	const struct prb_dump_thread *thread;
	const struct prb_peer *peer;
	bool idle = false;

	prb_vec_each (at, &circle->list.list)
		idle = idle || prb_thread_is_idle_worker(prb_peer_thread(circle->peers, *at));
	if (!idle)
		return false;
	prb_vec_each (peer, &circle->peers->list)
		if (peer->dump)
			prb_vec_each (thread, &peer->dump->threads)
				/* The children of a fork have the frames of their parent. */
				if (prb_thread_asks(thread) && !prb_thread_is_idle_worker(thread))
					return false;
	return true;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	prb_auto_peers struct prb_peers peers = {};
	struct circle circle = {.peers = &peers};
	struct prb_error *err = NULL;
	bool may;

	if (!c->dump || !prb_case_is_here(c))
		return NULL;
	PRB_TRY(may_be_stuck(c, &may));
	if (!may)
		return NULL;
	PRB_TRY(prb_peers_read(&peers, c->pid));
	prb_peers_judge(&peers);
	for (size_t i = 0; !err && peers.list.items[0].dump &&
			   i < peers.list.items[0].dump->threads.count && !circle.list.list.count;
	     i++)
		err = prb_peers_circle(&peers, i, &circle.list);
	if (!err && circle.list.list.count) {
		measure(&circle);
		/* A program that waits for what its own handler writes is a common one. */
		if ((circle.list.list.count > 1 || !circle.handles) && !is_told(&circle, ret) &&
		    !is_idle_pool(&circle))
			err = tell(rule, c, &circle, ret);
	}
	prb_vec_free(&circle.list.list);
	return err;
}

const struct prb_rule prb_rule_processes = {
	.rank = 22,
	.name = "processes",
	.kind = PRB_FINDING_DEADLOCK,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.proves = "processes wait for each other, by pipes, sockets, children or file locks",
	.find = find,
};
