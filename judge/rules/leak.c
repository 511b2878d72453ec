/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory grows, evenly and all the time: seen in the rows of memory_usage that the process
 * keeps itself, by a caller that looks often, or in a long look from outside. What is only filled
 * once does not look like that.
 */
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "judge/facts.h"
#include "judge/holder.h"
#include "judge/limits.h"
#include "judge/look.h"
#include "judge/series.h"
#include "judge/threads.h"
#include "rings/step_rows.h"

/* Seconds: older rows say nothing; from here on it is no start-up. */
static const double OLD = 60, SURE_SPAN = 300;

/* True if the process no longer notes its memory. */
static bool is_old(const struct prb_case *c, const struct prb_memory_rows *rows)
{
	return prb_case_is_here(c) && rows->list.count &&
	       prb_clock_calendar_seconds() - rows->list.items[rows->list.count - 1].time > OLD;
}

/* When a limit is met, at this rate. */
static void put_limit(struct prb_case *c, const struct prb_memory_series *s, struct prb_str *text)
{
	const struct prb_case_memory *memory = prb_case_memory(c);

	if (memory->limit <= 0 || memory->limit_used < 0 || memory->limit_used > memory->limit)
		return;
	prb_str_puts(text, "; at this rate the limit of its control group is met in ");
	prb_text_duration(text, (double)(memory->limit - memory->limit_used) * s->span / s->growth);
}

/* Whether Python's own objects grow, too. */
static void put_blocks(const struct prb_memory_series *s, struct prb_str *text)
{
	double first = s->rows->blocks, last = s->rows[s->count - 1].blocks;

	if (first < 0 || last < 0)
		return;
	if (last > first)
		prb_str_printf(text, "; Python has %.0f more blocks in use", last - first);
	else
		prb_str_puts(text, "; Python has no more blocks in use: it is memory of C code");
}

/* How much of it a training step is, where the process notes its steps. */
static struct prb_error *put_step(struct prb_case *c, const struct prb_memory_series *s,
				  struct prb_finding *f)
{
	struct prb_step_rows rows;
	const struct prb_step_row *row;
	double begin = s->rows->time + s->to_calendar;
	double end = s->rows[s->count - 1].time + s->to_calendar, seconds = 0;
	size_t steps = 0;
	struct prb_error *err =
		prb_error_tolerate(prb_step_rows_read(c->target, begin, &rows), NULL);

	prb_vec_each (row, &rows.list) {
		if (row->ended < begin || row->ended > end)
			continue;
		steps++;
		seconds += row->seconds;
	}
	prb_step_rows_deinit(&rows);
	/* A program may train for a part of the time only. */
	if (err || !steps || seconds * 2 < end - begin)
		return err;
	prb_str_puts(&f->sentence, ", ");
	prb_text_bytes(&f->sentence, s->growth / s->span * seconds / (double)steps);
	prb_str_puts(&f->sentence, " a step");
	return NULL;
}

/* What holds it, where that is known. */
static struct prb_error *put_holder(struct prb_case *c, struct prb_finding *f)
{
	const struct prb_holding *held;
	struct prb_str *line;

