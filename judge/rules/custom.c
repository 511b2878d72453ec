/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the user's own rules find, which are Python (docs/scripting.md). */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/judge.h"
#include "judge/threads.h"
#include "target/custom.h"

/** The field at *at, which is moved behind it; "" at the end. */
static const char *next_field(const char **at, const char *end)
{
	const char *field = *at < end ? *at : "";

	*at = *at < end ? *at + strlen(*at) + 1 : end;
	return field;
}

static void put(struct prb_str *s, const char *field, const char *other)
{
	prb_text_escape(s, *field ? field : other);
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c, const char **at,
			      const char *end, struct prb_findings *ret)
{
	const char *name = next_field(at, end), *field;
	struct prb_finding *f;
	struct prb_str *line;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	put(&f->brief, name, "a rule");
	put(&f->sentence, next_field(at, end), name);
	/* Never high: what a script has read was not read at one instant. */
	f->confidence =
		!strcmp(next_field(at, end), "medium") ? PRB_CONFIDENCE_MEDIUM : PRB_CONFIDENCE_LOW;
	prb_str_puts(&f->rests_on, "the rule ");
	put(&f->rests_on, name, "?");
	prb_str_puts(&f->rests_on, ", of a script");
	put(&f->wrong_if, next_field(at, end), "the rule is wrong");
	field = next_field(at, end);
	if (*field)
		prb_text_escape(&f->next, field);
	else
		prb_case_put_command(&f->next, c, "dump --locals");
	for (field = next_field(at, end); *field; field = next_field(at, end)) {
		PRB_TRY(prb_finding_line(f, 0, &line));
		prb_text_escape(line, field);
	}
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_custom *custom = c->target ? c->target->custom : NULL;
	prb_auto_str struct prb_str text = {};
	const char *at, *end;

	if (!custom || !custom->findings || !custom->findings(custom->context, &text))
		return NULL;
	at = prb_str_text(&text);
	end = at + text.length;
	while (at < end)
		PRB_TRY(tell(rule, c, &at, end, ret));
	return NULL;
}

const struct prb_rule prb_rule_custom = {
	.rank = 890,
	.name = "custom",
	.kind = PRB_FINDING_CUSTOM,
	.needs = PRB_RULE_PROC,
	.proves = "what a rule of a script says",
	.find = find,
};
