/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of calls of modules as text and as JSON. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands/perf/torch/exact/exact.h"
#include "profile/recording/step_parts.h"

enum { NONE = PRB_EXACT_NONE, SHARE_WIDTH = 8, TIME_WIDTH = 10, CALLS_WIDTH = 7 };

/** Mean time of a step. */
static void put_time(struct prb_str *s, const struct prb_exact *e, double milliseconds)
{
	prb_auto_str struct prb_str text = {};

	if (milliseconds > 0)
		prb_text_duration(&text, milliseconds / 1e3 / (double)e->steps);
	prb_text_right(s, prb_str_text(&text), TIME_WIDTH);
}

/** Mean GPU time of a step, of steps for which it is known. */
static void put_gpu(struct prb_str *s, const struct prb_exact *e, double milliseconds)
{
	prb_auto_str struct prb_str text = {};

	if (!e->gpu_steps)
		return;
	if (milliseconds > 0)
		prb_text_duration(&text, milliseconds / 1e3 / (double)e->gpu_steps);
	prb_text_right(s, prb_str_text(&text), TIME_WIDTH);
}

/** Mean memory of a step; negative if forward frees more than it allocates. */
static void put_memory(struct prb_str *s, const struct prb_exact *e, double bytes)
{
	prb_auto_str struct prb_str text = {};

	if (!e->gpu_memory)
		return;
	bytes /= (double)e->steps;
	if (bytes <= -1)
		prb_str_puts(&text, "-");
	if (fabs(bytes) >= 1)
		prb_text_bytes(&text, fabs(bytes));
	prb_text_right(s, prb_str_text(&text), TIME_WIDTH);
}

static void put_share(struct prb_str *s, const struct prb_exact *e, double milliseconds)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%.1f %%", e->duration > 0 ? 100 * milliseconds / e->duration : 0);
	prb_text_right(s, prb_str_text(&text), SHARE_WIDTH);
}

/** Mean number in a step. */
static void put_mean(struct prb_str *s, const struct prb_exact *e, uint64_t count)
{
	double mean = (double)count / (double)e->steps;

	prb_str_printf(s, mean < 1000 ? "%.3g" : "%.0f", mean);
}

/** Path of a module relative to its parent's. */
static const char *short_path(const struct prb_exact *e, const struct prb_exact_node *node)
{
	const char *above = node->parent == NONE ? NULL : e->nodes.items[node->parent].path;
	size_t length = above ? strlen(above) : 0;

	return above && !strncmp(node->path, above, length) && node->path[length] == '.'
		       ? node->path + length + 1
		       : node->path;
}

static void put_node(struct prb_str *s, const struct prb_exact *e,
		     const struct prb_exact_node *node)
{
	prb_auto_str struct prb_str calls = {};

	put_share(s, e, prb_exact_total(node));
	put_time(s, e, prb_exact_total(node));
	put_time(s, e, node->forward + node->recompute);
	put_time(s, e, node->backward);
	put_time(s, e, node->self_forward + node->self_backward);
	put_gpu(s, e, node->gpu_forward + node->gpu_backward);
	put_memory(s, e, node->memory);
	put_mean(&calls, e, node->calls);
	prb_text_right(s, prb_str_text(&calls), CALLS_WIDTH);
	prb_text_spaces(s, 2 + 2 * ((size_t)node->depth + node->evaluation));
	prb_text_escape(s, short_path(e, node));
	prb_str_puts(s, ": ");
	prb_text_escape(s, node->class);
	if (node->recompute > 0)
		prb_str_puts(s, " (recomputed)");
	prb_str_putc(s, '\n');
}

static void put_nodes(struct prb_str *s, const struct prb_exact *e, uint32_t first, bool evaluation)
{
	/* The recursion is bounded by DEEPEST. */
	for (uint32_t i = first; i != NONE; i = e->nodes.items[i].next) {
		if (e->nodes.items[i].evaluation != evaluation)
			continue;
		put_node(s, e, &e->nodes.items[i]);
		put_nodes(s, e, e->nodes.items[i].first, evaluation);
	}
}

