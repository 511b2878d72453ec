/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Nothing has run for a while, and nobody outside of the program can end any of its waits: no
 * client, no input, no clock. Whether that is a hang only its author knows.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/facts.h"
#include "judge/glance.h"
#include "judge/limits.h"
#include "judge/peers.h"
#include "judge/rest.h"
#include "judge/suspended.h"
#include "judge/threads.h"

enum { MOST_LINES = 8 };

struct walk {
	struct prb_glances *glances;
	struct prb_peers peers;
	PRB_VEC(pid_t) seen;
	bool idle; /* somebody outside may wake one of the threads */
};

static void walk_deinit(struct walk *walk)
{
	prb_peers_deinit(&walk->peers);
	prb_vec_free(&walk->seen);
}

static struct prb_error *visit(struct walk *walk, pid_t pid, bool *is_new)
{
	pid_t *place;

	*is_new = false;
	prb_vec_each (place, &walk->seen)
		if (*place == pid)
			return NULL;
	place = prb_vec_push(&walk->seen);
	if (!place)
		return prb_error_nomem();
	*place = pid;
	*is_new = true;
	return NULL;
}

/** Adds the children of a process to the processes to look at. */
static struct prb_error *visit_children(struct walk *walk, struct prb_target *t)
{
	prb_auto_pids struct prb_pids children = {};
	const pid_t *child;
	bool is_new;

	PRB_TRY(prb_target_children(t, UINT_MAX, &children, NULL));
	prb_vec_each (child, &children.list)
		PRB_TRY(visit(walk, *child, &is_new));
	return NULL;
}

static struct prb_error *look_at_thread(struct walk *walk, const struct prb_case *c,
					const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;
	struct prb_rest rest = prb_case_rest(c, thread);
	bool is_new;

	if (prb_case_goes_on(c, thread)) {
		walk->idle = true;
		return NULL;
	}
	if (rest.kind == PRB_REST_CHILDREN)
		return visit_children(walk, c->target);
	if (rest.kind != PRB_REST_PROCESS)
		return NULL;
	/* The words name the first process that can end a wait. */
	for (unsigned i = 0; i < enders->count; i++)
		PRB_TRY(visit(walk, enders->pids[i], &is_new));
	return visit(walk, rest.pid, &is_new);
}

/** Reads one of the processes, with all who can end its waits. */
static struct prb_error *look_at(struct walk *walk, pid_t pid)
{
	const struct prb_dump_thread *thread;
	const struct prb_peer *peer;
	size_t place;

	PRB_TRY(prb_peers_add(&walk->peers, pid, &place));
	peer = place < walk->peers.list.count ? &walk->peers.list.items[place] : NULL;
	walk->idle = !peer || !peer->dump || !peer->whole || peer->handles;
	if (walk->idle)
		return NULL;
	struct prb_case c = {.target = peer->target, .dump = peer->dump};

	prb_vec_each (thread, &c.dump->threads)
		if (!walk->idle)
			PRB_TRY(look_at_thread(walk, &c, thread));
	return NULL;
}

/** Most processes that wait do so for one that goes on: that is seen without a full reading. */
static struct prb_error *glance(struct walk *walk, const struct prb_case *c)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &c->dump->threads)
		if (!walk->idle)
			PRB_TRY(look_at_thread(walk, c, thread));
	for (size_t i = 1; i < walk->seen.count && !walk->idle; i++) {
		struct prb_glance seen;

		PRB_TRY(prb_glances_at(walk->glances, walk->seen.items[i], &seen));
		walk->idle = seen.idle;
	}
	return NULL;
}

/** Follows all threads of the process, and those of the processes that they wait for. */
static struct prb_error *follow(struct walk *walk, const struct prb_case *c)
{
	bool is_new;

	PRB_TRY(visit(walk, c->pid, &is_new));
	PRB_TRY(glance(walk, c));
	for (size_t i = 0; i < walk->seen.count && !walk->idle; i++)
		PRB_TRY(look_at(walk, walk->seen.items[i]));
	return walk->idle ? prb_glances_note_idle(walk->glances, c->pid) : NULL;
}

