/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/text.h"

#include <string.h>

void prb_put_lines(struct prb_str *s, const char *name, const char *lines)
{
	for (const char *at = lines, *end; *at; at = end + 1) {
		end = strchrnul(at, '\n');
		prb_str_printf(s, "  %-11s %.*s\n", at == lines ? name : "", (int)(end - at), at);
		if (!*end)
			break;
	}
}

void prb_finding_text(struct prb_str *s, const struct prb_finding *finding)
{
	const struct prb_finding_line *line;

	prb_str_printf(s, "%s: %s\n", finding->rule, prb_str_text(&finding->sentence));
	prb_vec_each (line, &finding->evidence)
		prb_put_lines(s, line == finding->evidence.items ? "evidence" : "",
			      prb_str_text(&line->text));
	prb_put_lines(s, "rests on", prb_str_text(&finding->rests_on));
	prb_str_printf(s, "  %-11s %s%s\n", "confidence", prb_confidence_name(finding->confidence),
		       finding->proof ? ", proven: no thread that exists can end this" : "");
	prb_put_lines(s, "wrong if", prb_str_text(&finding->wrong_if));
	prb_put_lines(s, "next", prb_str_text(&finding->next));
}

void prb_finding_members(struct prb_json *json, const struct prb_finding *finding, pid_t pid)
{
	const struct prb_finding_line *line;
	const pid_t *id;

	prb_json_natural(json, "pid", pid ? pid : -1);
	prb_json_text(json, "rule", finding->rule);
	prb_json_integer(json, "code", PRB_FINDING_EXIT + (int)finding->kind);
	prb_json_text(json, "kind", prb_finding_kind_name(finding->kind));
	prb_json_text(json, "sentence", prb_str_text(&finding->sentence));
	prb_json_bool(json, "proof", finding->proof);
	prb_json_text(json, "confidence", prb_confidence_name(finding->confidence));
	prb_json_open(json, "evidence", '[');
	prb_vec_each (line, &finding->evidence) {
		prb_json_open(json, NULL, '{');
		prb_json_natural(json, "tid", line->tid ? line->tid : -1);
		prb_json_text(json, "text", prb_str_text(&line->text));
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_json_text(json, "rests_on", prb_str_text(&finding->rests_on));
	prb_json_text(json, "wrong_if", prb_str_text(&finding->wrong_if));
	prb_json_text(json, "next", prb_str_text(&finding->next));
	prb_json_open(json, "tids", '[');
	prb_vec_each (id, &finding->tids)
		prb_json_integer(json, NULL, *id);
	prb_json_close(json, ']');
	prb_json_open(json, "pids", '[');
	prb_vec_each (id, &finding->pids)
		prb_json_integer(json, NULL, *id);
	prb_json_close(json, ']');
}
