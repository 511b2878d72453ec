/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing cluster hang`: the verdict on a job. */
#include "cli/commands/cluster/cluster.h"
#include "command/exit.h"
#include "command/output.h"
#include "cluster/looks/why.h"
#include "cluster/verdict/processes.h"
#include "cluster/verdict/verdict.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "judge/text.h"

enum { EXIT_VERDICT = 10 }; /* and the number of its kind; 0 if the job moves */

static void put_verdict(struct prb_str *s, const struct prb_verdict *v)
{
	prb_auto_str struct prb_str signs = {};

	prb_signs_put(&v->signs, &signs);
	prb_str_printf(s, "%s: %s\n", prb_verdict_name(v->kind), prb_str_text(&v->sentence));
	prb_put_lines(s, "evidence", prb_str_text(&v->evidence));
	prb_put_lines(s, "signs", prb_str_text(&signs));
	prb_put_lines(s, "rests on", prb_str_text(&v->rests_on));
	prb_put_lines(s, "confidence", v->confidence);
	prb_put_lines(s, "wrong if", prb_str_text(&v->refuted_by));
	prb_put_lines(s, "next", prb_str_text(&v->next));
}

/** How ranks have ended, as far as it was told. */
static void put_ends(struct prb_json *json, const struct prb_round *round)
{
	const struct prb_seen *seen;

	prb_json_open(json, "ended", '[');
	prb_vec_each (seen, &round->list) {
		prb_auto_str struct prb_str how = {};

		if (!seen->end)
			continue;
		prb_why_put_how(&how, seen);
		prb_json_open(json, NULL, '{');
		prb_json_integer(json, "rank", seen->rank->rank);
		prb_json_text(json, "how", prb_str_text(&how));
		prb_json_bool(json, "known", seen->end_known);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static void put_verdict_json(struct prb_str *s, const struct prb_cluster *c,
			     const struct prb_verdict *v)
{
	struct prb_json json = {s};
	const struct prb_sign *sign;
	const long *rank;

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "job", c->job->name);
	prb_json_text(&json, "verdict", prb_verdict_name(v->kind));
	prb_json_open(&json, c->processes ? "pids" : "ranks", '[');
	prb_vec_each (rank, &v->ranks.list)
		prb_json_integer(&json, NULL, *rank);
	prb_json_close(&json, ']');
	prb_json_text(&json, "sentence", prb_str_text(&v->sentence));
	prb_json_text(&json, "evidence", prb_str_text(&v->evidence));
	prb_json_open(&json, "signs", '[');
	prb_vec_each (sign, &v->signs.list) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "of", prb_sign_source_name(sign->source));
		prb_json_text(&json, "text", prb_str_text(&sign->text));
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	if (!c->processes)
		put_ends(&json, c->last);
	prb_json_text(&json, "rests_on", prb_str_text(&v->rests_on));
	prb_json_text(&json, "confidence", v->confidence);
	prb_json_text(&json, "wrong_if", prb_str_text(&v->refuted_by));
	prb_json_text(&json, "next", prb_str_text(&v->next));
	prb_cluster_put_unanswered(&json, c);
	prb_json_text(&json, "saved", c->settings->save);
	if (c->settings->save)
		prb_json_integer(&json, "saved_ranks", (int64_t)c->saved);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

static void put_saved(struct prb_str *s, const struct prb_cluster *c)
{
	if (!c->settings->save || c->settings->json)
		return;
	prb_str_puts(s, "  saved       ");
	prb_text_escape(s, c->settings->save);
	prb_str_printf(s, ": snapshots of %zu of %zu ranks\n", c->saved, c->job->ranks.count);
}

struct prb_error *prb_cluster_judge(struct prb_cluster *c, struct prb_verdict *ret)
{
	struct prb_ras *ras = NULL;
	struct prb_error *err;

	if (c->processes)
		return prb_verdict_find_processes(c->last, ret);
	if (c->reach.ras && !c->bundle) {
		prb_auto_error struct prb_error *silent = prb_ras_read(c->reach.ras, &ras);

		if (silent)
			prb_warn(silent->message);
	}
	err = prb_verdict_find(c->job, c->last, c->bundle, &c->reach, ras, ret);
	prb_ras_destroy(ras);
	return err;
}

struct prb_error *prb_cluster_tell(const struct prb_cluster *c, const struct prb_verdict *verdict)
{
	prb_auto_str struct prb_str text = {};

	if (c->settings->json)
		put_verdict_json(&text, c, verdict);
	else
		put_verdict(&text, verdict);
	put_saved(&text, c);
	PRB_TRY(prb_output_lines(&text, c->settings->json));
	if (verdict->kind != PRB_VERDICT_MOVES)
		prb_exit_pass((EXIT_VERDICT + (int)verdict->kind) << 8);
	return NULL;
}

struct prb_error *prb_cluster_hang(struct prb_cluster *c)
{
	prb_auto_verdict struct prb_verdict verdict = {};

	PRB_TRY(prb_cluster_judge(c, &verdict));
	return prb_cluster_tell(c, &verdict);
}
