/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Has the agent run torch's profiler, and shows what comes of it. */
#include "cli/commands/perf/torch/ops/ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/torch/asking.h"
#include "command/exit.h"
#include "command/output.h"
#include "control/eval.h"
#include "control/load.h"
#include "target/spec/command_line.h"
#include "target/spec/target_spec.h"

enum { MOST_MIB = 512, FIXED_TIMES = 5 };
static const double default_seconds = 60;
/** How long the process may write after its last step, and its main thread may take to end it. */
static const double WRITE_SECONDS = 60, END_SECONDS = 5;

struct taker {
	struct prb_str out, err;
};

static struct prb_error *take(void *context, enum prb_wire_type what, const void *data,
			      size_t length)
{
	struct taker *t = context;
	struct prb_str *to = what == PRB_WIRE_STDOUT ? &t->out : &t->err;

	if (to->length + length > (size_t)MOST_MIB << 20)
		return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
						       "the profile has more than %d MiB",
						       MOST_MIB),
				      "take fewer --steps");
	prb_str_append(to, data, length);
	return to->failed ? prb_error_nomem() : NULL;
}

/** The thread that trains did not come by; if it is the main one, it is asked to. */
static struct prb_error *end_on_main(struct prb_target *target, struct prb_agent *agent)
{
	struct prb_eval how = {.flags = PRB_WIRE_TORCH | PRB_WIRE_ON_MAIN, .timeout = END_SECONDS};
	struct prb_eval_result result = {};
	prb_auto_str struct prb_str code = {};
	struct prb_error *err;

	prb_str_puts(&code, "ops-end\n");
	err = code.failed ? prb_error_nomem()
			  : prb_eval_run(agent, &how, "<probing>", &code, &result);
	if (!err)
		err = prb_eval_judge(target, target->pid, &how, &result);
	prb_eval_result_deinit(&result);
	return err ? prb_error_prefix(err,
				      "torch's profiler still runs there, until the next call of "
				      "a module or step ends it")
		   : prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
						     "no step ended in that time, and torch's "
						     "profiler was ended without a result"),
				    "--duration gives it more time");
}

static struct prb_error *run(struct prb_target *target, struct prb_agent *agent,
			     const struct prb_performance_settings *s, struct taker *t)
{
	double seconds = s->record.duration > 0 ? s->record.duration : default_seconds;
	struct prb_eval how = {.lasts = seconds + WRITE_SECONDS, .put = take, .context = t};
	struct prb_eval_result result = {};
	prb_auto_str struct prb_str code = {};
	struct prb_error *err;

	prb_str_printf(&code, "ops\n%d\n%.3f", s->torch.steps ? s->torch.steps : PRB_OPS_STEPS,
		       seconds);
	err = prb_torch_ask(target, agent, &how, &code, "recording operators", "", &result);
	if (!err && result.outcome == PRB_WIRE_RAISED)
		err = strcmp(prb_str_text(&t->err), "late\n")
			      ? prb_torch_refusal(&t->err, "operators cannot be recorded",
						  "perf --torch samples modules without a "
						  "profiler in the process")
			      : end_on_main(target, agent);
	else if (!err)
		err = prb_eval_judge(target, target->pid, &how, &result);
	prb_eval_result_deinit(&result);
	return err;
}

/** The line of numbers: the step before, the one after, three costs, and each step. */
static struct prb_error *read_times(const char *line, struct prb_ops *ops)
{
	int64_t *fixed[FIXED_TIMES] = {&ops->before, &ops->after, &ops->began, &ops->ended,
				       &ops->wrote};

	for (unsigned i = 0;; i++) {
		char *end;
		long long value;
		int64_t *step;

		errno = 0;
		value = strtoll(line, &end, 10);
		if (end == line || errno)
			return i <= FIXED_TIMES
				       ? prb_error_create(PRB_ERROR_BAD_DATA,
							  "the agent's answer is not understood")
				       : NULL;
		line = end;
		if (i < FIXED_TIMES) {
			*fixed[i] = value;
			continue;
		}
		step = ops->steps.count < PRB_OPS_MOST_STEPS ? prb_vec_push(&ops->steps) : NULL;
		if (!step)
			return ops->steps.count < PRB_OPS_MOST_STEPS ? prb_error_nomem() : NULL;
		*step = PRB_MIN(PRB_MAX(value, 0), (long long)1e15);
	}
}

/** The text is the process's, and files are also looked at in terminals. */
static void tame(struct prb_str *text)
{
	for (size_t i = 0; i < text->length; i++)
		if ((unsigned char)text->data[i] < ' ' && text->data[i] != '\n')
			text->data[i] = ' ';
}

