/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that wait for each other: for the owners of their locks, or for ends of threads. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "judge/facts.h"
#include "judge/judge.h"
#include "judge/threads.h"

enum { MOST_NAMED = 6 }; /* threads in the sentence */
/* Longer than a reading takes, and than the kernel's record of sleeping threads is late. */
static const double SURELY = 1;

struct cycle {
	const struct prb_dump_thread *first;
	unsigned length;
	bool at_once; /* all are known to have slept while they were read */
	bool proof;
	bool limited; /* one of the waits ends after some time */
};

static const struct prb_dump_thread *next(const struct prb_case *c,
					  const struct prb_dump_thread *thread)
{
	return prb_case_thread(c, prb_thread_awaited(thread));
}

/** True if the thread has slept since an earlier look; it is noted for the next one. */
static struct prb_error *slept_on(struct prb_case *c, pid_t tid, int64_t switches, bool *ret)
{
	struct prb_case_sleeper *sleeper;

	*ret = false;
	prb_vec_each (sleeper, &c->sleepers)
		if (sleeper->tid == tid) {
			*ret = sleeper->switches == switches;
			sleeper->switches = switches;
			return NULL;
		}
	sleeper = prb_vec_push(&c->sleepers);
	if (!sleeper)
		return prb_error_nomem();
	*sleeper = (struct prb_case_sleeper){tid, switches};
	return NULL;
}

/**
 * False if a thread may have run while the threads were read: then the circle may be made of
 * waits of different times.
 */
static struct prb_error *has_slept(struct prb_case *c, const struct prb_dump_thread *thread,
				   struct cycle *cycle, bool *ret)
{
	int64_t switches;

	*ret = true;
	if (c->read_seconds == 0)
		return NULL;
	switches = c->read_seconds < 0 ? -1 : prb_case_switches(c, thread->tid);
	if (switches >= 0)
		return slept_on(c, thread->tid, switches, ret);
	*ret = switches == -1;
	cycle->at_once =
		cycle->at_once && thread->idle_seconds >= PRB_MAX(c->read_seconds, 0) + SURELY;
	return NULL;
}

/** Sets *ret to false if the circle is not certain: another look may tell. */
static struct prb_error *measure(struct prb_case *c, struct cycle *cycle, bool *ret)
{
	const struct prb_dump_thread *at = cycle->first, *start = cycle->first;

	cycle->at_once = cycle->proof = *ret = true;
	cycle->length = 0;
	do {
		bool slept;

		PRB_TRY(has_slept(c, at, cycle, &slept));
		*ret = *ret && slept;
		if (!prb_thread_awaits_alone(at) || !prb_case_waits_without_limit(c, at))
			cycle->proof = false;
		cycle->limited = cycle->limited || prb_case_futex_call(c, at).limited;
		if (at->tid < cycle->first->tid)
			cycle->first = at;
		cycle->length++;
		at = next(c, at);
	} while (at != start);
	cycle->proof = cycle->proof && cycle->at_once;
	return NULL;
}

static void put_tids(struct prb_str *s, const struct prb_case *c, const struct cycle *cycle)
{
	const struct prb_dump_thread *at = cycle->first;

	for (unsigned n = 0; n < PRB_MIN(cycle->length, MOST_NAMED); n++, at = next(c, at))
		prb_str_printf(s, "%s%d",
			       !n			? ""
			       : n + 1 == cycle->length ? " and "
							: ", ",
			       (int)at->tid);
	if (cycle->length > MOST_NAMED)
		prb_str_printf(s, " and %u more", cycle->length - MOST_NAMED);
}

static void put_sentence(struct prb_str *s, const struct prb_case *c, const struct cycle *cycle)
{
	const struct prb_dump_thread *at = cycle->first;

	if (cycle->length == 1) {
		prb_str_puts(s, "thread ");
		prb_case_put_thread(s, at);
		prb_str_puts(s, " waits for a lock that it holds itself, in ");
		prb_case_put_place(s, at);
		return;
	}
	prb_str_puts(s, "threads ");
	put_tids(s, c, cycle);
	prb_str_puts(s, cycle->length == 2 ? " wait for each other: "
					   : " wait for each other in a circle: ");
	for (unsigned n = 0; n < PRB_MIN(cycle->length, MOST_NAMED); n++, at = next(c, at)) {
		prb_str_puts(s, n ? ", " : "");
		prb_case_put_thread(s, at);
		prb_str_puts(s, " in ");
		prb_case_put_place(s, at);
	}
}

