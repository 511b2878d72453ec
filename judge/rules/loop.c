/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread computes in a loop that cannot change anything but the local variables of its function,
 * and these have been the same at all looks. Only another thread, or a signal, ends that.
 */
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/limits.h"
#include "judge/look.h"
#include "judge/threads.h"
#include "python/runtime/loops.h"

enum { LEAST_LOOKS = 6 };

/* Less is no time in which a variable has to change. */
static const double LEAST_RAN = 0.005;

/* True if the bytecode shows that nothing else can change. */
static struct prb_error *is_closed(const struct prb_case *c, const struct prb_look *look,
				   const struct prb_look_thread *t, bool *ret)
{
	const struct prb_pythons *pythons = &look->found.pythons;
	struct prb_py_loop loop = {};

	*ret = false;
	if (pythons->list.count != 1)
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_python_loop(pythons->list.items[0], c->target->mem, t->code,
						   t->first, t->last, &loop),
				   NULL));
	*ret = loop.closed;
	return NULL;
}

static void put_lines(struct prb_str *s, const struct prb_look_thread *t)
{
	if (t->first_line == t->last_line)
		prb_str_printf(s, "line %d", (int)t->first_line);
	else
		prb_str_printf(s, "lines %d to %d", (int)t->first_line, (int)t->last_line);
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct prb_look *look, const struct prb_look_thread *t,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread = prb_case_thread(c, t->tid);
	struct prb_finding *f;
	struct prb_str *line;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	f->lasted = look->seconds;
	prb_str_puts(&f->brief, "computes in a loop without a change");
	prb_str_puts(&f->sentence, "thread ");
	prb_case_put_thread(&f->sentence, thread);
	prb_str_puts(&f->sentence, " computes in the same loop, and nothing changes in it: in ");
	prb_case_put_place(&f->sentence, thread);
	PRB_TRY(prb_finding_line(f, t->tid, &line));
	prb_str_printf(line, "%u looks in ", t->looks);
	prb_text_duration(line, look->seconds);
	prb_str_puts(line, ": always in ");
	put_lines(line, t);
	if (t->variables)
		prb_str_printf(line, ", with the same values in its %zu variable%s", t->variables,
			       t->variables == 1 ? "" : "s");
	PRB_TRY(prb_finding_line(f, t->tid, &line));
	prb_str_puts(line, "it had a processor for ");
	prb_text_duration(line, t->ran);
	prb_str_puts(line, " of that time");
	PRB_TRY(prb_finding_tid(f, t->tid));
	prb_str_puts(&f->rests_on, "its stack and variables at these looks, and the bytecode of "
				   "the loop, which stores into local variables alone and calls "
				   "nothing");
	prb_str_puts(
		&f->wrong_if,
		"another thread, a process that shares memory, or a signal is to end the loop: a "
		"wait that costs a processor");
	prb_case_put_command(&f->next, c, "dump --locals --source");
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_look *look;

	PRB_TRY(prb_case_look(c, &look));
	for (size_t i = 0; i < look->count; i++) {
		const struct prb_look_thread *t = &look->threads[i];
		bool closed;

		if (!t->same || t->in_library || t->looks < LEAST_LOOKS || t->ran < LEAST_RAN ||
		    !prb_case_thread(c, t->tid))
			continue;
		PRB_TRY(is_closed(c, look, t, &closed));
		if (closed)
			PRB_TRY(tell(rule, c, look, t, ret));
	}
	return NULL;
}

const struct prb_rule prb_rule_loop = {
	.rank = 65,
	.name = "loop",
	.kind = PRB_FINDING_LOOP,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.proves = "a thread computes in a loop, and none of its variables changes",
	.find = find,
};
