/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A process that waits for a child, or for a child's child, whose threads can never go on, ask for
 * a lock file that somebody has, or wait for nobody knows whom: the verdict about that one is the
 * verdict about all that wait for it. Others are not followed: to find who can end a wait takes a
 * look at all processes.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "judge/chain.h"
#include "judge/glance.h"
#include "judge/judge.h"
#include "judge/limits.h"
#include "judge/threads.h"
#include "target/proc/process.h"

extern const struct prb_rule prb_rule_deadlock, prb_rule_orphan, prb_rule_lock_file,
	prb_rule_unknown;

/* A process that polls may ask for a lock file. */
static bool is_of_interest(const struct prb_case *c, const struct prb_glance *glance)
{
	return !glance->moves || glance->waits || (glance->polls && c->patience > 0);
}

/* The wait was not described to its end: who else can end it is not known. */
static bool is_for_many(const struct prb_enders *enders)
{
	return enders->count == PRB_MOST_ENDERS && !enders->all;
}

/** *ret: the thread has waited long for one of its descendants, whose main thread does not go on.
 */
static struct prb_error *may_be_stuck(const struct prb_case *c, struct prb_glances *glances,
				      const struct prb_dump_thread *thread, bool *ret)
{
	const struct prb_enders *enders = &thread->enders;
	struct prb_glance glance = {};

	*ret = false;
	if (!prb_thread_waits_outside(thread) || enders->outside || enders->word.inode ||
	    is_for_many(enders) || prb_case_moved(c, thread, prb_limit(PRB_LIMIT_PROCESSES)))
		return NULL;
	for (unsigned i = 0; i < enders->count && is_of_interest(c, &glance); i++)
		if (enders->pids[i] != c->pid && prb_proc_is_ancestor(c->pid, enders->pids[i])) {
			PRB_TRY(prb_glances_at(glances, enders->pids[i], &glance));
			*ret = is_of_interest(c, &glance);
		}
	return NULL;
}

/* What is not known of a process that runs is no sign of trouble. */
static struct prb_error *run_rules(struct prb_case *end, const struct prb_peer *peer, bool polls,
				   struct prb_findings *findings)
{
	const struct prb_case_sleeper *sleeper;

	prb_vec_each (sleeper, &peer->sleepers) {
		struct prb_case_sleeper *place = prb_vec_push(&end->sleepers);

		if (!place)
			return prb_error_nomem();
		*place = *sleeper;
	}
	PRB_TRY(prb_judge_by(&prb_rule_deadlock, end, findings));
	PRB_TRY(prb_judge_by(&prb_rule_orphan, end, findings));
	PRB_TRY(prb_judge_by(&prb_rule_lock_file, end, findings));
	return findings->list.count || polls ? NULL
					     : prb_judge_by(&prb_rule_unknown, end, findings);
}

/* What the rules say of a process that was read, from @p began on. */
static struct prb_error *judge_peer(struct prb_case *c, struct prb_glances *glances,
				    const struct prb_peer *peer, double began,
				    struct prb_findings *findings)
{
	struct prb_case end = {
		.target = peer->target,
		.dump = peer->dump,
		.pid = peer->pid,
		.read_seconds = prb_judge_read_seconds(peer->target, began),
		.patience = c->patience,
	};
	struct prb_glance glance;
	struct prb_error *err = prb_glances_at(glances, peer->pid, &glance);

	if (!err)
		err = run_rules(&end, peer, glance.polls, findings);
	c->spent += end.spent;
	prb_case_deinit(&end);
	return err;
}

/** The finding about that thread, or NULL. */
static struct prb_finding *find_about(const struct prb_findings *findings, pid_t tid)
{
	struct prb_finding *const *each;

	prb_vec_each (each, &findings->list)
		for (size_t i = 0; i < (*each)->tids.count; i++)
			if ((*each)->tids.items[i] == tid)
				return *each;
	return NULL;
}

/* What a thread waits for, and what was found there. */
struct below {
	const struct prb_dump_thread *thread;
	const struct prb_peers *peers;
	const struct prb_chain *chain; /* up to the process; NULL: it is one of several */
	pid_t pid;
	const struct prb_finding *found;
};

static void put_sentence(struct prb_str *s, const struct below *below, bool ends)
{
	prb_str_puts(s, "thread ");
	prb_case_put_thread(s, below->thread);
	if (below->chain)
		prb_str_printf(s, " waits for process %d, %s", (int)below->pid,
			       ends ? "which cannot go on: " : "where ");
	else
		prb_str_printf(s, " waits for several processes, one of which, %d, cannot go on: ",
			       (int)below->pid);
	prb_str_puts(s, prb_str_text(&below->found->sentence));
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct below *below, struct prb_findings *ret)
{
	const struct prb_finding *found = below->found;
	const bool ends = found->kind == PRB_FINDING_DEADLOCK || found->kind == PRB_FINDING_ORPHAN;
	const struct prb_finding_line *line;
	struct prb_finding *f;
	struct prb_str *text;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->kind = found->kind;
	f->confidence = found->confidence;
	f->proof = found->proof && below->chain;
	prb_str_printf(&f->brief, "waits for %d", (int)below->pid);
	if (ends)
		prb_str_puts(&f->brief, ", which cannot go on");
	put_sentence(&f->sentence, below, ends);
	PRB_TRY(prb_finding_thread(f, c, below->thread));
	if (below->chain) {
		PRB_TRY(prb_finding_line(f, 0, &text));
		prb_chain_put(text, below->peers, below->chain);
	}
	prb_vec_each (line, &found->evidence) {
		PRB_TRY(prb_finding_line(f, 0, &text));
		prb_str_printf(text, "in %d: %s", (int)below->pid, prb_str_text(&line->text));
	}
	PRB_TRY(prb_finding_pid(f, below->pid));
	prb_str_printf(&f->rests_on, "who can end the waits up to %d, and there %s",
		       (int)below->pid, prb_str_text(&found->rests_on));
	prb_str_puts(&f->wrong_if, prb_str_text(&found->wrong_if));
	prb_str_puts(&f->wrong_if, below->chain ? "; or a signal ends one of the processes"
						: "; or the other processes do its work");
	prb_str_printf(&f->next, "probing -t %d dump --locals", (int)below->pid);
	return NULL;
}

