/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/torch/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/perf/torch/growth.h"
#include "cli/commands/perf/torch/loader.h"
#include "cli/commands/perf/torch/ranks.h"
#include "cli/commands/perf/torch/torch.h"
#include "judge/limits.h"
#include "rings/nan_origin.h"

struct rule {
	enum prb_step_part part;
	const char *text; /* after the share */
	const char *refuted_by;
};

static const struct rule rules[] = {
	{PRB_STEP_DATA, "of each step waits for the data loader",
	 "steps that are no shorter when the same batch is used again and again"},
	{PRB_STEP_COMMUNICATION, "of each step waits for other ranks",
	 "the same share on all ranks in `probing cluster slow`: then it is the network, no late "
	 "rank"},
	{PRB_STEP_EVALUATION, "is evaluation: modules that run without gradients",
	 "another share in a recording of several whole epochs (--duration)"},
	{PRB_STEP_COMPILING, "is compiling by torch.compile",
	 "the same share in a later recording: then it compiles again and again, and "
	 "TORCH_LOGS=recompiles names why"},
};

void prb_torch_verdicts_deinit(struct prb_torch_verdicts *verdicts)
{
	struct prb_torch_verdict *verdict;

	prb_vec_each (verdict, &verdicts->list) {
		free(verdict->text);
		free(verdict->evidence);
	}
	prb_vec_free(&verdicts->list);
}

/* What a part's samples were in, of the recording by function. */
struct inside {
	int64_t wall, asleep;
	int64_t *functions; /* wall time of each, counted once a stack */
};

static const struct prb_tree_function *function_of(const struct prb_recording *r, uint32_t stack)
{
	return prb_tree_function_of(r->tree, stack);
}

/* The program's function that torch calls in this part: the outermost one below torch's frames. */
static uint32_t called_function(const struct prb_recording *r, uint32_t stack,
				enum prb_step_part part)
{
	uint32_t chain[256], found = UINT32_MAX;
	size_t count = 0;
	struct prb_step_walk walk = PRB_STEP_WALK;

	for (; stack && count < PRB_ARRAY_SIZE(chain); stack = r->tree->stacks.items[stack].parent)
		chain[count++] = stack;
	while (count--) {
		const struct prb_tree_function *f = function_of(r, chain[count]);

		if (walk.part == part && found == UINT32_MAX && f->kind == PRB_FUNCTION_PYTHON &&
		    f->file && !strstr(f->file, "/torch/"))
			found = r->tree->frames.items[r->tree->stacks.items[chain[count]].frame]
					.function;
		prb_step_walk(&walk, f, PRB_STEP_FRAME_PLAIN);
	}
	return walk.part == part ? found : UINT32_MAX - 1;
}

static void look_inside(const struct prb_recording *r, enum prb_step_part part, struct inside *ret)
{
	const struct prb_run *run;

	prb_vec_each (run, &r->runs) {
		uint32_t function = called_function(r, run->stack, part);

		if (function == UINT32_MAX - 1)
			continue;
		ret->wall += run->wall;
		ret->asleep += run->state == PRB_RUN_ASLEEP ? run->wall : 0;
		if (function != UINT32_MAX)
			ret->functions[function] += run->wall;
	}
}

/* Seconds of a step; 0: unknown. */
static double step_of(const struct prb_recording *r, const struct prb_torch_tree *tree)
{
	return tree->steps && tree->steps_exact ? (double)r->duration / 1e9 / (double)tree->steps
						: 0;
}

static struct prb_error *put_workers(const struct prb_recording *r,
				     const struct prb_torch_tree *tree, struct prb_str *s)
{
	__attribute__((cleanup(prb_torch_loader_deinit))) struct prb_torch_loader loader = {};

	PRB_TRY(prb_torch_loader_look(r->pid, &loader));
	if (loader.workers)
		prb_torch_loader_text(&loader, step_of(r, tree), s);
	else
		prb_str_puts(s, ": its workers take longer than the rest of the step");
	return NULL;
}