static void put_part(struct prb_str *s, const struct prb_exact *e, const char *name,
		     double milliseconds, double gpu)
{
	if (milliseconds <= 0)
		return;
	put_share(s, e, milliseconds);
	put_time(s, e, milliseconds);
	prb_text_spaces(s, 3 * TIME_WIDTH);
	put_gpu(s, e, gpu);
	put_memory(s, e, 0);
	prb_text_spaces(s, CALLS_WIDTH + 2);
	prb_str_printf(s, "%s\n", name);
}

/*
 * Time outside of the phases. Not computed from modules: recomputation by checkpointing lies within
 * backward.
 */
static double rest_of(const struct prb_exact *e)
{
	return e->duration - e->forward - e->evaluation - e->backward - e->optimizer - e->data -
	       e->communication;
}

static void put_head(struct prb_str *s, const struct prb_exact *e,
		     const struct prb_exact_about *about)
{
	prb_str_printf(s, "%d  ", about->pid);
	prb_text_escape(s, about->command ? about->command : "");
	prb_str_puts(s, "\nPython ");
	prb_text_escape(s, about->python ? about->python : "?");
	prb_str_printf(s, " · %llu steps timed, %llu between them · median ",
		       (unsigned long long)e->steps, (unsigned long long)e->others);
	prb_text_duration(s, e->p50 / 1e3);
	prb_str_puts(s, ", 99 % within ");
	prb_text_duration(s, e->p99 / 1e3);
	if (e->micro > e->steps) {
		prb_str_puts(s, " · ");
		put_mean(s, e, e->micro);
		prb_str_puts(s, " passes a step");
	}
	if (e->gpu_steps) {
		prb_str_puts(s, " · GPU ");
		prb_text_duration(s, e->gpu / 1e3 / (double)e->gpu_steps);
		prb_str_puts(s, " a step");
	}
	prb_str_puts(s, "\n");
	if (e->cut)
		prb_str_printf(s,
			       "%llu timed steps are left out: the ring has dropped some of their "
			       "calls; take fewer --steps\n",
			       (unsigned long long)e->cut);
	if (e->gpu_seen && e->gpu_steps < e->steps)
		prb_str_printf(s,
			       "the GPU's times of %llu timed steps are not known: a step has more "
			       "calls than the agent can follow there\n",
			       (unsigned long long)(e->steps - e->gpu_steps));
	if (e->unnamed) {
		put_mean(s, e, e->unnamed);
		prb_str_puts(s, " calls a step are in no row: at most 131,072 calls of a step are "
				"counted\n");
	}
	prb_str_putc(s, '\n');
}

static void put_cost(struct prb_str *s, const struct prb_exact *e)
{
	prb_str_puts(s, "cost: a timed step took ");
	prb_text_duration(s, e->sampled / 1e3);
	if (isfinite(e->unsampled)) {
		prb_str_puts(s, ", one between them ");
		prb_text_duration(s, e->unsampled / 1e3);
	}
	prb_str_puts(s, " (medians); functions of the agent took ");
	prb_text_duration(s, e->own / 1e3);
	prb_str_puts(s, " of it, which is not in the times above\n");
}

struct prb_error *prb_exact_text(const struct prb_exact *e, const struct prb_exact_about *about,
				 struct prb_str *s)
{
	put_head(s, e, about);
	prb_str_printf(s, "   share  per step   forward  backward      self%s%s  calls  module\n",
		       e->gpu_steps ? "       GPU" : "", e->gpu_memory ? "    memory" : "");
	put_nodes(s, e, e->first, false);
	put_part(s, e, prb_step_part_name(PRB_STEP_EVALUATION), e->evaluation, 0);
	put_nodes(s, e, e->first, true);
	put_part(s, e, "optimizer", e->optimizer, e->gpu_optimizer);
	put_part(s, e, e->loader ? "data loading" : "before the first module: data", e->data, 0);
	put_part(s, e, prb_step_part_name(PRB_STEP_COMMUNICATION), e->communication, 0);
	put_part(s, e, "other", rest_of(e), 0);
	put_cost(s, e);
	return s->failed ? prb_error_nomem() : NULL;
}