/** The threads outside of the circle that wait for one in it, by whatever way. */
static struct prb_error *tell_victims(const struct prb_case *c, const struct cycle *cycle,
				      const size_t *walks, struct prb_finding *finding)
{
	prb_auto_str struct prb_str tids = {};
	const struct prb_dump_thread *threads = c->dump->threads.items, *at = cycle->first;
	struct prb_str *line;
	unsigned count = 0;

	for (size_t i = 0; i < c->dump->threads.count; i++) {
		if (walks[i] != walks[cycle->first - threads] || !prb_thread_awaited(&threads[i]))
			continue;
		bool inside = false;
		for (unsigned n = 0; n < cycle->length; n++, at = next(c, at))
			inside = inside || at == &threads[i];
		if (!inside)
			prb_str_printf(&tids, "%s%d", count++ ? ", " : "", (int)threads[i].tid);
	}
	if (!count)
		return NULL;
	PRB_TRY(prb_finding_line(finding, 0, &line));
	prb_str_printf(line, "%u more thread%s for them: %s", count,
		       count == 1 ? " waits" : "s wait", prb_str_text(&tids));
	return NULL;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct cycle *cycle, const size_t *walks,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *at = cycle->first;
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence =
		cycle->at_once && !cycle->limited ? PRB_CONFIDENCE_HIGH : PRB_CONFIDENCE_MEDIUM;
	f->proof = cycle->proof;
	prb_str_printf(&f->brief, "deadlock of %u thread%s", cycle->length,
		       cycle->length == 1 ? "" : "s");
	put_sentence(&f->sentence, c, cycle);
	if (cycle->limited)
		prb_str_puts(&f->sentence, "; but a wait has a limit of time, and ends by itself");
	for (unsigned n = 0; n < cycle->length; n++, at = next(c, at))
		PRB_TRY(prb_finding_thread(f, c, at));
	PRB_TRY(tell_victims(c, cycle, walks, f));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on, ", and the owners of their locks");
	prb_str_puts(&f->wrong_if,
		     cycle->proof ? "a signal handler or a debugger breaks one of the waits"
		     : cycle->limited
			     ? "the wait with a limit of time has ended by now"
			     : "one of the waits has a limit of time, or a thread outside of "
			       "the circle releases one of the locks");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

/** Walks from each thread to its lock's owner; a walk that meets itself has found a circle. */
static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *threads = c->dump->threads.items;
	prb_auto_free size_t *walks = calloc(c->dump->threads.count + 1, sizeof(*walks));
	PRB_VEC(struct cycle) cycles = {};
	struct prb_error *err = walks ? NULL : prb_error_nomem();

	for (size_t i = 0; i < c->dump->threads.count && !err; i++) {
		const struct prb_dump_thread *at = &threads[i];
		struct cycle *place;
		size_t met = 0;

		for (; at && !walks[at - threads]; at = next(c, at))
			walks[at - threads] = i + 1;
		met = at ? walks[at - threads] : 0;
		if (met == i + 1) {
			place = prb_vec_push(&cycles);
			if (place)
				place->first = at;
			else
				err = prb_error_nomem();
		} else if (met) { /* these wait for what an earlier walk found */
			for (at = &threads[i]; walks[at - threads] == i + 1; at = next(c, at))
				walks[at - threads] = met;
		}
	}
	for (size_t i = 0; i < cycles.count && !err; i++) {
		bool certain = false;

		err = measure(c, &cycles.items[i], &certain);
		c->again = c->again || !certain;
		if (!err && certain)
			err = tell(rule, c, &cycles.items[i], walks, ret);
	}
	prb_vec_free(&cycles);
	return err;
}

const struct prb_rule prb_rule_deadlock = {
	.rank = 20,
	.name = "deadlock",
	.kind = PRB_FINDING_DEADLOCK,
	.needs = PRB_RULE_THREADS,
	.proves = "threads wait for each other's locks",
	.find = find,
};
