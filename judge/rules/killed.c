/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a core file or a crash record says of the process's end. */
#include <signal.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/judge.h"
#include "judge/threads.h"
#include "target/proc/signal_text.h"

/** Signals of a program's own faults; others may come from the tool that made the core. */
static bool is_fatal(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGFPE ||
	       number == SIGILL || number == SIGSYS;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_death *death = &c->dump->death;
	const struct prb_dump_thread *thread = prb_case_thread(c, death->tid);
	struct prb_finding *f;

	if (!is_fatal(death->signal) && !*death->exception)
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_HIGH;
	prb_str_puts(&f->brief, "the process has ended: ");
	if (*death->exception) {
		prb_str_puts(&f->brief, "not caught: ");
		prb_text_escape(&f->brief, death->exception);
	} else {
		prb_str_puts(&f->brief, "killed by ");
		prb_put_signal(&f->brief, death->signal);
	}
	prb_str_puts(&f->sentence, prb_str_text(&f->brief));
	if (death->why)
		prb_str_printf(&f->sentence, " (%s)", death->why);
	if (thread) {
		prb_str_puts(&f->sentence, ", in thread ");
		prb_case_put_thread(&f->sentence, thread);
		prb_str_puts(&f->sentence, " in ");
		if (!prb_case_put_place(&f->sentence, thread))
			prb_str_puts(&f->sentence, "C");
		PRB_TRY(prb_finding_thread(f, c, thread));
	}
	prb_str_puts(&f->rests_on, "the file, and ");
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->wrong_if, "the file is of another process");
	prb_case_put_command(&f->next, c, "dump --native --locals");
	return NULL;
}

const struct prb_rule prb_rule_killed = {
	.rank = 5,
	.name = "killed",
	.kind = PRB_FINDING_ENDED,
	.needs = PRB_RULE_THREADS,
	.proves = "a core file's process was killed by a signal or an exception",
	.find = find,
};