static void put_nodes_json(struct prb_json *json, const struct prb_exact *e)
{
	const struct prb_exact_node *node;

	prb_json_open(json, "nodes", '[');
	prb_vec_each (node, &e->nodes) {
		prb_json_open(json, NULL, '{');
		prb_json_natural(json, "parent", node->parent == NONE ? -1 : (int64_t)node->parent);
		prb_json_text(json, "path", node->path);
		prb_json_text(json, "class", node->class);
		prb_json_bool(json, "evaluation", node->evaluation);
		prb_json_integer(json, "calls", (int64_t)node->calls);
		prb_json_real(json, "total_ms", prb_exact_total(node), 6);
		prb_json_real(json, "forward_ms", node->forward, 6);
		prb_json_real(json, "recompute_ms", node->recompute, 6);
		prb_json_real(json, "backward_ms", node->backward, 6);
		prb_json_signed(json, "self_forward_ms", node->self_forward, 6);
		prb_json_signed(json, "self_backward_ms", node->self_backward, 6);
		prb_json_real(json, "gpu_forward_ms", e->gpu_steps ? node->gpu_forward : NAN, 6);
		prb_json_real(json, "gpu_backward_ms", e->gpu_steps ? node->gpu_backward : NAN, 6);
		prb_json_signed(json, "gpu_bytes", e->gpu_memory ? node->memory : NAN, 0);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

struct prb_error *prb_exact_json(const struct prb_exact *e, const struct prb_exact_about *about,
				 struct prb_str *s)
{
	struct prb_json json = {.out = s};

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", about->pid);
	prb_json_text(&json, "command", about->command);
	prb_json_text(&json, "python", about->python);
	prb_json_integer(&json, "steps", (int64_t)e->steps);
	prb_json_integer(&json, "steps_between", (int64_t)e->others);
	prb_json_integer(&json, "steps_cut", (int64_t)e->cut);
	prb_json_integer(&json, "unnamed_calls", (int64_t)e->unnamed);
	prb_json_integer(&json, "passes", (int64_t)e->micro);
	prb_json_real(&json, "duration_ms", e->duration, 6);
	prb_json_real(&json, "data_ms", e->data, 6);
	prb_json_bool(&json, "data_loader", e->loader);
	prb_json_real(&json, "forward_ms", e->forward, 6);
	prb_json_real(&json, "evaluation_ms", e->evaluation, 6);
	prb_json_real(&json, "backward_ms", e->backward, 6);
	prb_json_real(&json, "optimizer_ms", e->optimizer, 6);
	prb_json_real(&json, "communication_ms", e->communication, 6);
	prb_json_signed(&json, "other_ms", rest_of(e), 6);
	prb_json_real(&json, "median_ms", e->p50, 6);
	prb_json_real(&json, "p99_ms", e->p99, 6);
	prb_json_real(&json, "timed_median_ms", e->sampled, 6);
	prb_json_real(&json, "between_median_ms", e->unsampled, 6);
	prb_json_real(&json, "agent_median_ms", e->own, 6);
	prb_json_integer(&json, "gpu_steps", (int64_t)e->gpu_steps);
	prb_json_real(&json, "gpu_ms", e->gpu_steps ? e->gpu : NAN, 6);
	prb_json_real(&json, "gpu_optimizer_ms", e->gpu_steps ? e->gpu_optimizer : NAN, 6);
	put_nodes_json(&json, e);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
	return s->failed ? prb_error_nomem() : NULL;
}
