/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of torch.ops and torch.kernels, as agent/torch/ops.c takes them: cells divided by tabs. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/perf/torch/ops/ops.h"
#include "control/eval.h"

enum { OPERATORS, KERNELS, BATCH = 1 << 18, MOST_ROWS = 50000 };
static const double KEEP_SECONDS = 20;

static struct prb_error *send(struct prb_agent *agent, int table, struct prb_str *lines)
{
	struct prb_eval how = {.flags = PRB_WIRE_TORCH, .timeout = KEEP_SECONDS};
	struct prb_target *t = prb_agent_target(agent);
	struct prb_eval_result result = {};
	prb_auto_str struct prb_str code = {};
	struct prb_error *err;

	prb_str_printf(&code, "ops-rows\n%d\n", table);
	prb_str_append(&code, lines->data, lines->length);
	prb_str_truncate(lines, 0);
	err = code.failed ? prb_error_nomem()
			  : prb_eval_run(agent, &how, "<probing>", &code, &result);
	if (!err && result.outcome == PRB_WIRE_RAISED)
		err = prb_error_create(PRB_ERROR_FAILED, "%.200s", prb_str_text(&result.err));
	if (!err)
		err = prb_eval_judge(t, t ? t->pid : 0, &how, &result);
	prb_eval_result_deinit(&result);
	return err;
}

static void put_text(struct prb_str *s, const char *text)
{
	for (; text && *text; text++)
		prb_str_putc(s, (unsigned char)*text < ' ' ? '?' : *text);
	prb_str_putc(s, '\t');
}

/** Nothing if it is not known. */
static void put_number(struct prb_str *s, int64_t value, bool known)
{
	if (known)
		prb_str_printf(s, "%" PRId64, value);
	prb_str_putc(s, '\t');
}

static void put_operator(struct prb_str *s, const struct prb_kineto *trace,
			 const struct prb_kineto_event *e, int64_t number)
{
	const struct prb_kineto_module *m = prb_kineto_module_of(trace, e);

	put_number(s, e->step, true);
	put_text(s, e->name);
	put_text(s, prb_kineto_part_name(e->part));
	put_text(s, m ? m->path : NULL);
	put_text(s, m ? m->class : NULL);
	put_text(s, m ? m->file : NULL);
	put_number(s, m ? m->line : 0, m && m->line > 0);
	put_text(s, e->shapes);
	put_number(s, e->flops, e->flops > 0);
	put_number(s, e->duration, true);
	put_number(s, e->self, true);
	put_number(s, e->begin - trace->first_step, true);
	put_number(s, e->thread, e->thread >= 0);
	put_number(s, e->depth, true);
	put_number(s, number, true);
}

static void put_kernel(struct prb_str *s, const struct prb_kineto *trace,
		       const struct prb_kineto_event *e, int64_t parent)
{
	const struct prb_kineto_module *m = prb_kineto_module_of(trace, e);

	put_number(s, e->step, true);
	put_text(s, e->name);
	put_text(s, prb_kineto_kind_name(e->kind));
	put_text(s, prb_kineto_part_name(e->part));
	put_text(s, m ? m->path : NULL);
	put_text(s, parent < 0 ? NULL : trace->events.items[e->parent].name);
	put_number(s, parent, parent >= 0);
	put_number(s, e->duration, true);
	put_number(s, e->begin - trace->first_step, true);
	put_number(s, e->device, e->device >= 0);
	put_number(s, e->thread, e->thread >= 0);
	put_number(s, e->correlation, e->correlation >= 0);
}

static struct prb_error *send_all(struct prb_agent *agent, const struct prb_kineto *trace,
				  struct prb_str lines[2])
{
	unsigned counts[2] = {};

	for (size_t i = 0; i < trace->events.count; i++) {
		const struct prb_kineto_event *e = &trace->events.items[i];
		const bool on_gpu = prb_kineto_on_gpu(e->kind);
		const int table = on_gpu ? KERNELS : OPERATORS;

		if (e->step < 0 || (!on_gpu && e->kind != PRB_KINETO_OP) ||
		    counts[table]++ >= MOST_ROWS)
			continue;
		if (on_gpu)
			put_kernel(&lines[table], trace, e,
				   e->parent == PRB_KINETO_NONE ? -1 : (int64_t)e->parent);
		else
			put_operator(&lines[table], trace, e, (int64_t)i);
		prb_str_putc(&lines[table], '\n');
		if (lines[table].failed)
			return prb_error_nomem();
		if (lines[table].length > BATCH)
			PRB_TRY(send(agent, table, &lines[table]));
	}
	for (int table = OPERATORS; table <= KERNELS; table++)
		if (lines[table].length)
			PRB_TRY(send(agent, table, &lines[table]));
	return NULL;
}

struct prb_error *prb_ops_keep_rows(struct prb_agent *agent, const struct prb_ops *ops)
{
	struct prb_str lines[2] = {};
	struct prb_error *err = send_all(agent, &ops->trace, lines);

	prb_str_deinit(&lines[OPERATORS]);
	prb_str_deinit(&lines[KERNELS]);
	return err;
}
