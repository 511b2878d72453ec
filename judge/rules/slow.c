/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Why a process that runs is slow: a thread is ready to run and has no processor, or one call holds
 * the GIL while others wait for it. What a control group takes away is told by `throttled`.
 */
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/look.h"
#include "judge/threads.h"

enum { LEAST_LOOKS = 4 };

static const double LEAST_SECONDS = 0.2;

static struct prb_error *tell_gil(const struct prb_rule *rule, struct prb_case *c,
				  const struct prb_look *look, struct prb_findings *ret)
{
	const struct prb_dump_thread *holder = prb_case_thread(c, look->holder), *thread;
	struct prb_finding *f;

	if (!holder || look->looks < LEAST_LOOKS || look->seconds < LEAST_SECONDS ||
	    2 * look->waited < look->looks || prb_findings_have(ret, "gil_waiters") ||
	    prb_findings_have(ret, "gil_held") || prb_findings_have(ret, "loop"))
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->kind = PRB_FINDING_GIL;
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "one call holds the GIL");
	prb_str_puts(&f->sentence, "thread ");
	prb_case_put_thread(&f->sentence, holder);
	prb_str_puts(&f->sentence, " has held the GIL for ");
	prb_text_duration(&f->sentence, look->seconds);
	prb_str_puts(&f->sentence, " in one call, in ");
	prb_case_put_place(&f->sentence, holder);
	if (look->holder_in) {
		prb_str_puts(&f->sentence, " (");
		prb_text_escape(&f->sentence, look->holder_in);
		prb_str_putc(&f->sentence, ')');
	}
	prb_str_printf(&f->sentence, "; %u thread%s for it", look->most_waiters,
		       look->most_waiters == 1 ? " waits" : "s wait");
	PRB_TRY(prb_finding_thread(f, c, holder));
	prb_vec_each (thread, &c->dump->threads)
		if (prb_thread_waits_for_gil(thread) && f->evidence.count < 8)
			PRB_TRY(prb_finding_thread(f, c, thread));
	prb_str_printf(&f->rests_on, "%u looks in ", look->looks);
	prb_text_duration(&f->rests_on, look->seconds);
	prb_str_puts(&f->rests_on, ": the holder was at the same instruction in all, and "
				   "no other thread has had the GIL");
	prb_str_puts(&f->wrong_if, "the call returns in a moment: look again");
	prb_case_put_command(&f->next, c, "perf --mode gil");
	return NULL;
}

/* The thread that has waited longest for a processor, all its time counted. */
static const struct prb_look_thread *find_ready(const struct prb_look *look)
{
	const struct prb_look_thread *worst = NULL;

	for (size_t i = 0; i < look->count; i++) {
		const struct prb_look_thread *t = &look->threads[i];

		if (t->waited * 100 >= prb_limit(PRB_LIMIT_READY) * look->seconds &&
		    (!worst || t->waited > worst->waited))
			worst = t;
	}
	return worst;
}

static struct prb_error *tell_ready(const struct prb_rule *rule, struct prb_case *c,
				    const struct prb_look *look, struct prb_findings *ret)
{
	const struct prb_look_thread *ready = find_ready(look);
	const struct prb_dump_thread *thread = ready ? prb_case_thread(c, ready->tid) : NULL;
	struct prb_finding *f;
	struct prb_str *line;
	bool overloaded;

	if (!thread || look->seconds < LEAST_SECONDS || prb_findings_have(ret, "throttled"))
		return NULL;
	overloaded = prb_machine_is_overloaded();
	PRB_TRY(prb_finding_add(rule, ret, &f));
	/* In a moment that may be over. */
	f->confidence = overloaded ? PRB_CONFIDENCE_LOW : PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "waits for a processor");
	prb_str_puts(&f->sentence, "thread ");
	prb_case_put_thread(&f->sentence, thread);
	prb_str_puts(&f->sentence, " wants to run and waits for a processor: ");
	prb_text_duration(&f->sentence, ready->waited);
	prb_str_puts(&f->sentence, " of the last ");
	prb_text_duration(&f->sentence, look->seconds);
	if (overloaded) {
		prb_str_puts(&f->sentence, "; ");
		prb_machine_put_load(&f->sentence);
	}
	PRB_TRY(prb_finding_line(f, thread->tid, &line));
	prb_case_put_thread(line, thread);
	prb_str_puts(line, " had one for ");
	prb_text_duration(line, ready->ran);
	prb_str_puts(line, ", in ");
	if (!prb_case_put_place(line, thread))
		prb_str_puts(line, "native code");
	PRB_TRY(prb_finding_tid(f, thread->tid));
	prb_str_puts(&f->rests_on, "two readings of schedstat of the threads that ran");
	prb_str_puts(&f->wrong_if, "other programs of the machine are busy for this moment only");
	prb_case_put_command(&f->next, c, "perf --mode runqueue");
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_look *look;

	PRB_TRY(prb_case_look(c, &look));
	if (look->holder)
		PRB_TRY(tell_gil(rule, c, look, ret));
	return tell_ready(rule, c, look, ret);
}

const struct prb_rule prb_rule_slow = {
	.rank = 105,
	.name = "slow",
	.kind = PRB_FINDING_PROCESSOR,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.proves = "a thread waits for a processor, or others for a call that holds the GIL",
	.find = find,
};
