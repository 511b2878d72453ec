/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One function of the program holds the GIL nearly all the time, and other threads want it. Only a
 * caller that looks often can know that. `slow` tells of one call that does not return.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/facts.h"
#include "judge/gil.h"
#include "judge/limits.h"
#include "judge/threads.h"

/* Of fewer looks the share would be a guess. */
enum { LEAST_LOOKS = 16, MOST_LINES = 8 };

/* "`spin` hog.py": without its marks, and the file. */
static void put_name(struct prb_str *s, const char *place)
{
	prb_str_append(s, place + 1, strcspn(place + 1, "`"));
}

static struct prb_error *add_waiters(const struct prb_case *c, struct prb_finding *f)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &c->dump->threads)
		if (prb_thread_waits_for_gil(thread) && f->evidence.count < MOST_LINES)
			PRB_TRY(prb_finding_thread(f, c, thread));
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_gil_share share =
		prb_case_gil_share(c, prb_limit(PRB_LIMIT_GIL_HELD) / 100);
	unsigned percent = share.looks ? 100 * share.held / share.looks : 0;
	struct prb_finding *f;
	bool overloaded;

	if (!share.place || share.looks < LEAST_LOOKS ||
	    share.seconds < prb_limit(PRB_LIMIT_GIL_FOR))
		return NULL;
	overloaded = prb_case_is_here(c) && prb_machine_is_overloaded();
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = overloaded ? PRB_CONFIDENCE_LOW : PRB_CONFIDENCE_MEDIUM;
	f->lasted = share.seconds;
	prb_str_printf(&f->brief, "GIL held %u %% by ", percent);
	put_name(&f->brief, share.place);
	prb_str_printf(&f->sentence,
		       "the GIL is held %u %% of the time by %s, and others wait for it", percent,
		       share.place);
	PRB_TRY(prb_finding_tid(f, share.tid));
	PRB_TRY(add_waiters(c, f));
	prb_str_printf(&f->rests_on, "%u looks in ", share.looks);
	prb_text_duration(&f->rests_on, share.seconds);
	prb_str_printf(&f->rests_on,
		       ": in %u the function, or one that it called, held the GIL while another "
		       "thread waited for it",
		       share.held);
	prb_str_puts(&f->wrong_if, "the threads that wait have nothing urgent to do");
	if (overloaded) {
		prb_str_puts(&f->wrong_if, ", or the holder only waits for a processor: ");
		prb_machine_put_load(&f->wrong_if);
	}
	prb_case_put_command(&f->next, c, "perf --mode gil");
	return NULL;
}

const struct prb_rule prb_rule_gil_held = {
	.rank = 55,
	.name = "gil_held",
	.kind = PRB_FINDING_GIL,
	.needs = PRB_RULE_THREADS,
	.proves = "one function holds the GIL most of the time, and other threads want it",
	.find = find,
};
