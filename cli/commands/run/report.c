/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/run/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/run/round.h"
#include "cluster/looks/stacks.h"
#include "cluster/looks/thread_text.h"
#include "judge/text.h"
#include "target/spec/command_line.h"

enum {
	MOST_FINDINGS = 3,
	FINDING_LINES = 17,
	PROCESS_LINES = 17,
	MOST_PROCESSES = 8,
	MOST_TESTS = 8,
	WIDEST_COMMAND = 100,
};

static size_t count_lines(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

/** Appends at most @p most lines of @p text, and how many more there are. */
static void put_some(struct prb_str *s, const char *text, size_t most, const char *what)
{
	size_t count = count_lines(text);
	const char *end = text;

	if (count <= most) {
		prb_str_puts(s, text);
		return;
	}
	for (size_t i = 0; i + 1 < most; i++)
		end = strchr(end, '\n') + 1;
	prb_str_append(s, text, (size_t)(end - text));
	prb_str_printf(s, "  … %zu more lines %s\n", count - PRB_MAX(most, (size_t)1) + 1, what);
}

static const struct prb_still_process *find(const struct prb_standstill *s, pid_t pid)
{
	const struct prb_still_process *process;

	prb_vec_each (process, &s->list)
		if (process->pid == pid)
			return process;
	return NULL;
}

static void put_doing(struct prb_str *s, const struct prb_still_process *process)
{
	const struct prb_dump_thread *thread = prb_report_tester(process->one);

	if (!thread)
		thread = prb_why_main(process->one);
	if (thread) {
		prb_put_thread(s, thread);
	} else if (process->words) {
		prb_str_puts(s, "idle in ");
		prb_str_puts(s, process->words);
	} else if (process->one->unreadable) {
		prb_text_escape(s, process->one->unreadable);
	}
}

/** "4250  python3 -m pytest", cut. */
static void put_process(struct prb_str *s, const struct prb_still_process *process)
{
	prb_auto_str struct prb_str command = {};

	prb_command_line_text(&command, &process->one->process);
	if (command.length > WIDEST_COMMAND) {
		size_t at = WIDEST_COMMAND;

		while (at && ((unsigned char)command.data[at] & 0xc0) == 0x80)
			at--;
		prb_str_truncate(&command, at);
		prb_str_puts(&command, "…");
	}
	prb_str_printf(s, "%d  %s", (int)process->pid, prb_str_text(&command));
}

static bool is_named(const struct prb_standstill *s, pid_t pid)
{
	for (size_t i = 0; i < s->chain.count; i++)
		if (s->chain.items[i] == pid)
			return true;
	return false;
}

/** A process, and where its main thread, or that of a test, and its tasks are. */
static struct prb_error *put_whole(struct prb_str *s, const struct prb_still_process *process)
{
	put_process(s, process);
	prb_str_puts(s, "\n  is at       ");
	put_doing(s, process);
	prb_str_putc(s, '\n');
	return prb_report_tasks(process->one, s);
}

/** Processes that wait for each other come first. */
static struct prb_error *put_processes(struct prb_str *s, const struct prb_standstill *still)
{
	const struct prb_still_process *process;
	size_t count = 0;

	for (size_t i = 0; i < still->chain.count; i++) {
		process = find(still, still->chain.items[i]);
		if (process && count++ < MOST_PROCESSES)
			PRB_TRY(put_whole(s, process));
	}
	prb_vec_each (process, &still->list)
		if (!is_named(still, process->pid) && count++ < MOST_PROCESSES)
			PRB_TRY(put_whole(s, process));
	if (count > MOST_PROCESSES)
		prb_str_printf(s, "%zu more processes\n", count - MOST_PROCESSES);
	return NULL;
}

/** A line for each process that runs a test. */
static struct prb_error *put_tests(struct prb_str *s, const struct prb_standstill *still)
{
	const struct prb_still_process *process;
	size_t count = 0;

	prb_vec_each (process, &still->list) {
		prb_auto_str struct prb_str test = {};

		PRB_TRY(prb_report_test(process->one, &test));
		if (test.length && count++ < MOST_TESTS)
			prb_str_printf(s, "test          %s, in %d\n", prb_str_text(&test),
				       (int)process->pid);
	}
	if (count > MOST_TESTS)
		prb_str_printf(s, "tests         %zu more\n", count - MOST_TESTS);
	return NULL;
}

static int worst_first(const void *a, const void *b)
{
	const struct prb_finding *f = *(const struct prb_finding *const *)a;
	const struct prb_finding *g = *(const struct prb_finding *const *)b;

	if (f->rank != g->rank)
		return f->rank < g->rank ? -1 : 1;
	return (int)g->confidence - (int)f->confidence;
}

static struct prb_error *put_findings(struct prb_str *s, const struct prb_standstill *still)
{
	PRB_VEC(const struct prb_finding *) found = {};
	struct prb_why_one *const *one;
	struct prb_error *err = NULL;

	prb_vec_each (one, &still->why.list)
		for (size_t i = 0; i < (*one)->findings.list.count && !prb_why_is_strange(*one);
		     i++) {
			const struct prb_finding **place = prb_vec_push(&found);

			if (place)
				*place = (*one)->findings.list.items[i];
			else
				err = prb_error_nomem();
		}
	if (found.count)
		qsort(found.items, found.count, sizeof(*found.items), worst_first);
	for (size_t i = 0; i < found.count && i < MOST_FINDINGS; i++)
		prb_finding_text(s, found.items[i]);
	if (found.count > MOST_FINDINGS)
		prb_str_printf(s, "%zu more findings\n", found.count - MOST_FINDINGS);
	if (!found.count)
		prb_str_puts(s,
			     "unknown: no rule names a cause; the stacks below show the waits\n");
	prb_vec_free(&found);
	return err;
}

/** The merged stacks, where the ranks are the pids. */
static struct prb_error *put_stacks(struct prb_str *s, const struct prb_standstill *still)
{
	prb_auto_still_round struct prb_still_round round = {};
	struct prb_merged *merged;

	PRB_TRY(prb_still_round_make(still, true, &round));
	PRB_TRY(prb_merged_create(&round.round, true, true, &merged));
	prb_merged_text(merged, s);
	prb_merged_destroy(merged);
	return NULL;
}

struct prb_error *prb_report_text(const struct prb_standstill *s, size_t spare, struct prb_str *ret)
{
	prb_auto_str struct prb_str findings = {}, processes = {}, stacks = {};
	size_t most = PRB_REPORT_LINES - spare, used;

	PRB_TRY(put_tests(ret, s));
	PRB_TRY(put_findings(&findings, s));
	put_some(ret, prb_str_text(&findings), FINDING_LINES, "of evidence");
	PRB_TRY(put_processes(&processes, s));
	put_some(ret, prb_str_text(&processes), PROCESS_LINES, "of processes");
	PRB_TRY(put_stacks(&stacks, s));
	used = count_lines(prb_str_text(ret));
	if (stacks.length && used + 2 < most)
		put_some(ret, prb_str_text(&stacks), most - used, "of stacks: the bundle has them");
	return ret->failed || findings.failed || processes.failed || stacks.failed
		       ? prb_error_nomem()
		       : NULL;
}