static struct prb_error *follow(const struct prb_rule *rule, struct prb_case *c,
				struct prb_glances *glances, size_t thread,
				struct prb_findings *ret)
{
	prb_auto_peers struct prb_peers peers = {};
	prb_auto_chain struct prb_chain chain = {};
	prb_auto_findings struct prb_findings findings = {};
	struct prb_finding *found;
	struct prb_peer_thread last;
	bool alone;
	double began = prb_clock_seconds();
	size_t place;

	PRB_TRY(prb_peers_add(&peers, c->pid, &place));
	/* It has been read anew: a thread may have come or gone. */
	if (!peers.list.count || !peers.list.items[0].dump ||
	    thread >= peers.list.items[0].dump->threads.count ||
	    peers.list.items[0].dump->threads.items[thread].tid !=
		    c->dump->threads.items[thread].tid)
		return NULL;
	PRB_TRY(prb_chain_follow(&peers, c->pid, thread, &chain));
	last = chain.list.items[chain.list.count - 1];
	if (chain.unread || !last.peer || !prb_chain_lasts(&peers, &chain, &alone))
		return NULL;
	PRB_TRY(prb_peers_note_idle(&peers));
	PRB_TRY(judge_peer(c, glances, &peers.list.items[last.peer], began, &findings));
	found = find_about(&findings, prb_peer_thread(&peers, last)->tid);
	if (!found)
		return NULL;
	found->proof = found->proof && alone;
	return tell(rule, c,
		    &(const struct below){.thread = prb_peer_thread(&peers, chain.list.items[0]),
					  .peers = &peers,
					  .chain = &chain,
					  .pid = peers.list.items[last.peer].pid,
					  .found = found},
		    ret);
}

/* Whatever the others do that the thread waits for, this one never goes on. */
static struct prb_error *look_at_one(const struct prb_rule *rule, struct prb_case *c,
				     struct prb_glances *glances,
				     const struct prb_dump_thread *thread, pid_t pid,
				     struct prb_findings *ret)
{
	prb_auto_peers struct prb_peers peers = {};
	prb_auto_findings struct prb_findings findings = {};
	const double began = prb_clock_seconds();
	struct prb_finding *const *each;
	size_t place;

	PRB_TRY(prb_peers_add(&peers, pid, &place));
	if (!peers.list.count || !peers.list.items[0].dump)
		return NULL;
	PRB_TRY(prb_peers_note_idle(&peers));
	PRB_TRY(judge_peer(c, glances, &peers.list.items[0], began, &findings));
	prb_vec_each (each, &findings.list)
		if ((*each)->proof)
			return tell(rule, c,
				    &(const struct below){.thread = thread,
							  .peers = &peers,
							  .pid = pid,
							  .found = *each},
				    ret);
	return NULL;
}

/* Workers of a pool: the thread that waits for all of them waits for whichever comes first. */
static struct prb_error *look_at_several(const struct prb_rule *rule, struct prb_case *c,
					 struct prb_glances *glances,
					 const struct prb_dump_thread *thread,
					 struct prb_findings *ret)
{
	const struct prb_enders *enders = &thread->enders;
	const size_t before = ret->list.count;
	struct prb_glance glance;

	for (unsigned i = 0; i < enders->count && ret->list.count == before; i++) {
		if (enders->count < 2 || !prb_proc_is_ancestor(c->pid, enders->pids[i]))
			continue;
		PRB_TRY(prb_glances_at(glances, enders->pids[i], &glance));
		if (glance.waits)
			PRB_TRY(look_at_one(rule, c, glances, thread, enders->pids[i], ret));
	}
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	prb_auto_glances struct prb_glances own = {};
	struct prb_glances *glances = c->glances ? c->glances : &own;
	size_t before = ret->list.count;

	if (!prb_case_is_here(c))
		return NULL;
	for (size_t i = 0; i < c->dump->threads.count && ret->list.count == before; i++) {
		bool may;

		PRB_TRY(may_be_stuck(c, glances, &c->dump->threads.items[i], &may));
		if (may)
			PRB_TRY(follow(rule, c, glances, i, ret));
		if (may && ret->list.count == before)
			PRB_TRY(look_at_several(rule, c, glances, &c->dump->threads.items[i], ret));
	}
	return NULL;
}

const struct prb_rule prb_rule_child = {
	.rank = 26,
	.name = "child",
	.kind = PRB_FINDING_ORPHAN,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.waits = true,
	.proves = "a thread waits for a process below it, of which `deadlock`, `orphan`, "
		  "`lock_file` or `unknown` is true",
	.find = find,
};