/** Two lines, then the trace. */
static struct prb_error *parse(struct taker *t, struct prb_ops *ops)
{
	char *text = t->out.data, *numbers = text ? strchr(text, '\n') : NULL,
	     *note = numbers ? strchr(numbers + 1, '\n') : NULL;

	if (!note)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the agent's answer is not understood");
	*numbers = *note = 0;
	PRB_TRY(read_times(text, ops));
	PRB_TRY(prb_str_copy(numbers + 1, &ops->note));
	prb_str_remove(&t->out, 0, (size_t)(note + 1 - text));
	ops->trace_text = t->out;
	t->out = (struct prb_str){};
	tame(&ops->trace_text);
	PRB_TRY(prb_kineto_read(prb_str_text(&ops->trace_text), ops->trace_text.length,
				&ops->trace));
	PRB_TRY(prb_kineto_join(&ops->trace));
	return prb_ops_sum(ops);
}

static struct prb_error *record(struct prb_target *target, struct prb_agent *agent,
				const struct prb_performance_settings *s, struct prb_ops *ops)
{
	struct taker t = {};
	struct prb_error *err = run(target, agent, s, &t);

	if (!err)
		err = parse(&t, ops);
	prb_str_deinit(&t.out);
	prb_str_deinit(&t.err);
	return err;
}

/** The file has what Kineto wrote, which viewers know. */
static struct prb_error *write_trace(struct prb_ops *ops, const char *path)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	struct prb_sink sink = {.path = path, .text = ops->trace_text};

	PRB_TRY(prb_new_file_open(&file, path));
	sink.fd = file.fd;
	PRB_TRY(prb_sink_flush(&sink, true));
	return prb_new_file_finish(&file);
}

static struct prb_error *write_file(struct prb_ops *ops, const char *path, bool quiet)
{
	prb_auto_str struct prb_str text = {};

	PRB_TRY(write_trace(ops, path));
	if (quiet)
		return NULL;
	prb_text_escape(&text, path);
	prb_str_printf(&text, ": %llu operators of %zu steps, for https://ui.perfetto.dev\n",
		       (unsigned long long)ops->operations, ops->steps.count);
	PRB_TRY(prb_output(&text));
	return prb_output_flush();
}

static struct prb_error *show(struct prb_ops *ops, const struct prb_performance_settings *s)
{
	prb_auto_str struct prb_str text = {};

	if (s->out.path)
		PRB_TRY(write_file(ops, s->out.path, s->out.json));
	if (s->out.path && !s->out.json)
		return NULL;
	PRB_TRY((s->out.json ? prb_ops_json : prb_ops_text)(ops, &text));
	PRB_TRY(prb_output_lines(&text, s->out.json));
	return prb_output_flush();
}

static struct prb_error *record_and_show(struct prb_target *target,
					 const struct prb_performance_settings *s)
{
	__attribute__((cleanup(prb_ops_deinit))) struct prb_ops ops = {.pid = target->pid};
	prb_auto_error struct prb_error *unkept = NULL;
	struct prb_agent *agent = NULL;
	struct prb_error *err;

	PRB_TRY(prb_performance_command_line(target, &ops.command));
	PRB_TRY(prb_agent_reach(target, true, &agent));
	err = prb_agent_requires(agent, PRB_WIRE_CAN_OPS, "run torch's profiler");
	if (!err)
		err = prb_str_copy(prb_agent_hello(agent)->python, &ops.python);
	if (!err)
		err = record(target, agent, s, &ops);
	/* Rows that cannot be kept are no reason to show nothing. */
	if (!err)
		unkept = prb_ops_keep_rows(agent, &ops);
	prb_agent_close(agent);
	PRB_TRY(err);
	if (unkept)
		prb_warn(unkept->message);
	return show(&ops, s);
}

static struct prb_error *check(const struct prb_performance_settings *s,
			       const struct prb_profile_format *format)
{
	if (s->torch.steps > PRB_OPS_MOST_STEPS)
		return prb_error_create(PRB_ERROR_USAGE, "--ops records at most %d steps",
					PRB_OPS_MOST_STEPS);
	if (format && format != &prb_format_trace)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "operators cannot be written as %s",
						       format->name),
				      "-o FILE.trace.json, or --json");
	return NULL;
}

struct prb_error *prb_performance_ops(const struct prb_cli *cli,
				      const struct prb_performance_settings *s,
				      const struct prb_profile_format *format)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_error *err;

	PRB_TRY(check(s, format));
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	err = target->live ? record_and_show(target, s)
			   : prb_error_create(PRB_ERROR_UNSUPPORTED,
					      "--ops needs a process that runs; this is a %s",
					      prb_target_kind_name(target->kind));
	return prb_command_line_name(target, err);
}
