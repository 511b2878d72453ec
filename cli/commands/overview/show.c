/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An overview as text and as JSON. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/overview/overview.h"
#include "judge/ranking.h"
#include "judge/text.h"
#include "target/proc/instance.h"
#include "target/spec/command_line.h"

enum { MOST_SENTENCES = 5, MOST_NAMED = 8 };

/** It slept on, or it would have been read again. */
static double idle_now(const struct prb_overview_row *row, double now)
{
	return row->main.idle_seconds < 0 ? -1 : row->main.idle_seconds + now - row->read;
}

static void put_main(struct prb_json *json, const struct prb_overview_row *row, double now)
{
	if (!row->main.state) {
		prb_json_null(json, "main");
		return;
	}
	prb_json_open(json, "main", '{');
	prb_json_natural(json, "tid", row->main.tid ? row->main.tid : -1);
	prb_json_text(json, "state", row->main.state);
	prb_json_real(json, "idle_seconds", idle_now(row, now), 3);
	prb_json_text(json, "waits_for", row->main.waits_for);
	prb_json_text(json, "func", row->main.func);
	prb_json_text(json, "qualname", row->main.qualname);
	prb_json_text(json, "file", row->main.file);
	prb_json_natural(json, "line", row->main.func ? row->main.line : -1);
	prb_json_close(json, '}');
}

static void put_id(struct prb_json *json, const struct prb_overview_row *row)
{
	const struct prb_process *process = &row->info.process;
	char id[PRB_INSTANCE_SIZE];

	if (row->file)
		snprintf(id, sizeof(id), "f%u", row->number);
	else
		prb_instance_print(process->pid, process->start_ticks, id);
	prb_json_text(json, "id", id);
}

static void put_identity(struct prb_json *json, const struct prb_overview_row *row)
{
	const struct prb_process *process = &row->info.process;
	char *const *argument;

	put_id(json, row);
	prb_json_text(json, "kind", row->file ? "file" : "process");
	prb_json_natural(json, "pid", row->file ? -1 : process->pid);
	prb_json_text(json, "file", row->file);
	prb_json_bool(json, "ended", row->ended);
	prb_json_text(json, "version", row->version ? row->version : row->info.version);
	prb_json_natural(json, "rank", row->info.rank);
	prb_json_open(json, "argv", '[');
	prb_vec_each (argument, &process->argv)
		prb_json_text(json, NULL, *argument);
	prb_json_close(json, ']');
	prb_json_text(json, "unreadable", row->info.refusal ? row->info.refusal : row->error);
	prb_json_natural(json, "ppid", row->file ? -1 : process->ppid);
	prb_json_text(json, "user", row->user);
}

