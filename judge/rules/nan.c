/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A watched value, such as a loss, that is NaN from some step on. Only rows that exist are read. */
#include "base/cleanup.h"
#include "base/text.h"
#include "judge/judge.h"
#include "judge/limits.h"
#include "rings/lasting_nan.h"
#include "rings/nan_origin.h"

/* GradScaler and others leave out a step or two whose loss is no number. */

static struct prb_error *add(const struct prb_rule *rule, const struct prb_case *c,
			     const struct prb_lasting_nan *nan, struct prb_findings *ret)
{
	struct prb_finding *f;
	struct prb_str *line;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = nan->before ? PRB_CONFIDENCE_HIGH : PRB_CONFIDENCE_MEDIUM;
	prb_text_escape(&f->brief, nan->name);
	prb_str_printf(&f->brief, " is NaN since step %lld", (long long)nan->step);
	prb_str_puts(&f->sentence, "the watched value ");
	prb_text_escape(&f->sentence, nan->name);
	if (nan->before)
		prb_str_printf(&f->sentence, " is NaN since step %lld", (long long)nan->step);
	else
		prb_str_printf(&f->sentence, " is NaN at all recorded steps, from %lld on",
			       (long long)nan->step);
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_printf(line,
		       "%llu rows are NaN without a break, up to the last; %llu are before them",
		       (unsigned long long)nan->count, (unsigned long long)nan->before);
	prb_str_puts(&f->rests_on, "python.variables, rows that the process wrote at its steps");
	prb_str_puts(&f->wrong_if, "the program marks a missing value by NaN");
	if (c->pid)
		prb_str_printf(&f->next,
			       "probing -t %d query \"SELECT step, name, value FROM "
			       "python.variables WHERE step >= %lld - 5 ORDER BY step LIMIT 20\"",
			       (int)c->pid, (long long)nan->step);
	return NULL;
}

/** A loss that the agent saw in backward, and the first module with NaN in its output. */
static struct prb_error *add_origin(const struct prb_rule *rule, const struct prb_case *c,
				    const struct prb_nan_origin *origin, struct prb_findings *ret)
{
	struct prb_finding *f;
	struct prb_str *line;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_HIGH;
	prb_str_printf(&f->brief, "loss is no number since step %lld",
		       (long long)origin->loss_step);
	prb_nan_origin_text(origin, &f->sentence);
	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_nan_origin_evidence(origin, line);
	prb_str_puts(&f->rests_on, "python.torch_nan, rows that the agent wrote at steps");
	prb_str_puts(&f->wrong_if, "the program skips such steps on purpose, and goes on");
	if (c->pid)
		prb_str_printf(&f->next,
			       "probing -t %d query \"SELECT step, kind, module, nan, inf, inputs "
			       "FROM python.torch_nan ORDER BY timestamp DESC LIMIT 20\"",
			       (int)c->pid);
	return NULL;
}

static struct prb_error *find_origin(const struct prb_rule *rule, struct prb_case *c,
				     struct prb_findings *ret)
{
	struct prb_nan_origin origin;
	struct prb_error *err = prb_nan_origin_find(c->target, &origin);

	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		return NULL;
	}
	PRB_TRY(err);
	/* Steps that GradScaler leaves out come one by one. */
	return origin.steps >= prb_limit(PRB_LIMIT_NAN) ? add_origin(rule, c, &origin, ret) : NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	__attribute__((cleanup(prb_lasting_nans_deinit))) struct prb_lasting_nans nans = {};
	const struct prb_lasting_nan *nan;
	prb_auto_error struct prb_error *err = NULL;

	if (!c->target || c->no_rings)
		return NULL;
	PRB_TRY(find_origin(rule, c, ret));
	err = prb_lasting_nans_find(c->target, &nans);
	/* Nothing is known then. */
	if (err)
		return err->code == PRB_ERROR_NOMEM ? prb_steal(&err) : NULL;
	prb_vec_each (nan, &nans.list)
		if (nan->count >= prb_limit(PRB_LIMIT_NAN))
			PRB_TRY(add(rule, c, nan, ret));
	return NULL;
}

const struct prb_rule prb_rule_nan = {
	.rank = 130,
	.name = "nan",
	.kind = PRB_FINDING_NAN,
	.needs = PRB_RULE_PROC,
	.proves = "a watched value, or the loss, has been NaN for five steps",
	.find = find,
};