/** Seconds since a thread has run; negative: not known. */
static double slept(const struct prb_case *c)
{
	const struct prb_dump_thread *thread;
	double least = -1;

	prb_vec_each (thread, &c->dump->threads) {
		double idle = prb_case_idle(c, thread);

		if (idle < 0)
			return -1;
		least = least < 0 || idle < least ? idle : least;
	}
	return least;
}

/** A line for the main thread of each process that it waits for. */
static struct prb_error *tell_peers(struct prb_finding *f, const struct prb_case *c,
				    const struct walk *walk)
{
	const struct prb_peer *peer;
	struct prb_str *line;

	prb_vec_each (peer, &walk->peers.list) {
		const struct prb_case other = {.target = peer->target, .dump = peer->dump};

		if (peer->pid == c->pid)
			continue;
		PRB_TRY(prb_finding_pid(f, peer->pid));
		if (f->evidence.count >= MOST_LINES || !peer->dump->threads.count)
			continue;
		PRB_TRY(prb_finding_line(f, 0, &line));
		prb_str_puts(line, "process ");
		prb_case_put_thread(line, peer->dump->threads.items);
		prb_str_putc(line, ' ');
		prb_case_put_doing(line, &other, peer->dump->threads.items);
	}
	return NULL;
}

/** The stacks of loops do not show what their tasks wait for. */
static struct prb_error *tell_tasks(struct prb_finding *f, const struct prb_case *c)
{
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_task *task;
	struct prb_str *line;

	PRB_TRY(prb_case_read_tasks(c, &dump));
	if (!dump)
		return NULL;
	prb_vec_each (task, &dump->tasks) {
		if (task->current || f->evidence.count >= MOST_LINES)
			continue;
		PRB_TRY(prb_finding_line(f, task->tid, &line));
		prb_case_put_task(line, task);
	}
	return NULL;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct walk *walk, struct prb_findings *ret)
{
	const struct prb_dump_thread *thread, *main = c->dump->threads.items;
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_LOW;
	prb_str_puts(&f->brief, "does not move");
	prb_str_puts(&f->sentence, "nothing has run for ");
	prb_text_duration(&f->sentence, slept(c));
	prb_str_puts(&f->sentence, ", and nothing outside of the program ends its waits: ");
	prb_case_put_thread(&f->sentence, main);
	prb_str_putc(&f->sentence, ' ');
	prb_case_put_doing(&f->sentence, c, main);
	prb_vec_each (thread, &c->dump->threads)
		if (f->evidence.count < MOST_LINES)
			PRB_TRY(prb_finding_thread(f, c, thread));
	PRB_TRY(tell_tasks(f, c));
	PRB_TRY(tell_peers(f, c, walk));
	prb_str_printf(&f->rests_on, "what all threads of %zu process%s wait for", walk->seen.count,
		       walk->seen.count == 1 ? "" : "es");
	prb_str_puts(&f->wrong_if, "a peer on the network answers late, or the program is to sleep "
				   "until it is killed");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	prb_auto_glances struct prb_glances own = {};
	__attribute__((cleanup(walk_deinit))) struct walk walk = {.glances = c->glances ? c->glances
											: &own};

	if (prb_findings_explain(ret) || prb_findings_have(ret, "silent_peer"))
		return NULL;
	if (!c->dump || !c->dump->threads.count || !prb_case_is_here(c) ||
	    slept(c) < prb_limit(PRB_LIMIT_STILL))
		return NULL;
	PRB_TRY(follow(&walk, c));
	return walk.idle ? NULL : tell(rule, c, &walk, ret);
}

const struct prb_rule prb_rule_still = {
	.rank = 800,
	.name = "still",
	.kind = PRB_FINDING_STILL,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.proves = "for 20 s nothing has run, and nothing outside of the program ends its waits",
	.find = find,
};