/* Says whether workers make the batches, or else what the thread itself does for them. */
static struct prb_error *put_loader(const struct prb_recording *r,
				    const struct prb_torch_tree *tree, const struct inside *inside,
				    double share, struct prb_str *s)
{
	uint32_t most = 0;

	for (uint32_t i = 1; i < r->tree->functions.count; i++)
		if (inside->functions[i] > inside->functions[most])
			most = i;
	if (!inside->wall)
		return NULL;
	/* The worker's queue is no function of the program's, but of multiprocessing. */
	if (!r->tree->functions.count || inside->functions[most] * 2 < inside->wall ||
	    strstr(r->tree->functions.items[most].file, "/multiprocessing/") ||
	    strstr(r->tree->functions.items[most].file, "/queue.py") ||
	    strstr(r->tree->functions.items[most].file, "/threading.py"))
		return inside->asleep * 2 > inside->wall ? put_workers(r, tree, s) : NULL;
	prb_str_puts(s, ": the training thread makes the batches itself, ");
	prb_str_printf(s, "%.0f %% in ",
		       100 * share * (double)inside->functions[most] / (double)inside->wall);
	prb_text_escape(s, r->tree->functions.items[most].name);
	return NULL;
}

static struct prb_error *push(struct prb_torch_tree *tree, const struct prb_torch_verdict *verdict,
			      const struct prb_str *text, const struct prb_str *evidence)
{
	struct prb_torch_verdict *added;

	if (text->failed || evidence->failed)
		return prb_error_nomem();
	added = prb_vec_push(&tree->verdicts.list);
	if (!added)
		return prb_error_nomem();
	*added = *verdict;
	PRB_TRY(prb_str_copy(prb_str_text(text), &added->text));
	return prb_str_copy(prb_str_text(evidence), &added->evidence);
}

/* The process is the rank that the others wait for: its own samples do not show that. */
static struct prb_error *add_late(const struct prb_torch_ranks *ranks, struct prb_torch_tree *tree)
{
	prb_auto_str struct prb_str text = {}, evidence = {};

	prb_str_puts(&text, "this is the late rank: ");
	prb_torch_ranks_text(ranks, &text);
	prb_torch_ranks_evidence(ranks, &evidence);
	return push(tree,
		    &(struct prb_torch_verdict){
			    .part = PRB_STEP_PARTS,
			    .share = ranks->found.others_wait,
			    .refuted_by = "another role of this rank, with less to exchange"},
		    &text, &evidence);
}

static struct prb_error *add(const struct prb_recording *r, const struct prb_torch_ranks *ranks,
			     struct prb_torch_tree *tree, const struct rule *rule,
			     const struct prb_torch_node *node)
{
	const struct prb_share share = prb_report_share(&tree->report, node->total);
	prb_auto_free int64_t *functions = calloc(r->tree->functions.count + 1, sizeof(*functions));
	struct inside inside = {.functions = functions};
	prb_auto_str struct prb_str text = {}, evidence = {};

	if (!functions)
		return prb_error_nomem();
	prb_str_printf(&text, "%.0f %% %s", 100 * share.share, rule->text);
	look_inside(r, rule->part, &inside);
	if (rule->part == PRB_STEP_DATA)
		PRB_TRY(put_loader(r, tree, &inside, share.share, &text));
	if (rule->part == PRB_STEP_COMMUNICATION && ranks->late.rank && !ranks->own) {
		prb_str_puts(&text, ": ");
		prb_torch_ranks_text(ranks, &text);
	}
	prb_str_printf(&evidence, "%llu of %llu samples, %.0f–%.0f %% of the time",
		       (unsigned long long)node->samples, (unsigned long long)tree->report.taken,
		       100 * share.low, 100 * share.high);
	if (inside.wall > 0)
		prb_str_printf(&evidence, "; asleep in %.0f %% of them",
			       100 * (double)inside.asleep / (double)inside.wall);
	if (rule->part == PRB_STEP_COMMUNICATION && ranks->job) {
		prb_str_puts(&evidence, "; ");
		prb_torch_ranks_evidence(ranks, &evidence);
	}
	return push(tree,
		    &(struct prb_torch_verdict){.part = rule->part,
						.share = share.share,
						.refuted_by = rule->refuted_by},
		    &text, &evidence);
}

