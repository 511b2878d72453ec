/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread reads the output of a child that has ended: another process, mostly one that the child
 * has started, keeps the pipe open, so that its end never comes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/inspect.h"
#include "judge/blamed.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"
#include "target/proc/process.h"

static const char FUNCTION[] = "communicate";

static bool communicates(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	return enders->kind && !strcmp(enders->kind, "pipe") && enders->endless && enders->count &&
	       prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_LONG) &&
	       prb_thread_frame(thread, FUNCTION, "/subprocess.py");
}

/* The child whose output the thread reads, as its object says; 0: not known. */
static struct prb_error *child_of(const struct prb_case *c, pid_t tid, pid_t *ret)
{
	const struct prb_inspect_place place = {.tid = tid, .function = FUNCTION};
	const struct prb_repr_options options = {};
	struct prb_inspected pid = {};
	struct prb_error *err = prb_inspect(c->target, &place, "self.pid", &options, &pid);
	int64_t number = 0;

	*ret = 0;
	if (!err && !strcmp(prb_str_text(&pid.type), "int"))
		number = strtoll(prb_str_text(&pid.value), NULL, 10);
	if (number > 0 && number <= INT32_MAX)
		*ret = (pid_t)number;
	prb_inspected_deinit(&pid);
	return prb_error_tolerate(err, NULL);
}

static bool can_end(const struct prb_enders *enders, pid_t pid)
{
	for (unsigned i = 0; i < enders->count; i++)
		if (enders->pids[i] == pid)
			return true;
	return false;
}

/*
 * *ret: the first other process that has the pipe open; 0 if there is none, or if the
 * target itself or the child has it, too: of a full list that is not known.
 */
static struct prb_error *find_holder(const struct prb_case *c, const struct prb_dump_thread *thread,
				     pid_t child, pid_t *ret)
{
	const struct prb_enders *enders = &thread->enders;

	*ret = 0;
	if (enders->count >= PRB_MOST_ENDERS || can_end(enders, c->pid) || can_end(enders, child))
		return NULL;
	for (unsigned i = 0; i < enders->count && !*ret; i++) {
		struct prb_process process = {};
		bool failed = false;

		PRB_TRY(prb_error_tolerate(prb_process_describe(enders->pids[i], &process),
					   &failed));
		if (!failed && process.state != 'Z')
			*ret = enders->pids[i];
		prb_process_deinit(&process);
	}
	return NULL;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct prb_dump_thread *thread, pid_t child, pid_t holder,
			      struct prb_findings *ret)
{
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	/* A process can pass its pipe to another user's process in order to have that one blamed.
	 */
	f->confidence = prb_case_is_of_user(c, holder) ? PRB_CONFIDENCE_MEDIUM : PRB_CONFIDENCE_LOW;
	f->lasted = prb_case_idle(c, thread);
	prb_str_puts(&f->brief, "waits for a pipe of an ended child");
	prb_str_puts(&f->sentence, "thread ");
	prb_case_put_thread(&f->sentence, thread);
	prb_str_printf(&f->sentence, " waits for a pipe of its child %d, which has ended: process ",
		       (int)child);
	prb_put_process(&f->sentence, holder);
	prb_str_puts(&f->sentence, " still has it open; in ");
	prb_case_put_place(&f->sentence, thread);
	PRB_TRY(prb_finding_thread(f, c, thread));
	PRB_TRY(prb_finding_pid(f, holder));
	prb_str_puts(&f->rests_on, "the open files of the processes that may be read, and the "
				   "number of the child in the thread's Popen");
	prb_str_puts(&f->wrong_if, "that process is to finish the work of the child, and ends");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;

	if (!c->dump || !prb_case_is_here(c))
		return NULL;
	prb_vec_each (thread, &c->dump->threads) {
		pid_t child, holder = 0;

		if (!communicates(c, thread) || prb_target_sees_our_pids(c->target) != 1)
			continue;
		PRB_TRY(child_of(c, thread->tid, &child));
		if (!child)
			continue;
		/* If its number is another process's by now, nothing is said. */
		if (prb_process_has_ended(child))
			PRB_TRY(find_holder(c, thread, child, &holder));
		if (holder)
			return tell(rule, c, thread, child, holder, ret);
	}
	return NULL;
}

const struct prb_rule prb_rule_inherited = {
	.rank = 33,
	.name = "inherited",
	.kind = PRB_FINDING_PEER,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.proves = "a child has ended, and another process keeps a pipe of it open",
	.find = find,
};
