/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Operators and kernels as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/perf/torch/ops/ops.h"

enum { MOST_LINES = 25, SHARE_WIDTH = 8, TIME_WIDTH = 10, CALLS_WIDTH = 8, NAME_WIDTH = 34 };
static const double giga = 1e9, milli = 1e6, least_share = 0.002;

static void put_right(struct prb_str *s, const char *text, size_t width)
{
	prb_str_putc(s, ' ');
	prb_text_right(s, text, width - 1);
}

static void put_share(struct prb_str *s, int64_t part, int64_t whole)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%.1f %%", whole > 0 ? 100.0 * (double)part / (double)whole : 0);
	put_right(s, prb_str_text(&text), SHARE_WIDTH);
}

static void put_time(struct prb_str *s, int64_t ns)
{
	prb_auto_str struct prb_str text = {};

	if (ns > 0)
		prb_text_duration(&text, (double)ns / 1e9);
	put_right(s, prb_str_text(&text), TIME_WIDTH);
}

static void put_number(struct prb_str *s, double number, size_t width)
{
	prb_auto_str struct prb_str text = {};

	if (number > 0)
		prb_str_printf(&text,
			       number < 0.01   ? "%.1g"
			       : number < 1000 ? "%.3g"
					       : "%.0f",
			       number);
	put_right(s, prb_str_text(&text), width);
}

/** "forward of model.layers.0: Block". */
static void put_place(struct prb_str *s, const struct prb_ops_group *g)
{
	const char *part = prb_kineto_part_name(g->part);

	if (part)
		prb_str_printf(s, "%s%s", part, g->module ? " of " : "");
	if (!g->module)
		return;
	prb_text_escape(s, g->module->path ? g->module->path : "?");
	if (!g->module->class)
		return;
	prb_str_puts(s, ": ");
	prb_text_escape(s, g->module->class);
}

static void put_group(struct prb_str *s, const struct prb_ops *ops, const struct prb_ops_group *g,
		      bool flops)
{
	const int64_t steps = (int64_t)PRB_MAX(ops->steps.count, 1);
	prb_auto_str struct prb_str name = {};

	put_share(s, g->self, ops->duration);
	put_time(s, g->self / steps);
	put_number(s, (double)g->calls / (double)steps, CALLS_WIDTH);
	if (flops)
		put_number(s, (double)g->flops / (double)steps / giga, CALLS_WIDTH);
	prb_str_puts(s, "  ");
	prb_text_escape(&name, g->name);
	if (g->module || prb_kineto_part_name(g->part)) {
		prb_text_column(s, prb_str_text(&name), NAME_WIDTH);
		prb_str_puts(s, prb_text_width(prb_str_text(&name)) >= NAME_WIDTH ? "  " : "");
	} else {
		prb_str_puts(s, prb_str_text(&name));
	}
	put_place(s, g);
	prb_str_putc(s, '\n');
}

static void put_groups(struct prb_str *s, const struct prb_ops *ops,
		       const struct prb_ops_groups *groups, bool flops, const char *table)
{
	size_t shown = 0;

	while (shown < groups->list.count && shown < MOST_LINES &&
	       (double)groups->list.items[shown].self >= least_share * (double)ops->duration)
		put_group(s, ops, &groups->list.items[shown++], flops);
	if (shown < groups->list.count)
		prb_str_printf(s, "  and %zu more: 'probing %d query \"SELECT * FROM %s\"'\n",
			       groups->list.count - shown, ops->pid, table);
}

static void put_head(struct prb_str *s, const struct prb_ops *ops)
{
	const size_t steps = ops->steps.count;

	prb_str_printf(s, "%d  ", ops->pid);
	prb_text_escape(s, ops->command ? ops->command : "");
	prb_str_puts(s, "\nPython ");
	prb_text_escape(s, ops->python ? ops->python : "?");
	prb_str_printf(s, " · %zu step%s of ", steps, steps == 1 ? "" : "s");
	prb_text_duration(s, (double)ops->duration / 1e9 / (double)PRB_MAX(steps, 1u));
	prb_str_printf(s, ", recorded by torch's profiler · %.0f operators a step\n",
		       (double)ops->operations / (double)PRB_MAX(steps, 1u));
	if (ops->note && *ops->note) {
		prb_text_escape(s, ops->note);
		prb_str_putc(s, '\n');
	}
	if (ops->trace.skipped)
		prb_str_printf(s, "%llu events make no sense, and are left out\n",
			       (unsigned long long)ops->trace.skipped);
	prb_str_putc(s, '\n');
}

static void put_gpu(struct prb_str *s, const struct prb_kineto_gpu *gpu)
{
	const double whole = gpu->total > 0 ? (double)gpu->total / 100 : 1;
	const int64_t idle = gpu->total - gpu->computes;

	prb_str_printf(s,
		       "GPU %lld: idle %.1f %%: %.1f %% waits for the host, %.1f %% for a copy, "
		       "%.1f %% for a collective, %.1f %% for another stream\n",
		       (long long)gpu->device, (double)idle / whole, (double)gpu->for_host / whole,
		       (double)gpu->for_copy / whole, (double)gpu->for_collective / whole,
		       (double)gpu->for_other / whole);
	if (gpu->collectives)
		prb_str_printf(s, "  %.1f %% of the time of collectives is behind computation\n",
			       100 * (double)gpu->overlap / (double)gpu->collectives);
}

static int64_t mean_step(const struct prb_ops *ops)
{
	int64_t sum = 0;
	const int64_t *step;

	prb_vec_each (step, &ops->steps)
		sum += *step;
	return ops->steps.count ? sum / (int64_t)ops->steps.count : 0;
}

