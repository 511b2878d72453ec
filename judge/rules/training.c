/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Something else than the model takes much of the training steps: data, evaluation, waits for other
 * ranks, checkpoints. Seen in the rows of python.torch_step_timing, which the process keeps itself.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "judge/facts.h"
#include "judge/judge.h"
#include "judge/limits.h"
#include "judge/threads.h"
#include "rings/step_rows.h"

enum { LEAST_STEPS = 20 };

/* Seconds: steps of so long are looked at; a process whose last one is older trains no more. */
static const double SPAN = 300, OLD = 60;

static const struct {
	const char *name, *sentence, *wrong_if;
} texts[PRB_STEP_ROW_PARTS] = {
	[PRB_STEP_ROW_DATA] = {"data",
			       "of each step waits for data, in a data loader or before the "
			       "first module",
			       "steps are no shorter when the same batch is used again and again"},
	[PRB_STEP_ROW_COMMUNICATION] = {"communication",
					"of each step is communication: waiting "
					"for other ranks",
					"all ranks have the same share: then it is the network, no "
					"late rank"},
	[PRB_STEP_ROW_EVALUATION] = {"evaluation",
				     "is evaluation: modules that run without "
				     "gradients",
				     "whole epochs have another share"},
	[PRB_STEP_ROW_CHECKPOINT] = {"checkpoints", "is writing checkpoints",
				     "whole epochs have another share"},
};

/* What some steps were made of, in seconds. */
struct sum {
	size_t steps;
	double seconds, parts[PRB_STEP_ROW_PARTS];
};

static struct sum sum_of(const struct prb_step_row *rows, size_t count)
{
	struct sum sum = {.steps = count};

	for (size_t i = 0; i < count; i++) {
		sum.seconds += rows[i].seconds;
		for (size_t k = 0; k < PRB_STEP_ROW_PARTS; k++)
			sum.parts[k] += rows[i].parts[k];
	}
	return sum;
}

static bool is_large(const struct sum *sum, size_t part)
{
	return sum->parts[part] * 100 >= prb_limit(PRB_LIMIT_STEP_PART) * sum->seconds;
}

static struct prb_error *tell(const struct prb_rule *rule, const struct prb_case *c,
			      const struct sum *sum, size_t part, struct prb_findings *ret)
{
	double share = 100 * sum->parts[part] / sum->seconds;
	struct prb_finding *f;
	struct prb_str *line;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_printf(&f->brief, "%.0f %% of each step: %s", share, texts[part].name);
	prb_str_printf(&f->sentence, "%.0f %% %s", share, texts[part].sentence);
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_printf(line, "%zu steps of ", sum->steps);
	prb_text_duration(line, sum->seconds / (double)sum->steps);
	for (size_t i = 0; i < PRB_STEP_ROW_PARTS; i++) {
		if (sum->parts[i] * 100 < sum->seconds)
			continue;
		prb_str_printf(line, ", %s ", texts[i].name);
		prb_text_duration(line, sum->parts[i] / (double)sum->steps);
	}
	prb_str_puts(&f->rests_on, "rows of python.torch_step_timing; each half of the steps has "
				   "that much of it");
	prb_str_puts(&f->wrong_if, texts[part].wrong_if);
	prb_case_put_command(&f->next, c,
			     part == PRB_STEP_ROW_COMMUNICATION ? "cluster slow" : "perf --torch");
	return NULL;
}

/* What is so in one half only was chance, or is over. */
static struct prb_error *judge(const struct prb_rule *rule, const struct prb_case *c,
			       const struct prb_step_rows *rows, struct prb_findings *ret)
{
	size_t half = rows->list.count / 2, worst = PRB_STEP_ROW_PARTS;
	const struct sum all = sum_of(rows->list.items, rows->list.count),
			 first = sum_of(rows->list.items, half),
			 last = sum_of(rows->list.items + half, rows->list.count - half);

	for (size_t i = 0; i < PRB_STEP_ROW_PARTS; i++)
		if (is_large(&first, i) && is_large(&last, i) &&
		    (worst == PRB_STEP_ROW_PARTS || all.parts[i] > all.parts[worst]))
			worst = i;
	return worst == PRB_STEP_ROW_PARTS ? NULL : tell(rule, c, &all, worst, ret);
}

static bool is_old(const struct prb_case *c, const struct prb_step_rows *rows)
{
	return prb_case_is_here(c) &&
	       prb_clock_calendar_seconds() - rows->list.items[rows->list.count - 1].ended > OLD;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	double since = prb_case_is_here(c) ? prb_clock_calendar_seconds() - SPAN : 0;
	struct prb_step_rows rows;
	bool failed = false;
	struct prb_error *err;

	if (!c->target)
		return NULL;
	err = prb_error_tolerate(prb_step_rows_read(c->target, since, &rows), &failed);
	if (!err && !failed && rows.list.count >= LEAST_STEPS && !is_old(c, &rows))
		err = judge(rule, c, &rows, ret);
	prb_step_rows_deinit(&rows);
	return err;
}

const struct prb_rule prb_rule_training = {
	.rank = 140,
	.name = "training",
	.kind = PRB_FINDING_STEPS,
	.needs = PRB_RULE_PROC,
	.proves =
		"training steps wait for data or other ranks, or evaluate, for 15 % of their time",
	.find = find,
};
