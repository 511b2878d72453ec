/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The results of a multiprocessing.Pool are collected by one thread of it. If a callback of the
 * program raises there, the thread ends; if it waits for another result, nobody collects that one.
 * In both cases, the threads that wait for the pool wait for ever.
 */
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/judge.h"
#include "judge/limits.h"
#include "judge/threads.h"

static const char POOL[] = "/multiprocessing/pool.py";

struct pools {
	unsigned keepers, collectors; /* threads that look after workers, and after results */
	const struct prb_dump_thread *collector, *waiter;
	bool all; /* all stacks are known */
};

/* It waits for a result, or for the end of the pool, without a limit. */
static bool waits_for_pool(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	return (prb_thread_frame(thread, "wait", POOL) || prb_thread_frame(thread, "join", POOL)) &&
	       prb_thread_waits_inside(thread) &&
	       prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_LONG) &&
	       prb_case_waits_without_limit(c, thread);
}

static void count(struct prb_case *c, struct pools *ret)
{
	const struct prb_dump_thread *thread;

	*ret = (struct pools){.all = prb_case_status(c, "Threads") ==
				     (int64_t)c->dump->threads.count};
	prb_vec_each (thread, &c->dump->threads) {
		ret->all = ret->all && !thread->error;
		if (prb_thread_frame(thread, "_handle_workers", POOL))
			ret->keepers++;
		if (prb_thread_frame(thread, "_handle_results", POOL)) {
			ret->collectors++;
			if (waits_for_pool(c, thread))
				ret->collector = thread;
		} else if (!ret->waiter && waits_for_pool(c, thread)) {
			ret->waiter = thread;
		}
	}
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct pools *pools, struct prb_findings *ret)
{
	const struct prb_dump_thread *about = pools->collector ? pools->collector : pools->waiter;
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->lasted = prb_case_idle(c, about);
	if (pools->collector) {
		f->confidence = PRB_CONFIDENCE_HIGH;
		prb_str_puts(&f->brief, "a pool waits for itself");
		prb_str_puts(&f->sentence, "the thread that collects the results of a pool waits "
					   "for one of them, in a callback: ");
	} else {
		f->kind = PRB_FINDING_ORPHAN;
		f->confidence = PRB_CONFIDENCE_MEDIUM;
		prb_str_puts(&f->brief, "nobody collects a pool's results");
		prb_str_puts(&f->sentence, "a pool is waited for whose results nobody collects: "
					   "the thread that did has ended, mostly by an exception "
					   "of a callback: ");
	}
	prb_case_put_thread(&f->sentence, about);
	prb_str_puts(&f->sentence, " in ");
	prb_case_put_place(&f->sentence, about);
	PRB_TRY(prb_finding_thread(f, c, about));
	if (pools->collector && pools->waiter)
		PRB_TRY(prb_finding_thread(f, c, pools->waiter));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->wrong_if, pools->collector ? "a signal handler ends the wait"
						    : "the pool is ending: look again");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	struct pools pools;

	count(c, &pools);
	/* A result of another pool may come. */
	if (pools.collector && (pools.collectors > 1 || pools.keepers > 1))
		pools.collector = NULL;
	if (pools.collector)
		return tell(rule, c, &pools, ret);
	return pools.waiter && pools.all && pools.keepers && !pools.collectors
		       ? tell(rule, c, &pools, ret)
		       : NULL;
}

const struct prb_rule prb_rule_results = {
	.rank = 23,
	.name = "results",
	.kind = PRB_FINDING_DEADLOCK,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.proves = "who collects the results of a pool has ended, or waits for one of them",
	.find = find,
};