static int compare(const void *a, const void *b)
{
	const struct prb_torch_verdict *one = a, *other = b;

	return (one->share < other->share) - (one->share > other->share);
}

/* A loss that is no number makes all the time of no use. */
static struct prb_error *add_nan(struct prb_target *target, struct prb_torch_tree *tree)
{
	prb_auto_str struct prb_str text = {}, evidence = {};
	struct prb_nan_origin origin;

	PRB_TRY(prb_nan_origin_find(target, &origin));
	if (origin.steps < prb_limit(PRB_LIMIT_NAN))
		return NULL;
	prb_nan_origin_text(&origin, &text);
	prb_nan_origin_evidence(&origin, &evidence);
	return push(tree,
		    &(struct prb_torch_verdict){.part = PRB_STEP_PARTS,
						.share = 1,
						.refuted_by = "a program that skips such steps on "
							      "purpose, and goes on"},
		    &text, &evidence);
}

static struct prb_error *add_growth(const struct prb_recording *r,
				    const struct prb_torch_growth *growth,
				    struct prb_torch_tree *tree)
{
	prb_auto_str struct prb_str text = {}, evidence = {};

	if (!growth->held.name)
		return NULL;
	prb_torch_growth_text(growth, step_of(r, tree), &text);
	prb_torch_growth_evidence(growth, &evidence);
	return push(tree,
		    &(struct prb_torch_verdict){
			    .part = PRB_STEP_PARTS,
			    .refuted_by =
				    "a longer look (--duration) in which it is emptied again, as "
				    "at the end of an epoch"},
		    &text, &evidence);
}

struct prb_error *prb_torch_judge(const struct prb_recording *recording, struct prb_target *target,
				  const struct prb_torch_ranks *ranks,
				  const struct prb_torch_growth *growth,
				  struct prb_torch_tree *tree)
{
	const struct prb_torch_node *node;
	struct prb_error *err = add_nan(target, tree);

	/* Rings that cannot be read say nothing. */
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (ranks->own)
		PRB_TRY(add_late(ranks, tree));
	PRB_TRY(add_growth(recording, growth, tree));

	prb_vec_each (node, &tree->list) {
		if (node->path || node->parent != UINT32_MAX)
			continue;
		for (size_t i = 0; i < PRB_ARRAY_SIZE(rules); i++)
			if (node->order == rules[i].part &&
			    /* The lower bound, so that chance says nothing. */
			    prb_report_share(&tree->report, node->total).low * 100 >=
				    prb_limit(PRB_LIMIT_STEP_PART))
				PRB_TRY(add(recording, ranks, tree, &rules[i], node));
	}
	if (tree->verdicts.list.count)
		qsort(tree->verdicts.list.items, tree->verdicts.list.count,
		      sizeof(*tree->verdicts.list.items), compare);
	return NULL;
}

void prb_torch_verdicts_text(const struct prb_torch_verdicts *verdicts, struct prb_str *s)
{
	const struct prb_torch_verdict *verdict;

	prb_vec_each (verdict, &verdicts->list)
		prb_str_printf(s, "%s\n  evidence: %s\n  refuted by: %s\n", verdict->text,
			       verdict->evidence, verdict->refuted_by);
	if (verdicts->list.count)
		prb_str_putc(s, '\n');
}

void prb_torch_verdicts_json(const struct prb_torch_verdicts *verdicts, struct prb_json *json)
{
	const struct prb_torch_verdict *verdict;

	prb_json_open(json, "verdicts", '[');
	prb_vec_each (verdict, &verdicts->list) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "part",
			      verdict->part < PRB_STEP_PARTS ? prb_step_part_name(verdict->part)
							     : NULL);
		prb_json_real(json, "share", verdict->share, 6);
		prb_json_text(json, "text", verdict->text);
		prb_json_text(json, "evidence", verdict->evidence);
		prb_json_text(json, "refuted_by", verdict->refuted_by);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}
