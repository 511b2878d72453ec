/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that wait for a lock whose holder is named, and that are in no deadlock. */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/judge.h"
#include "judge/limits.h"
#include "judge/threads.h"

enum { MOST_LINES = 8 };

static bool has_deadlock(const struct prb_findings *findings)
{
	struct prb_finding **finding;

	prb_vec_each (finding, &findings->list)
		if ((*finding)->kind == PRB_FINDING_DEADLOCK)
			return true;
	return false;
}

static bool is_waiter(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	return prb_thread_waits_for_held_lock(thread) &&
	       !prb_case_moved(c, thread, prb_limit(PRB_LIMIT_WAIT));
}

static unsigned waiters_for(const struct prb_case *c, pid_t owner)
{
	const struct prb_dump_thread *thread;
	unsigned count = 0;

	prb_vec_each (thread, &c->dump->threads)
		count += is_waiter(c, thread) && prb_thread_owner(thread) == owner;
	return count;
}

/** The thread for which most others wait, and how many; NULL if no holder is a thread. */
static const struct prb_dump_thread *worst_holder(const struct prb_case *c, unsigned *ret_count)
{
	const struct prb_dump_thread *thread, *worst = NULL;

	*ret_count = 0;
	prb_vec_each (thread, &c->dump->threads) {
		pid_t owner = is_waiter(c, thread) ? prb_thread_owner(thread) : 0;
		const struct prb_dump_thread *holder = prb_case_thread(c, owner);
		unsigned count = holder && holder != worst ? waiters_for(c, owner) : 0;

		if (count > *ret_count) {
			worst = holder;
			*ret_count = count;
		}
	}
	return worst;
}

/** The first of the threads, if all wait for file locks of other processes; else NULL. */
static const struct prb_dump_thread *waits_for_others(const struct prb_case *c)
{
	const struct prb_dump_thread *thread, *first = NULL;

	prb_vec_each (thread, &c->dump->threads) {
		const struct prb_enders *enders = &thread->enders;

		if (!is_waiter(c, thread))
			continue;
		if (!enders->kind || strcmp(enders->kind, "file lock") != 0 || !enders->count ||
		    enders->pids[0] == c->dump->pid)
			return NULL;
		first = first ? first : thread;
	}
	return first;
}

/** That a standby waits until it may take over is its purpose. */
static void tell_others(struct prb_finding *f, const struct prb_dump_thread *first)
{
	f->confidence = PRB_CONFIDENCE_LOW;
	prb_str_puts(&f->sentence, ": ");
	prb_text_escape(&f->sentence, first->waits_for);
	prb_str_puts(&f->wrong_if, "it is to wait until the holder ends, as a standby does");
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c, unsigned waiters,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread, *holder, *others = waits_for_others(c);
	struct prb_finding *f;
	unsigned of_one, lines = 0;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "%u thread%s for locks", waiters,
		       waiters == 1 ? " waits" : "s wait");
	prb_str_puts(&f->sentence, prb_str_text(&f->brief));
	holder = worst_holder(c, &of_one);
	if (holder) {
		if (of_one < waiters)
			prb_str_printf(&f->sentence, ", %u of them", of_one);
		prb_str_printf(&f->sentence, "%s by ",
			       of_one < waiters ? " for one held"
			       : waiters == 1	? " that are held"
						: " held");
		prb_case_put_thread(&f->sentence, holder);
		prb_str_puts(&f->sentence, ", which is ");
		prb_case_put_doing(&f->sentence, c, holder);
		PRB_TRY(prb_finding_thread(f, c, holder));
	}
	prb_vec_each (thread, &c->dump->threads)
		if (is_waiter(c, thread) && thread != holder && lines++ < MOST_LINES)
			PRB_TRY(prb_finding_thread(f, c, thread));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, ", and the owners of their locks");
	if (others)
		tell_others(f, others);
	else
		prb_str_puts(&f->wrong_if, "the holder releases the lock in a moment: look again");
	prb_case_put_command(&f->next, c, "dump");
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	unsigned waiters = 0;
	bool is_long = false;

	if (has_deadlock(ret))
		return NULL;
	prb_vec_each (thread, &c->dump->threads) {
		if (!is_waiter(c, thread))
			continue;
		waiters++;
		is_long = is_long || prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_LONG);
	}
	return waiters >= prb_limit(PRB_LIMIT_WAITERS) || is_long ? tell(rule, c, waiters, ret)
								  : NULL;
}

const struct prb_rule prb_rule_locks = {
	.rank = 30,
	.name = "locks",
	.kind = PRB_FINDING_LOCKS,
	.needs = PRB_RULE_THREADS,
	.proves = "two threads, or one for 10 s, wait for held locks",
	.find = find,
};
