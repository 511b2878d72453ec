/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signs of trouble whose cause is not proven: what is missing is said, and nothing else. */
#include <string.h>

#include "base/text.h"
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"

enum { MOST_LINES = 8 };

static struct prb_error *begin(const struct prb_rule *rule, struct prb_findings *ret,
			       struct prb_finding **f)
{
	PRB_TRY(prb_finding_add(rule, ret, f));
	(*f)->confidence = PRB_CONFIDENCE_LOW;
	return NULL;
}

static struct prb_error *tell_unreadable(const struct prb_rule *rule, struct prb_case *c,
					 struct prb_findings *ret)
{
	struct prb_finding *f;

	PRB_TRY(begin(rule, ret, &f));
	prb_str_puts(&f->brief, "cannot be read");
	prb_str_puts(&f->sentence, "its threads cannot be read: ");
	prb_text_escape(&f->sentence, c->unreadable ? c->unreadable : "there are none");
	prb_str_puts(&f->rests_on, "files of /proc alone");
	if (c->pid)
		prb_str_printf(&f->next, "probing -t %d doctor", (int)c->pid);
	return NULL;
}

/** Some lock, and nobody is named. */
static bool waits_for_somebody(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	static const char words[] = "futex: waiting for a";

	return prb_thread_waits_inside(thread) && !prb_thread_owner(thread) &&
	       (thread->wants == PRB_WANTS_LOCK || thread->wants == PRB_WANTS_SEMAPHORE ||
		/* There is nobody else to give the signal. */
		(thread->wants == PRB_WANTS_SIGNAL && c->dump->threads.count == 1) ||
		!strncmp(thread->waits_for, words, strlen(words)));
}

static struct prb_error *tell_lock(const struct prb_rule *rule, struct prb_case *c,
				   struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	struct prb_finding *f = NULL;
	unsigned count = 0;

	prb_vec_each (thread, &c->dump->threads) {
		if (!waits_for_somebody(c, thread) ||
		    prb_case_moved(c, thread, prb_limit(PRB_LIMIT_WAIT)))
			continue;
		if (!f)
			PRB_TRY(begin(rule, ret, &f));
		if (count++ < MOST_LINES)
			PRB_TRY(prb_finding_thread(f, c, thread));
	}
	if (!f)
		return NULL;
	prb_str_printf(&f->brief, "%u thread%s for locks of unknown holders", count,
		       count == 1 ? " waits" : "s wait");
	prb_str_printf(&f->sentence,
		       "%u thread%s for a lock or semaphore, and its holder is not known", count,
		       count == 1 ? " waits" : "s wait");
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, "; neither says who holds it");
	prb_str_puts(&f->wrong_if, "the lock is used as a signal, and nothing is wrong");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

/** True if each thread of the process has waited long, and without a limit, for another one. */
static bool all_wait_inside(struct prb_case *c)
{
	const struct prb_dump_thread *thread;

	if (!c->dump->threads.count ||
	    prb_case_status(c, "Threads") != (int64_t)c->dump->threads.count)
		return false;
	prb_vec_each (thread, &c->dump->threads)
		if (!prb_thread_waits_inside(thread) ||
		    prb_case_idle(c, thread) < prb_limit(PRB_LIMIT_LONG))
			return false;
	prb_vec_each (thread, &c->dump->threads) {
		struct prb_futex_call call = prb_case_futex_call(c, thread);

		if (!call.endless || !call.own)
			return false;
	}
	return true;
}

static struct prb_error *tell_all(const struct prb_rule *rule, struct prb_case *c,
				  struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	struct prb_finding *f;

	if (!all_wait_inside(c) || prb_case_handles_signals(c))
		return NULL;
	PRB_TRY(begin(rule, ret, &f));
	prb_str_puts(&f->brief, "all threads wait for each other");
	if (c->dump->threads.count == 1)
		prb_str_puts(&f->sentence, "its only thread waits for another thread, and there "
					   "is none");
	else
		prb_str_printf(&f->sentence,
			       "all %zu threads wait for another thread of the process, and which "
			       "one is to wake which is not known",
			       c->dump->threads.count);
	prb_vec_each (thread, &c->dump->threads)
		if (f->evidence.count < MOST_LINES)
			PRB_TRY(prb_finding_thread(f, c, thread));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, ": no thread waits for anything outside of the process, or has "
				   "a limit of time");
	prb_str_puts(&f->wrong_if, "the program is to sleep until it is killed");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static struct prb_error *tell_errors(const struct prb_rule *rule, struct prb_case *c,
				     struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	struct prb_finding *f = NULL;
	struct prb_str *line;
	unsigned count = 0;

	prb_vec_each (thread, &c->dump->threads) {
		if (!thread->error || thread->ended)
			continue;
		if (!f)
			PRB_TRY(begin(rule, ret, &f));
		if (count++ >= MOST_LINES)
			continue;
		PRB_TRY(prb_finding_line(f, thread->tid, &line));
		prb_case_put_thread(line, thread);
		prb_str_puts(line, ": ");
		prb_text_escape(line, thread->error);
		PRB_TRY(prb_finding_tid(f, thread->tid));
	}
	if (!f)
		return NULL;
	prb_str_printf(&f->brief, "%u stack%s cannot be read", count, count == 1 ? "" : "s");
	prb_str_printf(&f->sentence, "the stack%s of %u of %zu threads cannot be read",
		       count == 1 ? "" : "s", count, c->dump->threads.count);
	prb_case_put_reading(&f->rests_on, c);
	prb_case_put_command(&f->next, c, "doctor");
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	if (prb_findings_explain(ret))
		return NULL;
	for (size_t i = 0; i < ret->list.count; i++)
		if (ret->list.items[i]->kind == PRB_FINDING_STILL ||
		    ret->list.items[i]->kind == PRB_FINDING_UNKNOWN)
			return NULL;
	if (!c->dump || !c->dump->threads.count)
		return tell_unreadable(rule, c, ret);
	size_t before = ret->list.count;

	PRB_TRY(tell_lock(rule, c, ret));
	if (ret->list.count == before)
		PRB_TRY(tell_all(rule, c, ret));
	return ret->list.count > before ? NULL : tell_errors(rule, c, ret);
}

const struct prb_rule prb_rule_unknown = {
	.rank = 900,
	.name = "unknown",
	.kind = PRB_FINDING_UNKNOWN,
	.needs = PRB_RULE_PROC,
	.proves = "a sign of trouble without a proven cause",
	.find = find,
};
