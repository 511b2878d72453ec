/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/show/performance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command/output.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/local_time.h"
#include "base/text.h"
#include "profile/recording/wall_parts.h"

enum { MOST_ROWS = 30, WIDEST_NAME = 40, MOST_PARTS = 3, MOST_LEFT_OUT = 10, MOST_WINDOWS = 8 };

static const double least_part = 0.01; /* share that is worth a line */

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void put_time(struct prb_str *s, int64_t ns)
{
	prb_text_duration(s, (double)ns / 1e9);
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

void prb_performance_put_amounts(const struct prb_recording *r, const struct prb_report *report,
				 const struct prb_profile_choice *choice, size_t threads,
				 struct prb_str *s)
{
	const char *end = prb_profile_end_text(r->end);

	prb_str_puts(s, r->python ? "Python " : "no Python");
	prb_text_escape(s, r->python ? r->python : "");
	prb_str_puts(s, " · ");
	put_time(s, r->duration);
	if (r->condition) {
		prb_str_printf(s, " · %zu window%s of it, ", r->windows.count,
			       plural(r->windows.count));
		put_time(s, prb_recording_covered(r));
	}
	if (r->others.count)
		prb_str_printf(s, " · %zu processes", r->others.count + 1);
	prb_str_printf(s, " · %zu thread%s · %llu sample%s · ", threads, plural(threads),
		       (unsigned long long)report->taken, plural(report->taken));
	put_time(s, report->weight);
	prb_str_printf(s, " %s", prb_weight_words[choice->weight].what);
	if (choice->weight != PRB_WEIGHT_WALL)
		prb_str_printf(s, " (%.0f %%)",
			       percent((double)report->weight, (double)prb_recording_covered(r)));
	if (end)
		prb_str_printf(s, " · %s", end);
}

/* Appends the time of day of a moment of the recording, with its day if that is wanted. */
static void put_moment(const struct prb_recording *r, int64_t ns, bool day, struct prb_str *s)
{
	const time_t seconds = (time_t)(r->started + (double)ns / 1e9);

	prb_str_puts(s, prb_local_time(seconds, day ? PRB_LOCAL_DAY : PRB_LOCAL_CLOCK).text);
}

/* When the windows of --when were: "2026-11-30 14:02:07–14:02:27, 14:05:31–14:05:40". */
static void put_windows(const struct prb_recording *r, struct prb_str *s)
{
	const size_t count = r->condition ? r->windows.count : 0;

	for (size_t i = 0; i < count && i < MOST_WINDOWS; i++) {
		prb_str_puts(s, i ? ", " : "windows: ");
		put_moment(r, r->windows.items[i].begin, !i, s);
		prb_str_puts(s, "–");
		put_moment(r, r->windows.items[i].end, false, s);
	}
	if (count > MOST_WINDOWS)
		prb_str_printf(s, ", and %zu more (--json has them)", count - MOST_WINDOWS);
	if (count)
		prb_str_putc(s, '\n');
}

static void put_head(const struct prb_recording *r, const struct prb_report *report,
		     const struct prb_profile_choice *choice, struct prb_str *s)
{
	prb_str_printf(s, "%d  ", (int)r->pid);
	prb_text_escape(s, r->command ? r->command : "");
	prb_str_putc(s, '\n');
	prb_performance_put_amounts(r, report, choice, r->threads.count, s);
	prb_str_putc(s, '\n');
	put_windows(r, s);
}

/** Thread states of a row: "on a processor 12 %, asleep 88 %". */
static void put_states(const struct prb_report *report, struct prb_str *s)
{
	bool any = false;

	for (unsigned i = 0; i < PRB_RUN_STATES; i++) {
		if (!report->states[i])
			continue;
		prb_str_printf(s, "%s%s %.1f %%", any ? ", " : "",
			       prb_run_state_name((enum prb_run_state)i),
			       percent((double)report->states[i], (double)report->weight));
		any = true;
	}
	if (any)
		prb_str_putc(s, '\n');
}

static void put_row(const struct prb_recording *r, const struct prb_report *report,
		    const struct prb_report_row *row, bool lines, struct prb_str *s)
{
	const struct prb_tree_function *f = &r->tree->functions.items[row->function];
	struct prb_share self = prb_report_share(report, row->self);
	prb_auto_str struct prb_str bounds = {};

	prb_str_printf(&bounds, "%.0f–%.0f %%", 100 * self.low, 100 * self.high);
	prb_str_printf(s, " %5.1f %%  ", 100 * self.share);
	prb_text_spaces(s, bounds.length < 10 ? 10 - bounds.length : 0);
	prb_str_puts(s, prb_str_text(&bounds));
	prb_str_printf(s, "  %5.1f %%  ", percent((double)row->total, (double)report->weight));
	prb_text_column(s, f->name, WIDEST_NAME);
	prb_str_puts(s, "  ");
	prb_function_put_place(s, f, lines ? row->line : f->first_line);
	prb_str_putc(s, '\n');
}

/** Kinds of the row's own time, below it: "98.1 % waiting in Queue.get". */
static void put_parts(const struct prb_recording *r, const struct prb_report *report,
		      const struct prb_report_row *row, const struct prb_wall_parts *parts,
		      struct prb_str *s)
{
	size_t count;
	const struct prb_wall_part *list = prb_wall_parts_of(parts, row, &count);

	if ((double)row->self < least_part * (double)report->weight)
		return;
	for (size_t i = 0; i < PRB_MIN(count, (size_t)MOST_PARTS); i++) {
		double share = (double)list[i].wall / (double)row->self;

		if (share < least_part)
			return;
		prb_str_printf(s, "                             %5.1f %%  ", 100 * share);
		prb_wall_part_text(r, &list[i], s);
		prb_str_putc(s, '\n');
	}
}

static void put_rows(const struct prb_recording *r, const struct prb_report *report, bool lines,
		     const struct prb_wall_parts *parts, struct prb_str *s)
{
	size_t shown = PRB_MIN(report->rows.count, (size_t)MOST_ROWS);

	if (!report->rows.count)
		return;
	prb_str_puts(s, "\n    self      95 %    total  function\n");
	for (size_t i = 0; i < shown; i++) {
		put_row(r, report, &report->rows.items[i], lines, s);
		put_parts(r, report, &report->rows.items[i], parts, s);
	}
	if (shown < report->rows.count)
		prb_str_printf(s, "  … %zu more; --json and files have them all\n",
			       report->rows.count - shown);
}

/** Per process: true if some thread of it could be read. */
static struct prb_error *find_read(const struct prb_recording *r, bool **ret)
{
	const struct prb_profile_thread *thread;

	*ret = calloc(r->others.count + 1, sizeof(**ret));
	if (!*ret)
		return prb_error_nomem();
	prb_vec_each (thread, &r->threads)
		(*ret)[thread->process] = true;
	return NULL;
}

/** Time of threads that began and ended between two samples: in no row. */
static void put_unseen(const struct prb_recording *r, const bool *read, struct prb_str *s)
{
	const struct prb_profile_thread *thread;
	int64_t seen = 0, whole = r->process_cpu;

	for (size_t i = 0; i < r->others.count; i++)
		whole += read[i + 1] ? PRB_MAX(r->others.items[i].cpu, (int64_t)0) : 0;
	if (r->process_cpu < 0 || r->tid)
		return;
	prb_vec_each (thread, &r->threads)
		seen += thread->cpu;
	if (percent((double)(whole - seen), (double)whole) < 1)
		return;
	prb_str_puts(s, "not seen: ");
	put_time(s, whole - seen);
	prb_str_puts(s, " on a processor, of threads that ended before they were looked at\n");
}

/** Time of children that began and ended between two scans. */
static void put_unseen_children(const struct prb_recording *r, struct prb_str *s)
{
	int64_t whole = r->unseen_children + PRB_MAX(r->process_cpu, (int64_t)0);
	const struct prb_profile_process *other;

	prb_vec_each (other, &r->others)
		whole += PRB_MAX(other->cpu, (int64_t)0);
	if (percent((double)r->unseen_children, (double)whole) < 1)
		return;
	prb_str_puts(s, "not seen: ");
	put_time(s, r->unseen_children);
	prb_str_puts(s, " on a processor, of children that ended before they were found\n");
}

static int most_time_first(const void *a, const void *b)
{
	const struct prb_profile_process *x = *(const struct prb_profile_process *const *)a;
	const struct prb_profile_process *y = *(const struct prb_profile_process *const *)b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? 1 : -1;
	return (x > y) - (x < y);
}

static void put_used(int64_t cpu, struct prb_str *s)
{
	if (cpu >= 0) {
		prb_str_puts(s, ", with ");
		put_time(s, cpu);
		prb_str_puts(s, " on a processor");
	}
}

/**
 * Appends unreadable processes. Their number is limited: a program that runs an unreadable command
 * repeatedly has very many.
 */
static struct prb_error *put_left_out(const struct prb_recording *r, const bool *read,
				      struct prb_str *s)
{
	prb_auto_free const struct prb_profile_process **list =
		calloc(r->others.count + 1, sizeof(struct prb_profile_process *));
	int64_t cpu = -1;
	size_t count = 0;

	if (!list)
		return prb_error_nomem();
	for (size_t i = 0; i < r->others.count; i++)
		if (!read[i + 1])
			list[count++] = &r->others.items[i];
	qsort(list, count, sizeof(*list), most_time_first);
	for (size_t i = 0; i < count && i < MOST_LEFT_OUT; i++) {
		prb_str_printf(s, "left out: %d ", (int)list[i]->pid);
		prb_text_escape(s, list[i]->command ? list[i]->command : "");
		prb_str_puts(s, ", which ended or could not be read");
		put_used(list[i]->cpu, s);
		prb_str_putc(s, '\n');
	}
	if (count <= MOST_LEFT_OUT)
		return NULL;
	for (size_t i = MOST_LEFT_OUT; i < count; i++)
		if (list[i]->cpu >= 0)
			cpu = PRB_MAX(cpu, (int64_t)0) + list[i]->cpu;
	prb_str_printf(s, "left out: %zu more", count - MOST_LEFT_OUT);
	put_used(cpu, s);
	prb_str_puts(s, "; --json has them all\n");
	return NULL;
}

/** Appends what no row includes, and why. */
static struct prb_error *put_missing(const struct prb_recording *r, bool left_out,
				     struct prb_str *s)
{
	prb_auto_free bool *read = NULL;

	PRB_TRY(find_read(r, &read));
	put_unseen(r, read, s);
	put_unseen_children(r, s);
	return left_out ? put_left_out(r, read, s) : NULL;
}

/** Appends a note if many samples were missed. */
static void put_missed(const struct prb_profile_cost *c, bool part, struct prb_str *s)
{
	enum { SHARE = 10 };
	unsigned long long missed = c->missed, all = c->times + c->missed;

	if (missed > all / SHARE)
		prb_str_printf(s,
			       "too busy for this rate: %llu of %llu samples%s were missed; sums "
			       "are exact, the bounds are wider\n",
			       missed, all, part ? " of the whole recording" : "");
}

/** Appends the share of samples that could not be read because another tracer had the thread. */
static void put_traced(const struct prb_recording *r, const struct prb_profile_choice *choice,
		       struct prb_str *s)
{
	double traced = prb_report_traced(r, choice);

	if (traced >= 1)
		prb_str_printf(s,
			       "%.0f %% of the samples could not be read: another tracer (a "
			       "debugger, or another recorder) was attached; if it is a recorder, "
			       "'perf --last' shows its samples\n",
			       traced);
}

/** Appends the cost of the whole recording: that of a part is unknown. */
static void put_cost(const struct prb_recording *r, struct prb_str *s)
{
	const struct prb_profile_cost *c = &r->cost;
	bool part = c->duration > r->duration;

	put_missed(c, part, s);
	prb_str_puts(s, "cost");
	if (part) {
		prb_str_puts(s, " of the whole recording, ");
		put_time(s, c->duration);
	}
	if (c->ebpf)
		prb_str_printf(s, ": %llu samples by eBPF,", (unsigned long long)c->unstopped);
	else
		prb_str_puts(s, ":");
	prb_str_printf(s, " %llu stop%s", (unsigned long long)c->stops, plural(c->stops));
	if (c->stops)
		prb_str_printf(s, " of %.0f µs (99 %%: %.0f µs, longest %.0f µs), %.1f ms in all",
			       c->pause_p50, c->pause_p99, c->pause_max, c->pause_total / 1e3);
	prb_str_printf(s, " · own CPU %.1f %% · %llu missed, %llu late, %llu unreadable\n",
		       percent((double)c->own_cpu, (double)c->duration),
		       (unsigned long long)c->missed, (unsigned long long)c->late,
		       (unsigned long long)c->unreadable);
}

struct prb_error *prb_performance_text(const struct prb_recording *recording,
				       const struct prb_profile_choice *choice,
				       const struct prb_report *report, struct prb_str *s)
{
	struct prb_wall_parts parts = {};

	put_head(recording, report, choice, s);
	if (choice->weight == PRB_WEIGHT_WALL) {
		put_states(report, s);
		PRB_TRY(prb_wall_parts_make(recording, choice, &parts));
	}
	put_rows(recording, report, choice->lines, &parts, s);
	if (!report->rows.count)
		prb_str_printf(s, "\n(%s%s)\n", prb_weight_words[choice->weight].none,
			       choice->weight == PRB_WEIGHT_WALL
				       ? ""
				       : "; --mode wall shows where threads wait");
	prb_wall_parts_deinit(&parts);
	PRB_TRY(prb_performance_waits_text(recording, choice, s));
	PRB_TRY(prb_performance_ranks_text(recording, s));
	prb_str_putc(s, '\n');
	PRB_TRY(put_missing(recording, true, s));
	put_traced(recording, choice, s);
	put_cost(recording, s);
	return s->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_performance_tell_file(const struct prb_recording *recording,
					    const struct prb_profile_choice *choice,
					    const char *path)
{
	prb_auto_str struct prb_str s = {};

	prb_text_escape(&s, path);
	prb_str_puts(&s, ": ");
	put_time(&s, recording->duration);
	prb_str_printf(&s, " of %d", (int)recording->pid);
	if (prb_profile_end_text(recording->end))
		prb_str_printf(&s, " (%s)", prb_profile_end_text(recording->end));
	prb_str_putc(&s, '\n');
	PRB_TRY(put_missing(recording, false, &s));
	put_traced(recording, choice, &s);
	put_cost(recording, &s);
	PRB_TRY(prb_output(&s));
	return prb_output_flush();
}
