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
#include "judge/limits.h"
#include "judge/look.h"
#include "judge/threads.h"
#include "rings/memory_rows.h"

enum { PARTS = 5, LEAST_ROWS = 10 };

/* Seconds: older rows say nothing; so many are looked at; from here on it is no start-up. */
static const double OLD = 60, MOST_SPAN = 900, SURE_SPAN = 300;

struct series {
	const struct prb_memory_row *rows;
	size_t count;
	double least[PARTS]; /* the least memory in each part of the time */
	double growth, span; /* from the first part's least to the last's */
};

/* The last rows that belong together. */
static void cut(struct series *s)
{
	const struct prb_memory_row *last = s->rows + s->count - 1;

	while (s->count && s->rows->time < last->time - MOST_SPAN) {
		s->rows++;
		s->count--;
	}
}

/* True if each part has more than the one before: after what was freed in it, too. */
static bool rises(struct series *s)
{
	double begin = s->rows->time, all = s->rows[s->count - 1].time - begin;

	for (unsigned i = 0; i < PARTS; i++)
		s->least[i] = -1;
	for (size_t i = 0; i < s->count; i++) {
		unsigned part = all > 0 ? (unsigned)(PARTS * (s->rows[i].time - begin) / all) : 0;
		double *least = &s->least[PRB_MIN(part, (unsigned)PARTS - 1)];

		if (*least < 0 || s->rows[i].bytes < *least)
			*least = s->rows[i].bytes;
	}
	s->growth = s->least[PARTS - 1] - s->least[0];
	s->span = all * (PARTS - 1) / PARTS;
	for (unsigned i = 1; i < PARTS; i++)
		if (s->least[i - 1] < 0 || s->least[i] - s->least[i - 1] < s->growth / (4 * PARTS))
			return false;
	return s->growth > 0 && s->growth / (1 << 20) * 60 >= prb_limit(PRB_LIMIT_LEAK) * s->span;
}

/* True if the process no longer notes its memory. */
static bool is_old(const struct prb_case *c, const struct prb_memory_rows *rows)
{
	return prb_case_is_here(c) && rows->list.count &&
	       prb_clock_calendar_seconds() - rows->list.items[rows->list.count - 1].time > OLD;
}

/* When a limit is met, at this rate. */
static void put_limit(struct prb_case *c, const struct series *s, struct prb_str *text)
{
	const struct prb_case_memory *memory = prb_case_memory(c);

	if (memory->limit <= 0 || memory->limit_used < 0 || memory->limit_used > memory->limit)
		return;
	prb_str_puts(text, "; at this rate the limit of its control group is met in ");
	prb_text_duration(text, (double)(memory->limit - memory->limit_used) * s->span / s->growth);
}

/* Whether Python's own objects grow, too. */
static void put_blocks(const struct series *s, struct prb_str *text)
{
	double first = s->rows->blocks, last = s->rows[s->count - 1].blocks;

	if (first < 0 || last < 0)
		return;
	if (last > first)
		prb_str_printf(text, "; Python has %.0f more blocks in use", last - first);
	else
		prb_str_puts(text, "; Python has no more blocks in use: it is memory of C code");
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct series *s, const char *source, struct prb_findings *ret)
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
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_puts(line, "resident: ");
	for (unsigned i = 0; i < PARTS; i++) {
		prb_str_puts(line, i ? " → " : "");
		prb_text_bytes(line, s->least[i]);
	}
	put_blocks(s, line);
	put_limit(c, s, line);
	prb_str_printf(&f->rests_on, "%zu %s in ", s->count, source);
	prb_text_duration(&f->rests_on, all);
	prb_str_puts(&f->rests_on, ", the least of each fifth of the time");
	prb_str_puts(&f->wrong_if, "it still loads data, or fills a cache that has a limit");
	prb_case_put_command(&f->next, c, "memory --growth 10s");
	return NULL;
}

static struct prb_error *judge(const struct prb_rule *rule, struct prb_case *c, struct series *s,
			       const char *source, double least, struct prb_findings *ret)
{
	if (s->count)
		cut(s);
	if (s->count < LEAST_ROWS || s->rows[s->count - 1].time - s->rows->time < least)
		return NULL;
	return rises(s) ? tell(rule, c, s, source, ret) : NULL;
}

static struct prb_error *find_in_rows(const struct prb_rule *rule, struct prb_case *c,
				      struct prb_findings *ret)
{
	struct prb_memory_rows rows;
	bool failed = false;
	struct prb_error *err = prb_error_tolerate(prb_memory_rows_read(c->target, &rows), &failed);

	if (!err && !failed && !is_old(c, &rows))
		err = judge(rule, c, &(struct series){rows.list.items, rows.list.count},
			    "rows of memory_usage", prb_limit(PRB_LIMIT_LEAK_FOR), ret);
	prb_memory_rows_deinit(&rows);
	return err;
}

static struct prb_error *find_in_look(const struct prb_rule *rule, struct prb_case *c,
				      struct prb_findings *ret)
{
	struct prb_memory_row rows[PRB_LOOK_MEMORY];
	const struct prb_look *look;

	PRB_TRY(prb_case_look(c, &look));
	for (size_t i = 0; i < look->memories; i++)
		rows[i] = (struct prb_memory_row){.time = look->seconds * (double)i /
							  (double)PRB_MAX(look->memories - 1, 1),
						  .bytes = look->memory[i],
						  .blocks = -1};
	return judge(rule, c, &(struct series){rows, look->memories}, "looks", 0, ret);
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	size_t before = ret->list.count;

	if (!c->target)
		return NULL;
	PRB_TRY(find_in_rows(rule, c, ret));
	if (ret->list.count == before && c->memory_count)
		return judge(rule, c, &(struct series){c->memories, c->memory_count}, "looks",
			     prb_limit(PRB_LIMIT_LEAK_FOR), ret);
	return ret->list.count > before ? NULL : find_in_look(rule, c, ret);
}

const struct prb_rule prb_rule_leak = {
	.rank = 95,
	.name = "leak",
	.kind = PRB_FINDING_LEAK,
	.needs = PRB_RULE_PROC,
	.proves = "the memory grows evenly, by 10 MB a minute or more",
	.find = find,
};
