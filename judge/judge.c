/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/judge.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "judge/facts.h"
#include "judge/threads.h"

/* build/judge/rules.inc is written by build-aux/gen-registry: an X() for each rule. */
#define X(name) extern const struct prb_rule prb_rule_##name;
#include "judge/rules.inc"
#undef X

#define X(name) &prb_rule_##name,
const struct prb_rule *const prb_rules[] = {
#include "judge/rules.inc"
	NULL,
};
#undef X

void prb_case_spent(struct prb_case *c, double began)
{
	c->spent += prb_clock_seconds() - began;
}

static bool is_about(const struct prb_finding *finding, pid_t tid)
{
	const pid_t *at;

	prb_vec_each (at, &finding->tids)
		if (tid && *at == tid)
			return true;
	return false;
}

/*
 * Python runs the handlers of signals in the main thread: one may release a lock, or raise and so
 * end the wait. That is a timeout of pytest, and a soft limit of time of celery.
 */
static void heed_handlers(struct prb_case *c, struct prb_finding *finding)
{
	if (finding->kind != PRB_FINDING_DEADLOCK && finding->kind != PRB_FINDING_ORPHAN)
		return;
	if (!c->dump || !is_about(finding, c->dump->main_tid))
		return;
	/* A core does not tell its handlers. */
	if (prb_case_status(c, "SigCgt") < 0 ? !c->target || !c->target->partial
					     : !prb_case_handles_signals(c))
		return;
	finding->proof = false;
	/* A watchdog's is likely to come. */
	if (prb_case_handles_alarms(c))
		finding->confidence = PRB_MIN(finding->confidence, PRB_CONFIDENCE_MEDIUM);
	prb_str_puts(
		&finding->wrong_if,
		prb_case_status(c, "SigCgt") < 0
			? "; the main thread may have handlers of signals: one may end its wait"
			: "; the main thread has handlers of signals: one may end its wait");
}

struct prb_error *prb_judge_by(const struct prb_rule *rule, struct prb_case *c,
			       struct prb_findings *ret)
{
	size_t before = ret->list.count;

	PRB_TRY(rule->find(rule, c, ret));
	for (size_t i = before; i < ret->list.count; i++)
		heed_handlers(c, ret->list.items[i]);
	return NULL;
}

struct prb_error *prb_judge(struct prb_case *c, unsigned offered, struct prb_findings *ret)
{
	for (const struct prb_rule *const *rule = prb_rules; *rule; rule++) {
		if ((*rule)->needs & ~offered)
			continue;
		if (((*rule)->needs & PRB_RULE_THREADS) && !c->dump)
			continue;
		PRB_TRY(prb_judge_by(*rule, c, ret));
	}
	return NULL;
}

struct prb_error *prb_finding_add(const struct prb_rule *rule, struct prb_findings *findings,
				  struct prb_finding **ret)
{
	struct prb_finding *finding = calloc(1, sizeof(*finding));
	struct prb_finding **place = finding ? prb_vec_push(&findings->list) : NULL;

	if (!place) {
		free(finding);
		return prb_error_nomem();
	}
	finding->rule = rule->name;
	finding->rank = rule->rank;
	finding->kind = rule->kind;
	*place = finding;
	*ret = finding;
	return NULL;
}

static void want_idle(const struct prb_dump *dump, unsigned offered, bool *wanted)
{
	for (size_t i = 0; i < dump->threads.count; i++) {
		const struct prb_dump_thread *thread = &dump->threads.items[i];

		wanted[i] = thread->tid == dump->main_tid || prb_thread_holds_gil(thread) ||
			    prb_thread_waits_for_held_lock(thread) ||
			    ((offered & PRB_RULE_PROC) && (prb_thread_waits_inside(thread) ||
							   prb_thread_waits_outside(thread))) ||
			    prb_thread_is(thread, "uninterruptible");
	}
}

struct prb_error *prb_judge_note_idle(struct prb_idle *idle, struct prb_target *t,
				      struct prb_dump *dump, unsigned offered)
{
	prb_auto_free bool *wanted = calloc(dump->threads.count + 1, sizeof(*wanted));

	if (!wanted)
		return prb_error_nomem();
	want_idle(dump, offered, wanted);
	return prb_idle_note(idle, t, dump, wanted);
}

double prb_judge_read_seconds(const struct prb_target *t, double began)
{
	if (t->live && t->moves)
		return prb_clock_seconds() - began;
	return t->replayed ? -1 : 0; /* a snapshot does not say how long it took */
}