static void put_cost(struct prb_str *s, const struct prb_ops *ops)
{
	prb_str_puts(s, "cost: a recorded step took ");
	prb_text_duration(s, (double)mean_step(ops) / 1e9);
	if (ops->before >= 0) {
		prb_str_puts(s, ", the one before ");
		prb_text_duration(s, (double)ops->before / 1e9);
	}
	if (ops->after >= 0) {
		prb_str_puts(s, ", the one after ");
		prb_text_duration(s, (double)ops->after / 1e9);
	}
	prb_str_puts(s, "; the process waited ");
	prb_text_duration(s, (double)(ops->began + ops->ended + ops->wrote) / 1e9);
	prb_str_puts(s, " more for the profiler\n");
}

struct prb_error *prb_ops_text(const struct prb_ops *ops, struct prb_str *s)
{
	const struct prb_kineto_gpu *gpu;

	prb_vec_each (gpu, &ops->gpus.list)
		prb_kineto_gpu_verdict(gpu, s);
	put_head(s, ops);
	prb_str_puts(s, "    self  per step   calls  GFLOP   operator                          "
			"where\n");
	put_share(s, ops->outside, ops->duration);
	put_time(s, ops->outside / (int64_t)PRB_MAX(ops->steps.count, 1));
	prb_text_spaces(s, 2 * (size_t)CALLS_WIDTH + 2);
	prb_str_puts(s, "in no operator: Python, waits\n");
	put_groups(s, ops, &ops->operators, true, "torch.ops");
	if (ops->kernels.list.count) {
		prb_str_puts(s, "\n    time  per step   calls  kernel                            "
				"where\n");
		put_groups(s, ops, &ops->kernels, false, "torch.kernels");
	}
	prb_vec_each (gpu, &ops->gpus.list)
		put_gpu(s, gpu);
	put_cost(s, ops);
	return s->failed ? prb_error_nomem() : NULL;
}

static void put_groups_json(struct prb_json *json, const char *key,
			    const struct prb_ops_groups *groups, bool on_gpu)
{
	const struct prb_ops_group *g;

	prb_json_open(json, key, '[');
	prb_vec_each (g, &groups->list) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "name", g->name);
		if (on_gpu)
			prb_json_text(json, "kind", prb_kineto_kind_name(g->kind));
		prb_json_text(json, "part", prb_kineto_part_name(g->part));
		prb_json_text(json, "module", g->module ? g->module->path : NULL);
		prb_json_text(json, "class", g->module ? g->module->class : NULL);
		prb_json_text(json, "file", g->module ? g->module->file : NULL);
		prb_json_natural(json, "lineno",
				 g->module && g->module->line > 0 ? g->module->line : -1);
		if (!on_gpu)
			prb_json_text(json, "shapes", g->shapes);
		prb_json_integer(json, "calls", (int64_t)g->calls);
		prb_json_real(json, "self_ms", (double)g->self / milli, 6);
		prb_json_real(json, "total_ms", (double)g->total / milli, 6);
		if (!on_gpu)
			prb_json_natural(json, "flops", g->flops > 0 ? g->flops : -1);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static void put_gpus_json(struct prb_json *json, const struct prb_ops *ops)
{
	const struct prb_kineto_gpu *gpu;

	prb_json_open(json, "gpus", '[');
	prb_vec_each (gpu, &ops->gpus.list) {
		prb_json_open(json, NULL, '{');
		prb_json_integer(json, "device", gpu->device);
		prb_json_real(json, "total_ms", (double)gpu->total / milli, 6);
		prb_json_real(json, "computes_ms", (double)gpu->computes / milli, 6);
		prb_json_real(json, "collectives_ms", (double)gpu->collectives / milli, 6);
		prb_json_real(json, "overlap_ms", (double)gpu->overlap / milli, 6);
		prb_json_real(json, "idle_host_ms", (double)gpu->for_host / milli, 6);
		prb_json_real(json, "idle_copy_ms", (double)gpu->for_copy / milli, 6);
		prb_json_real(json, "idle_collective_ms", (double)gpu->for_collective / milli, 6);
		prb_json_real(json, "idle_stream_ms", (double)gpu->for_other / milli, 6);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

struct prb_error *prb_ops_json(const struct prb_ops *ops, struct prb_str *s)
{
	struct prb_json json = {.out = s};
	const int64_t *step;

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", ops->pid);
	prb_json_text(&json, "command", ops->command);
	prb_json_text(&json, "python", ops->python);
	prb_json_text(&json, "note", ops->note && *ops->note ? ops->note : NULL);
	prb_json_real(&json, "duration_ms", (double)ops->duration / milli, 6);
	prb_json_real(&json, "in_no_operator_ms", (double)ops->outside / milli, 6);
	prb_json_integer(&json, "operations", (int64_t)ops->operations);
	prb_json_integer(&json, "events_left_out", (int64_t)ops->trace.skipped);
	prb_json_real(&json, "step_before_ms", (double)ops->before / milli, 6);
	prb_json_open(&json, "steps_ms", '[');
	prb_vec_each (step, &ops->steps)
		prb_json_real(&json, NULL, (double)*step / milli, 6);
	prb_json_close(&json, ']');
	prb_json_real(&json, "step_after_ms", (double)ops->after / milli, 6);
	prb_json_real(&json, "began_ms", (double)ops->began / milli, 6);
	prb_json_real(&json, "ended_ms", (double)ops->ended / milli, 6);
	prb_json_real(&json, "wrote_ms", (double)ops->wrote / milli, 6);
	put_groups_json(&json, "operators", &ops->operators, false);
	put_groups_json(&json, "kernels", &ops->kernels, true);
	put_gpus_json(&json, ops);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
	return s->failed ? prb_error_nomem() : NULL;
}
