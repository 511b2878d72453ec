/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing trace`: logpoints, which the agent sets and whose rows it sends
 * (agent/trace/logpoints.py). */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/commands/eval/eval.h"
#include "cli/commands/eval/console.h"
#include "cli/commands/perf/within_calls.h"
#include "command/command.h"
#include "command/interrupt.h"
#include "command/term.h"
#include "control/load.h"
#include "target/spec/target_spec.h"

enum { RATE = 1000, MAX_WORDS = 4, AT_ONCE_SECONDS = 1 };

struct trace_settings {
	const char *calls;
	bool follow, keep, json, no_inject;
	int rate;
	double seconds, slower;
};

static struct prb_error *incomplete(void)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "trace: what is to be recorded, and where?"),
		"for example 'probing 4242 trace train.py:22 \"loss, step\"'; 'if' and a condition "
		"may "
		"stand between them");
}

/** FILE:LINE; the line is behind the last colon. */
static struct prb_error *take_place(const char *word, struct prb_str *code)
{
	const char *colon = strrchr(word, ':');
	char *end;
	long line = colon ? strtol(colon + 1, &end, 10) : 0;

	if (!colon || colon == word || line <= 0 || line > INT32_MAX || *end)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "trace: '%.100s' is not FILE:LINE", word),
			"for example train.py:22; the end of the path is enough");
	prb_str_append(code, word, (size_t)(colon - word));
	prb_str_printf(code, "\n%ld\n", line);
	return NULL;
}

/** The words are lines of the request, so they have no line feeds. */
static struct prb_error *check_words(const struct prb_cli *cli)
{
	for (size_t i = 0; i < cli->argument_count; i++)
		if (strchr(cli->arguments[i], '\n'))
			return prb_error_create(PRB_ERROR_USAGE,
						"trace: an expression is one line");
	return NULL;
}

static struct prb_error *put_logpoint(const struct prb_cli *cli, struct prb_str *code)
{
	char *const *words = cli->arguments;
	bool conditional = cli->argument_count == MAX_WORDS && !strcmp(words[1], "if");

	if (cli->argument_count != 2 && !conditional)
		return incomplete();
	prb_str_puts(code, "log\n");
	PRB_TRY(take_place(words[0], code));
	prb_str_printf(code, "%s\n%s\n", conditional ? words[2] : "",
		       words[cli->argument_count - 1]);
	return NULL;
}

/** The room for a histogram that is drawn again and again. */
static void put_terminal(const struct trace_settings *s, struct prb_str *code)
{
	const char *term = getenv("TERM");
	size_t columns, rows;

	if (!s->json && term && strcmp(term, "dumb") != 0 && prb_term_size(stderr, &columns, &rows))
		prb_str_printf(code, "t%zu,%zu", columns, rows);
}

/** How often, how long, and what becomes of it: the end of both requests. */
static void put_rest(const struct trace_settings *s, struct prb_str *code)
{
	prb_str_printf(code, "%d\n%.3f\n", s->rate ? s->rate : RATE, s->seconds);
	/* A logpoint that stays behind has no client to print to. */
	prb_str_printf(code, "%s%s%s", s->keep ? "k" : "", s->follow || !s->keep ? "f" : "",
		       s->json ? "j" : "");
	if (!(s->slower > 0))
		return;
	if (s->follow || !s->keep)
		put_terminal(s, code);
	prb_str_printf(code, "\n%.9f", s->slower);
}

static struct prb_error *put_calls(const struct prb_cli *cli, const struct trace_settings *s,
				   struct prb_str *code)
{
	bool conditional = cli->argument_count == 2 && !strcmp(cli->arguments[0], "if");

	if ((cli->argument_count && !conditional) || !*s->calls || strchr(s->calls, '\n'))
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "trace --calls takes the name of a function"
						       ", and 'if' and a condition"),
				      "for example 'probing 4242 trace --calls Model.step'");
	prb_str_printf(code, "calls\n%s\n%s\n", s->calls, conditional ? cli->arguments[1] : "");
	return NULL;
}

static struct prb_error *make_request(const struct prb_cli *cli, const struct trace_settings *s,
				      struct prb_str *code)
{
	const char *first = cli->argument_count ? cli->arguments[0] : "";

	PRB_TRY(check_words(cli));
	if (s->slower > 0 && !s->calls)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "trace: --slower is for calls"),
			"--calls FUNCTION names what is called");
	if (s->calls) {
		PRB_TRY(put_calls(cli, s, code));
		put_rest(s, code);
	} else if (!strcmp(first, "list") && cli->argument_count == 1) {
		prb_str_puts(code, "list");
	} else if (!strcmp(first, "clear") && cli->argument_count <= 2) {
		prb_str_printf(code, "clear\n%s",
			       cli->argument_count == 2 ? cli->arguments[1] : "");
	} else {
		PRB_TRY(put_logpoint(cli, code));
		put_rest(s, code);
	}
	return code->failed ? prb_error_nomem() : NULL;
}

/** Seconds that the request takes; 0: until the user wants no more. */
static double lasting(const struct prb_cli *cli, const struct trace_settings *s)
{
	const char *first = cli->argument_count && !s->calls ? cli->arguments[0] : "";

	if (!strcmp(first, "list") || !strcmp(first, "clear") || (s->keep && !s->follow))
		return AT_ONCE_SECONDS;
	return s->seconds;
}

static struct prb_error *trace(const struct prb_cli *cli, const struct trace_settings *s,
			       const struct prb_str *code)
{
	struct prb_eval_console console = {.patience = 1};
	struct prb_eval how = {.flags = PRB_WIRE_TRACE, .lasts = lasting(cli, s)};
	uint32_t needed = s->slower > 0 ? PRB_WIRE_CAN_SLOW
			  : s->calls	? PRB_WIRE_CAN_CALLS
					: PRB_WIRE_CAN_TRACE;
	prb_auto_target struct prb_target *target = NULL;
	int64_t since = prb_clock_read_ns(CLOCK_REALTIME);
	struct prb_agent *agent;

	prb_eval_console_use(&console, false, &how);
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	PRB_TRY(prb_agent_reach(target, !s->no_inject, &agent));

	struct prb_error *err = prb_agent_requires(
		agent, needed, s->calls ? "record calls" : "record values at lines");

	if (err) {
		prb_agent_close(agent);
		return err;
	}
	PRB_TRY(prb_eval_show(target, agent, &how, "<probing>", code, false));
	if (!(s->slower > 0) || (s->keep && !s->follow))
		return NULL;
	/* The trace is over: Ctrl-C ends us from here on. */
	prb_interrupt_hold(false);
	prb_interrupt_release();
	return prb_stacks_within_calls(target, s->calls, since, s->slower, s->json);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct trace_settings *s = settings;
	prb_auto_str struct prb_str code = {};

	if (cli->targets.count != 1)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 cli->target ? "one target is traced" : "no target given"),
			"for example 'probing 4242 trace train.py:22 \"loss, step\"'");
	PRB_TRY(make_request(cli, s, &code));
	return trace(cli, s, &code);
}

const struct prb_command prb_command_trace = {
	.rank = 105,
	.for_clients = true,
	.name = "trace",
	.summary = "Record values at a line, or calls of a function, without stopping anything",
	.description =
		"Sets a logpoint: each time the line runs, the values of the expressions are "
		"recorded in "
		"python.trace_variables and printed here, until Ctrl-C or the end of --for. The "
		"expressions are evaluated on the thread that runs the line, with its variables; "
		"what "
		"they raise is recorded in place of the value and never reaches the program. With "
		"'if' "
		"and a condition only the times count when that is true.\n\n"
		"The logpoint is removed when this command ends or dies. With --keep it stays, and "
		"nothing is printed without --follow; 'trace list' shows those that there are, and "
		"'trace clear' removes them, or one by its number.\n\n"
		"--calls FUNCTION records calls instead: when each begins and ends, its arguments, "
		"its "
		"result or exception, as spans in python.trace_event. The end of the name is "
		"enough, "
		"as in Model.step; all functions of that name count, and of a pattern as in "
		"'Handler.do_*'. 'if' and a condition look at the arguments.\n\n"
		"With --slower only calls that took so long are kept, with the arguments that they "
		"had at their end, and percentiles and a histogram are made of all calls, which a "
		"terminal shows while they come. If the process is recorded ('perf --background'), "
		"the stacks sampled within the slow calls follow; with --json in rows of their "
		"own, "
		"which have 'stacks' and the call's span_id. A "
		"coroutine's time is that of its task, waits included. A fast call gets slower by "
		"less than a microsecond from 3.12 on, before by some.\n\n"
		"From Python 3.12 on only that line gets slower. Before, its function gets several "
		"times slower, and every call of the program by a fraction of a microsecond; a "
		"program "
		"that has a tracer or profiler of its own is refused. The command says first what "
		"it "
		"costs.",
	.options =
		(const struct prb_option[]){
			{"calls", 0, PRB_OPTION_TEXT, "FUNCTION",
			 "Record calls of a function, with arguments, result and duration",
			 PRB_COMPLETE_NOTHING, offsetof(struct trace_settings, calls),
			 .for_clients = true},
			{"slower", 0, PRB_OPTION_SECONDS, "TIME",
			 "Keep calls that take TIME or more, and how long all took: 200ms",
			 PRB_COMPLETE_NOTHING, offsetof(struct trace_settings, slower),
			 .for_clients = true},
			{"follow", 0, PRB_OPTION_FLAG, NULL, "Print the values also with --keep",
			 PRB_COMPLETE_NOTHING, offsetof(struct trace_settings, follow),
			 .for_clients = true},
			{"keep", 0, PRB_OPTION_FLAG, NULL, "Leave the logpoint in the target",
			 PRB_COMPLETE_NOTHING, offsetof(struct trace_settings, keep),
			 .for_clients = true},
			{"for", 0, PRB_OPTION_SECONDS, "TIME", "End after TIME: 5, 5s, 2m",
			 PRB_COMPLETE_NOTHING, offsetof(struct trace_settings, seconds),
			 .for_clients = true},
			{"rate", 0, PRB_OPTION_NUMBER, "N",
			 "Record at most N times a second (default: 1000)", PRB_COMPLETE_NOTHING,
			 offsetof(struct trace_settings, rate), .for_clients = true},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print one JSON object per line",
			 PRB_COMPLETE_NOTHING, offsetof(struct trace_settings, json),
			 .for_clients = true},
			{"no-inject", 0, PRB_OPTION_FLAG, NULL,
			 "Fail if the target has no agent, instead of loading it",
			 PRB_COMPLETE_NOTHING, offsetof(struct trace_settings, no_inject),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct trace_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "FILE:LINE [if COND] EXPRS | --calls FUNC | list | clear [N]",
	.max_arguments = MAX_WORDS,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 trace train.py:22 \"loss, step\"",
			 "Values at each run of line 22"},
			{"probing 4242 trace train.py:22 if \"loss > 10\" loss --for 5m",
			 "Only high values, for 5 minutes"},
			{"probing 4242 trace --calls Model.step --for 10s",
			 "Each call of that function"},
			{"probing 4242 trace --calls handle --slower 200ms",
			 "Only slow ones; percentiles of all"},
			{"probing 4242 trace clear", "Remove those that were kept"},
			{}},
	.run = run,
};
