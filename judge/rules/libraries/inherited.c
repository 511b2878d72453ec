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
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

static const char FUNCTION[] = "communicate";

static bool communicates(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	return enders->kind && !strcmp(enders->kind, "pipe") && enders->endless && enders->count &&
	       prb_case_idle(c, thread) >= prb_limit(PRB_LIMIT_LONG) &&
	       prb_thread_frame(thread, FUNCTION, "/subprocess.py");
}

/* True if the numbers of processes are the same for the target and us. */
static bool has_our_numbers(const struct prb_case *c)
{
	prb_auto_str struct prb_str status = {};
	const char *numbers;
	char *end;

	prb_error_destroy(prb_target_read_file(c->target, &status, "status"));
	numbers = prb_text_field(prb_str_text(&status), "NSpid");
	return numbers && strtol(numbers, &end, 10) == c->pid && *end == '\n';
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

static void process_guard(struct prb_process *process)
{
	prb_process_deinit(process);
}
#define auto_process __attribute__((cleanup(process_guard)))

/* True if the child is gone, or a zombie. If its number is another process's by now, nothing is
 * said. */
static struct prb_error *has_ended(pid_t child, bool *ret)
{
	auto_process struct prb_process process = {};
	struct prb_error *err = prb_process_describe(child, &process);

	*ret = prb_error_catch(&err, PRB_ERROR_NO_PROCESS);
	PRB_TRY(err);
	*ret = *ret || process.state == 'Z';
	return NULL;
}

static bool can_end(const struct prb_enders *enders, pid_t pid)
{
	for (unsigned i = 0; i < enders->count; i++)
		if (enders->pids[i] == pid)
			return true;
	return false;
}

/*
 * The first other process that has the pipe open; its number is 0 if there is none, or if the
 * target itself or the child has it, too: of a full list that is not known.
 */
static struct prb_error *find_holder(const struct prb_case *c, const struct prb_dump_thread *thread,
				     pid_t child, struct prb_process *ret)
{
	const struct prb_enders *enders = &thread->enders;

	if (enders->count >= PRB_MOST_ENDERS || can_end(enders, c->pid) || can_end(enders, child))
		return NULL;
	for (unsigned i = 0; i < enders->count && !ret->pid; i++) {
		auto_process struct prb_process process = {};
		bool failed = false;

		PRB_TRY(prb_error_tolerate(prb_process_describe(enders->pids[i], &process),
					   &failed));
		if (failed || process.state == 'Z')
			continue;
		*ret = process;
		process = (struct prb_process){};
	}
	return NULL;
}

static bool is_of_user(const struct prb_case *c, const struct prb_process *holder)
{
	auto_process struct prb_process own = {};
	struct prb_error *err = prb_process_describe(c->pid, &own);
	bool known = !err;

	prb_error_destroy(err);
	return known && own.uid == holder->uid;
}

static void put_process(struct prb_str *s, const struct prb_process *process)
{
	prb_str_printf(s, "%d", (int)process->pid);
	if (!process->comm)
		return;
	prb_str_putc(s, ' ');
	prb_text_escape(s, process->comm);
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct prb_dump_thread *thread, pid_t child,
			      const struct prb_process *holder, struct prb_findings *ret)
{
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	/* A process can pass its pipe to another user's process in order to have that one blamed.
	 */
	f->confidence = is_of_user(c, holder) ? PRB_CONFIDENCE_MEDIUM : PRB_CONFIDENCE_LOW;
	f->lasted = prb_case_idle(c, thread);
	prb_str_puts(&f->brief, "waits for a pipe of an ended child");
	prb_str_puts(&f->sentence, "thread ");
	prb_case_put_thread(&f->sentence, thread);
	prb_str_printf(&f->sentence, " waits for a pipe of its child %d, which has ended: process ",
		       (int)child);
	put_process(&f->sentence, holder);
	prb_str_puts(&f->sentence, " still has it open; in ");
	prb_case_put_place(&f->sentence, thread);
	PRB_TRY(prb_finding_thread(f, c, thread));
	PRB_TRY(prb_finding_pid(f, holder->pid));
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
		auto_process struct prb_process holder = {};
		pid_t child;
		bool ended;

		if (!communicates(c, thread) || !has_our_numbers(c))
			continue;
		PRB_TRY(child_of(c, thread->tid, &child));
		if (!child)
			continue;
		PRB_TRY(has_ended(child, &ended));
		if (ended)
			PRB_TRY(find_holder(c, thread, child, &holder));
		if (holder.pid)
			return tell(rule, c, thread, child, &holder, ret);
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