	PRB_TRY(prb_case_holder(c, &held));
	if (!(held->seconds > 0))
		return NULL;
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_puts(line, "in ");
	prb_text_duration(line, held->seconds);
	prb_str_puts(line, ", Python's objects grew by ");
	prb_text_bytes(line, PRB_MAX(held->in_objects, 0.0));
	prb_str_puts(line, ", and the process by ");
	prb_text_bytes(line, PRB_MAX(held->grown, 0.0));
	if (!held->name)
		return NULL;
	prb_str_puts(line, "; what `");
	prb_str_puts(line, held->name);
	prb_str_puts(line, "` holds, by ");
	prb_text_bytes(line, held->bytes);
	prb_str_printf(&f->brief, ": %s", held->name);
	prb_str_printf(&f->sentence, ", held by `%s`", held->name);
	return NULL;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct prb_memory_series *s, const char *source,
			      struct prb_findings *ret)
{
	double all = s->rows[s->count - 1].time - s->rows->time;
	struct prb_finding *f;
	struct prb_str *line;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = all >= SURE_SPAN ? PRB_CONFIDENCE_MEDIUM : PRB_CONFIDENCE_LOW;
	f->lasted = all;
	prb_str_puts(&f->brief, "memory grows by ");
	prb_text_bytes(&f->brief, s->growth / s->span * 60);
	prb_str_puts(&f->brief, " a minute");
	prb_str_puts(&f->sentence, "its memory grows all the time: by ");
	prb_text_bytes(&f->sentence, s->growth);
	prb_str_puts(&f->sentence, " in ");
	prb_text_duration(&f->sentence, s->span);
	PRB_TRY(put_step(c, s, f));
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_memory_series_put(line, s);
	put_blocks(s, line);
	put_limit(c, s, line);
	PRB_TRY(put_holder(c, f));
	prb_str_printf(&f->rests_on, "%zu %s in ", s->count, source);
	prb_text_duration(&f->rests_on, all);
	prb_str_puts(&f->rests_on, ", the least of each fifth of the time");
	prb_str_puts(&f->wrong_if, "it still loads data, or fills a cache that has a limit");
	prb_case_put_command(&f->next, c, "memory --growth 10s");
	return NULL;
}

static struct prb_error *judge(const struct prb_rule *rule, struct prb_case *c,
			       struct prb_memory_series *s, const char *source, double least,
			       struct prb_findings *ret)
{
	return prb_memory_rises(s, least) ? tell(rule, c, s, source, ret) : NULL;
}

static struct prb_error *find_in_rows(const struct prb_rule *rule, struct prb_case *c,
				      struct prb_findings *ret)
{
	struct prb_memory_rows rows;
	bool failed = false;

	if (c->no_rings)
		return NULL;
	struct prb_error *err = prb_error_tolerate(prb_memory_rows_read(c->target, &rows), &failed);

	if (!err && !failed && !is_old(c, &rows))
		err = judge(rule, c, &(struct prb_memory_series){rows.list.items, rows.list.count},
			    "rows of memory_usage", prb_limit(PRB_LIMIT_LEAK_FOR), ret);
	prb_memory_rows_deinit(&rows);
	return err;
}

static struct prb_error *find_in_look(const struct prb_rule *rule, struct prb_case *c,
				      struct prb_findings *ret)
{
	struct prb_memory_row rows[PRB_LOOK_MEMORY];
	const struct prb_look *look;
	double begin;

	PRB_TRY(prb_case_look(c, &look));
	begin = prb_clock_calendar_seconds() - look->seconds;
	for (size_t i = 0; i < look->memories; i++)
		rows[i] = (struct prb_memory_row){
			.time = begin +
				look->seconds * (double)i / (double)PRB_MAX(look->memories - 1, 1),
			.bytes = look->memory[i],
			.blocks = -1};
	return judge(rule, c, &(struct prb_memory_series){rows, look->memories}, "looks", 0, ret);
}

static struct prb_error *find_in_looks(const struct prb_rule *rule, struct prb_case *c,
				       struct prb_findings *ret)
{
	struct prb_memory_series series = {
		.rows = c->memories,
		.count = c->memory_count,
		.to_calendar = prb_clock_calendar_seconds() - prb_clock_seconds(),
	};

	return judge(rule, c, &series, "looks", prb_limit(PRB_LIMIT_LEAK_FOR), ret);
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	size_t before = ret->list.count;

	if (!c->target)
		return NULL;
	PRB_TRY(find_in_rows(rule, c, ret));
	if (ret->list.count == before && c->memory_count)
		PRB_TRY(find_in_looks(rule, c, ret));
	else if (ret->list.count == before)
		PRB_TRY(find_in_look(rule, c, ret));
	if (ret->list.count == before)
		prb_case_end_search(c);
	return NULL;
}

const struct prb_rule prb_rule_leak = {
	.rank = 95,
	.name = "leak",
	.kind = PRB_FINDING_LEAK,
	.needs = PRB_RULE_PROC,
	.proves = "the memory grows evenly, by 10 MB a minute or more",
	.find = find,
};