static void put_row(struct prb_json *json, const struct prb_overview_row *row,
		    const struct prb_overview_job *job, double now)
{
	bool counted = row->pulse.start_ticks && !row->ended;
	char *const *text;

	prb_json_open(json, NULL, '{');
	put_identity(json, row);
	prb_json_text(json, "job", job ? job->job->name : NULL);
	prb_json_natural(json, "threads", counted ? (int64_t)row->pulse.threads : -1);
	prb_json_real(json, "cpu_seconds", counted ? row->pulse.cpu_seconds : -1, 2);
	prb_json_real(json, "cpu_percent", counted ? row->cpu_percent : -1, 1);
	prb_json_natural(json, "rss", counted ? row->pulse.rss : -1);
	prb_json_natural(json, "swap", row->swap);
	prb_json_natural(json, "limit", row->limit);
	prb_json_natural(json, "limit_used", row->limit_used);
	put_main(json, row, now);
	prb_json_natural(json, "step", row->step);
	prb_json_natural(json, "gil_holder", row->gil_holder ? row->gil_holder : -1);
	prb_json_natural(json, "gil_waiters", row->gil_waiters);
	prb_json_open(json, "troubles", '[');
	prb_vec_each (text, &row->troubles)
		prb_json_text(json, NULL, *text);
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

struct prb_error *prb_overview_rank(const struct prb_overview *overview,
				    const struct prb_overview_jobs *jobs, struct prb_ranking *ret)
{
	const struct prb_overview_job *job;

	prb_vec_each (job, &jobs->list) {
		const struct prb_overview_row *row = prb_overview_job_row(job, overview);

		if (row)
			PRB_TRY(prb_ranking_add(ret, &job->findings, row, row->info.process.pid));
	}
	for (size_t i = 0; i < prb_overview_count(overview); i++) {
		const struct prb_overview_row *row = prb_overview_row(overview, i);

		PRB_TRY(prb_ranking_add(ret, &row->findings, row,
					row->file ? 0 : row->info.process.pid));
	}
	prb_ranking_sort(ret);
	return NULL;
}

static bool is_well(const struct prb_overview_row *row)
{
	return row->judged && !row->findings.list.count && !row->hangs;
}

static size_t judged(const struct prb_overview *overview)
{
	size_t count = 0;

	for (size_t i = 0; i < prb_overview_count(overview); i++)
		count += prb_overview_row(overview, i)->judged &&
			 !(is_well(prb_overview_row(overview, i)) &&
			   prb_overview_row(overview, i)->interrupted);
	return count;
}

static double when_ended(const struct prb_overview_job *one, long rank)
{
	const struct prb_overview_gone *gone;

	prb_vec_each (gone, &one->gone)
		if (gone->rank == rank)
			return gone->when;
	return -1;
}

static void put_rank(struct prb_json *json, const struct prb_overview_job *one, long rank,
		     pid_t pid)
{
	prb_json_open(json, NULL, '{');
	prb_json_integer(json, "rank", rank);
	prb_json_natural(json, "pid", pid ? pid : -1);
	prb_json_real(json, "ended", when_ended(one, rank), 3);
	prb_json_text(json, "how", prb_overview_job_end(one, rank));
	prb_json_close(json, '}');
}

/** With the ranks that no process here has, or none any more. */
static void put_job(struct prb_json *json, const struct prb_overview_job *one)
{
	const struct prb_overview_gone *gone;
	const struct prb_rank *rank;

	prb_json_open(json, NULL, '{');
	prb_json_text(json, "job", one->job->name);
	prb_json_natural(json, "world_size", one->job->world_size);
	prb_json_bool(json, "hangs", one->hangs);
	prb_json_open(json, "ranks", '[');
	prb_vec_each (rank, &one->job->ranks)
		put_rank(json, one, rank->rank, rank->pid);
	prb_vec_each (gone, &one->gone) {
		bool listed = false;

		prb_vec_each (rank, &one->job->ranks)
			listed |= rank->rank == gone->rank;
		if (!listed)
			put_rank(json, one, gone->rank, 0);
	}
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

static void put_jobs(struct prb_json *json, const struct prb_overview_jobs *jobs)
{
	const struct prb_overview_job *job;

	prb_json_open(json, "jobs", '[');
	prb_vec_each (job, &jobs->list)
		put_job(json, job);
	prb_json_close(json, ']');
}

struct prb_error *prb_overview_json(const struct prb_overview *overview,
				    const struct prb_overview_jobs *jobs, bool pending,
				    struct prb_str *ret)
{
	prb_auto_ranking struct prb_ranking ranking = {};
	const struct prb_ranked *ranked;
	struct prb_json json = {ret};

	PRB_TRY(prb_overview_rank(overview, jobs, &ranking));
	prb_json_open(&json, NULL, '{');
	prb_json_real(&json, "time", prb_clock_calendar_seconds(), 3);
	prb_json_real(&json, "seconds", prb_overview_seconds(overview), 6);
	prb_json_bool(&json, "pending", pending);
	prb_json_integer(&json, "judged", (int64_t)judged(overview));
	prb_json_open(&json, "findings", '[');
	prb_vec_each (ranked, &ranking.list) {
		prb_json_open(&json, NULL, '{');
		put_id(&json, ranked->owner);
		prb_finding_members(&json, ranked->finding, ranked->pid);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	put_jobs(&json, jobs);
	prb_json_open(&json, "targets", '[');
	for (size_t i = 0; i < prb_overview_count(overview); i++) {
		const struct prb_overview_row *row = prb_overview_row(overview, i);

		put_row(&json, row, prb_overview_job_of(jobs, row), prb_overview_time(overview));
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(ret, '\n');
	return NULL;
}

static void put_place(struct prb_str *s, const struct prb_overview_row *row)
{
	const char *slash = row->main.file ? strrchr(row->main.file, '/') : NULL;
	const char *name = row->main.qualname ? row->main.qualname : row->main.func;

	if (!name)
		return;
	prb_text_escape(s, name);
	if (row->main.file) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, slash ? slash + 1 : row->main.file);
	}
	if (row->main.line > 0)
		prb_str_printf(s, ":%d", row->main.line);
	prb_str_puts(s, ", ");
}

/** "Trainer.step train.py:41, idle 12 s: a lock held by 4711". */
static void put_doing(struct prb_str *s, const struct prb_overview_row *row, double now)
{
	double idle = idle_now(row, now);

	if (row->step >= 0)
		prb_str_printf(s, "step %lld, ", (long long)row->step);
	put_place(s, row);
	prb_str_puts(s, row->main.state);
	if (idle >= 0 && !strcmp(row->main.state, "idle")) {
		prb_str_putc(s, ' ');
		prb_text_duration(s, idle);
	}
	if (row->main.waits_for) {
		prb_str_puts(s, " in ");
		prb_text_escape(s, row->main.waits_for);
	}
}

static void put_numbers(struct prb_str *s, const struct prb_overview_row *row)
{
	prb_auto_str struct prb_str cpu = {}, memory = {};
	bool counted = row->pulse.start_ticks && !row->ended;

	if (counted && row->cpu_percent >= 0)
		prb_str_printf(&cpu, "%.0f %%", row->cpu_percent);
	if (counted)
		prb_text_bytes(&memory, (double)row->pulse.rss);
	prb_text_spaces(s, 8 - PRB_MIN(cpu.length, (size_t)8));
	prb_str_puts(s, cpu.length ? prb_str_text(&cpu) : "-");
	prb_text_spaces(s, 11 - PRB_MIN(memory.length, (size_t)11));
	prb_str_puts(s, memory.length ? prb_str_text(&memory) : "-");
}

/** A line, within the terminal: all of it is in the dump of its process. */
static void put_fitting(struct prb_str *s, const struct prb_str *line, size_t columns)
{
	prb_text_cut(s, prb_str_text(line), columns ? columns : SIZE_MAX);
	prb_str_putc(s, '\n');
}

static void put_process(struct prb_str *s, const struct prb_overview_row *row, size_t columns)
{
	prb_auto_str struct prb_str file = {};
	size_t start = s->length;

	if (row->file)
		prb_str_puts(s, "   file");
	else
		prb_str_printf(s, "%7d", (int)row->info.process.pid);
	if (row->info.rank >= 0)
		prb_str_printf(s, "  %4ld", row->info.rank);
	else
		prb_str_puts(s, "     -");
	prb_str_printf(s, "  %7u", row->pulse.threads);
	put_numbers(s, row);
	prb_str_puts(s, "  ");
	if (row->file) {
		prb_text_escape(&file, row->file);
		s->failed |= file.failed;
		prb_text_last_cell(s, start, prb_str_text(&file), columns);
	} else {
		prb_command_line_cell(s, start, "", &row->info.process, columns);
	}
	prb_str_putc(s, '\n');
}

static void put_lines(struct prb_str *s, const struct prb_overview_row *row, double now,
		      size_t columns)
{
	static const char INDENT[] = "         ";
	prb_auto_str struct prb_str doing = {};
	char *const *text;

	put_process(s, row, columns);
	prb_vec_each (text, &row->troubles) {
		prb_auto_str struct prb_str line = {};

		prb_str_printf(&line, "%s! ", INDENT);
		prb_text_escape(&line, *text);
		if (!strcmp(*text, "cannot be read")) {
			prb_str_puts(&line, ": ");
			prb_text_escape(&line, row->error ? row->error : row->info.refusal);
		}
		put_fitting(s, &line, columns);
	}
	if (!row->main.state)
		return;
	prb_str_puts(&doing, INDENT);
	put_doing(&doing, row, now);
	put_fitting(s, &doing, columns);
}

/** "4250  deadlock: threads 4250 and 4251 wait for each other"; then the others that do, too. */
static void put_sentence(struct prb_str *s, const struct prb_ranking *ranking, size_t at,
			 size_t same, size_t columns)
{
	const struct prb_finding *finding = ranking->list.items[at].finding;
	prb_auto_str struct prb_str sentence = {};
	size_t start = s->length;

	for (size_t i = 0; i <= same && i < MOST_NAMED; i++) {
		const struct prb_overview_row *row = ranking->list.items[at + i].owner;

		prb_str_puts(s, i ? ", " : "");
		prb_text_escape(s, row->words);
	}
	if (same >= MOST_NAMED)
		prb_str_printf(s, " and %zu more", same + 1 - MOST_NAMED);
	prb_str_putc(s, ' ');
	prb_str_printf(&sentence, "%s: %s (%s)", finding->rule, prb_str_text(&finding->sentence),
		       prb_confidence_name(finding->confidence));
	prb_text_wrap_after(s, prb_str_text(&sentence),
			    s->failed ? 0 : prb_text_width(s->data + start), 9,
			    columns ? columns : SIZE_MAX);
}

static void put_count(struct prb_str *s, const char *text, size_t count, const char *end)
{
	if (count)
		prb_str_printf(s, "%s%zu process%s%s\n", text, count, count == 1 ? "" : "es", end);
}

/** Those of which it is not known how long they had waited before our agent came. */
static void put_interrupted(struct prb_str *s, const struct prb_overview *overview)
{
	size_t count = 0;

	for (size_t i = 0; i < prb_overview_count(overview); i++) {
		const struct prb_overview_row *row = prb_overview_row(overview, i);

		if (!is_well(row) || !row->interrupted)
			continue;
		prb_str_puts(s, count++ ? ", "
					: "interrupted when probing's agent was loaded, so that it "
					  "is not known how long it had waited: ");
		prb_text_escape(s, row->words);
	}
	if (count)
		prb_str_putc(s, '\n');
}

/** What is wrong, the worst first. */
static struct prb_error *put_findings(struct prb_str *s, const struct prb_overview *overview,
				      const struct prb_overview_jobs *jobs, bool pending,
				      size_t columns)
{
	prb_auto_ranking struct prb_ranking ranking = {};
	size_t at = 0, healthy = 0, strange = 0;

	PRB_TRY(prb_overview_rank(overview, jobs, &ranking));
	for (size_t n = 0; at < ranking.list.count && n < MOST_SENTENCES; n++) {
		size_t same = prb_ranking_same(&ranking, at);

		put_sentence(s, &ranking, at, same, columns);
		at += same + 1;
	}
	if (at < ranking.list.count)
		prb_str_printf(s, "%zu more finding%s: see below\n", ranking.list.count - at,
			       ranking.list.count - at == 1 ? "" : "s");
	for (size_t i = 0; i < prb_overview_count(overview); i++) {
		const struct prb_overview_row *row = prb_overview_row(overview, i);

		healthy += is_well(row) && !row->interrupted;
		strange += !row->judged && !row->ended;
	}
	put_count(s, pending ? "judging " : "nothing is wrong with ", healthy, "");
	if (!pending)
		put_interrupted(s, overview);
	put_count(s, "not judged: ", strange, " that cannot be read");
	if (s->length)
		prb_str_putc(s, '\n');
	return NULL;
}

/** What to type next, about the process that is shown first. */
static void put_next(struct prb_str *s, const struct prb_overview_row *first)
{
	int width = (int)strlen(first->words) + 5;

	prb_str_printf(s, "\nprobing %s dump  its stacks\n", first->words);
	prb_str_printf(s, "probing %s why   why it does not move\n", first->words);
	prb_str_printf(s, "probing %-*s  all commands\n", width, "help");
}

struct prb_error *prb_overview_text(const struct prb_overview *overview,
				    const struct prb_overview_jobs *jobs, bool pending,
				    size_t columns, struct prb_str *ret)
{
	const struct prb_overview_row *first = NULL;
	size_t start;

	PRB_TRY(put_findings(ret, overview, jobs, pending, columns));
	start = ret->length;
	prb_str_puts(ret, "    PID  RANK  THREADS     CPU     MEMORY  ");
	prb_text_last_cell(ret, start, "COMMAND", columns);
	prb_str_putc(ret, '\n');
	for (int troubled = 1; troubled >= 0; troubled--)
		for (size_t i = 0; i < prb_overview_count(overview); i++) {
			const struct prb_overview_row *row = prb_overview_row(overview, i);

			if (!row->troubles.count != !troubled)
				continue;
			put_lines(ret, row, prb_overview_time(overview), columns);
			first = first || row->info.refusal || row->error ? first : row;
		}
	if (columns && first && !first->file)
		put_next(ret, first);
	return NULL;
}
