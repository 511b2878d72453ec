/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/load.h"
#include "command/command.h"
#include "cli/commands/eval/eval.h"
#include "cli/commands/eval/console.h"
#include "control/place.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "cli/commands/query/query.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "target/spec/target_spec.h"

struct eval_settings {
	const char *file, *thread, *name, *frame;
	double timeout;
	int tid;
	bool json, no_inject, loop;
};

static struct prb_error *no_code(void)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no code given"),
			      "for example 'probing 4242 eval \"1 + 1\"', or -f FILE");
}

/** The code and what its lines are of. */
static struct prb_error *find_code(const struct prb_cli *cli, const struct eval_settings *s,
				   struct prb_str *code, const char **name)
{
	const char *word = cli->argument_count ? cli->arguments[0] : NULL;
	bool piped = !word && !s->file && !isatty(STDIN_FILENO);
	const char *file = s->file ? s->file : word && !strcmp(word, "-") ? word : NULL;

	*name = "<probing>";
	if (s->file && word)
		return prb_error_create(PRB_ERROR_USAGE, "code is given twice: '%.100s' and -f",
					word);
	if (piped)
		file = "-";
	if (!file && !word)
		return no_code();
	if (!file) {
		prb_str_puts(code, word);
	} else if (!strcmp(file, "-")) {
		*name = "<stdin>";
		PRB_TRY(prb_query_read(NULL, code));
	} else {
		*name = file;
		PRB_TRY(prb_query_read(file, code));
	}
	if (s->name)
		*name = s->name;
	if (code->failed)
		return prb_error_nomem();
	if (piped && !code->length)
		return no_code();
	if (code->length > PRB_EVAL_MAX_CODE)
		return prb_error_create(PRB_ERROR_USAGE, "the code has over %d bytes",
					PRB_EVAL_MAX_CODE);
	return NULL;
}

static struct prb_error *check(const struct prb_cli *cli, const struct eval_settings *s)
{
	if (s->tid && !s->frame)
		return prb_error_create(PRB_ERROR_USAGE, "--tid needs --frame");
	if ((s->frame != NULL) + s->loop + (s->thread != NULL) > 1)
		return prb_error_create(PRB_ERROR_USAGE,
					"only one of --frame, --loop and --thread can be used");
	if (cli->targets.count != 1)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, cli->target ? "code is run in one target"
								      : "no target given"),
			"for example 'probing 4242 eval \"1 + 1\"'");
	return NULL;
}

static struct prb_error *put_json(const struct prb_target *t, const struct prb_eval_result *r)
{
	static const char *const outcomes[] = {
		[PRB_WIRE_OK] = "ok",
		[PRB_WIRE_RAISED] = "exception",
		[PRB_WIRE_INTERRUPTED] = "interrupted",
		[PRB_WIRE_NO_GIL] = "gil timeout",
		[PRB_WIRE_MAIN_NOT_REACHED] = "main thread timeout",
		[PRB_WIRE_TIMED_OUT] = "timeout",
		[PRB_WIRE_REFUSED] = "refused",
		[PRB_WIRE_FAILED] = "failed",
	};
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {.out = &text};
	size_t outcome = PRB_MIN((size_t)r->outcome, (size_t)PRB_WIRE_FAILED);

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", t->pid);
	prb_json_text(&json, "outcome", outcomes[outcome]);
	prb_json_bytes(&json, "stdout", prb_str_text(&r->out), r->out.length);
	prb_json_bytes(&json, "stderr", prb_str_text(&r->err), r->err.length);
	prb_json_bytes(&json, "value", r->has_value ? prb_str_text(&r->value) : NULL,
		       r->value.length);
	prb_json_bytes(&json, "traceback", r->has_traceback ? prb_str_text(&r->traceback) : NULL,
		       r->traceback.length);
	prb_json_close(&json, '}');
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

struct prb_error *prb_eval_show(struct prb_target *t, struct prb_agent *agent,
				const struct prb_eval *how, const char *name,
				const struct prb_str *code, bool json)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};

	prb_interrupt_catch(NULL);
	prb_interrupt_hold(true);

	struct prb_error *err = prb_eval_run(agent, how, name, code, &result);
	prb_agent_close(agent);
	PRB_TRY(err);
	if (json) {
		PRB_TRY(put_json(t, &result));
	} else if (result.has_value) {
		fputc('\n', stdout);
		PRB_TRY(prb_output_flush());
	}
	PRB_TRY(prb_eval_judge(t, (int)t->pid, how, &result));
	if (result.text.length)
		prb_warn(prb_str_text(&result.text));
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct eval_settings *s = settings;
	struct prb_eval_console console = {.patience = 1};
	struct prb_eval how = {.timeout = s->timeout};
	prb_auto_str struct prb_str code = {};
	prb_auto_target struct prb_target *target = NULL;
	struct prb_agent *agent;
	const char *name;
	unsigned frame;

	prb_eval_console_use(&console, s->json, &how);
	PRB_TRY(check(cli, s));
	PRB_TRY(prb_eval_thread(s->thread, &how.flags));
	PRB_TRY(prb_frame_number(s->frame, &frame));
	PRB_TRY(find_code(cli, s, &code, &name));
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));

	struct prb_error *err =
		s->frame  ? prb_eval_in_frame(target, s->tid, frame, &code, &how.flags)
		: s->loop ? prb_eval_on_loop(target, &how.flags)
			  : NULL;
	if (!err)
		err = prb_agent_reach(target, !s->no_inject, &agent);
	if (!err)
		err = prb_eval_check_place(&agent, how.flags);
	if (!err)
		err = prb_eval_show(target, agent, &how, name, &code, s->json);
	return err;
}

const struct prb_command prb_command_eval = {
	.rank = 90,
	.for_clients = true,
	.name = "eval",
	.aliases = {"e"},
	.summary = "Run Python code in the target",
	.description = "Runs CODE in the namespace of the target's __main__. Output of the code "
		       "appears here, on stdout and stderr, as it is printed, followed by the "
		       "repr of the last expression unless that is None. An exception prints its "
		       "traceback, and the exit code is 1.\n\n"
		       "Output of other threads is not redirected, nor is output that bypasses "
		       "sys.stdout, such as that of child processes.\n\n"
		       "The code runs on a thread of the agent, which acquires the GIL like any "
		       "other thread. --thread main runs it on the main thread, as soon as that "
		       "executes Python code. Ctrl-C raises KeyboardInterrupt in the code. "
		       "--frame runs it with the variables of a frame, in a target that 'probing "
		       "debug --pause' holds. --loop runs it in a task of the event loop. "
		       "Without CODE and --file, the code is read from stdin unless stdin is a "
		       "terminal.",
	.options =
		(const struct prb_option[]){
			{"file", 'f', PRB_OPTION_TEXT, "FILE", "Run a file; '-' is stdin",
			 PRB_COMPLETE_FILE, offsetof(struct eval_settings, file)},
			{"name", 0, PRB_OPTION_TEXT, "NAME", "File name of the code in tracebacks",
			 PRB_COMPLETE_NOTHING, offsetof(struct eval_settings, name),
			 .for_clients = true},
			{"thread", 0, PRB_OPTION_TEXT, "THREAD",
			 "Thread to run it on: agent (the default) or main", PRB_COMPLETE_THREAD,
			 offsetof(struct eval_settings, thread), .for_clients = true},
			{"frame", 0, PRB_OPTION_TEXT, "N",
			 "In this Python frame of a paused target: 0 is the innermost",
			 PRB_COMPLETE_NOTHING, offsetof(struct eval_settings, frame),
			 .for_clients = true},
			{"tid", 0, PRB_OPTION_NUMBER, "TID",
			 "With --frame: of this thread, not the main one", PRB_COMPLETE_NOTHING,
			 offsetof(struct eval_settings, tid), .for_clients = true},
			{"loop", 0, PRB_OPTION_FLAG, NULL,
			 "In a task of the running asyncio loop; CODE may await",
			 PRB_COMPLETE_NOTHING, offsetof(struct eval_settings, loop),
			 .for_clients = true},
			{"timeout", 0, PRB_OPTION_SECONDS, "TIME",
			 "Interrupt after TIME: 5, 5s, 500ms (default: must start within 5 s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct eval_settings, timeout),
			 .for_clients = true},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print one JSON object at the end",
			 PRB_COMPLETE_NOTHING, offsetof(struct eval_settings, json),
			 .for_clients = true},
			{"no-inject", 0, PRB_OPTION_FLAG, NULL,
			 "Fail if the target has no agent, instead of loading it",
			 PRB_COMPLETE_NOTHING, offsetof(struct eval_settings, no_inject),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct eval_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[CODE|-]",
	.max_arguments = 1,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 eval \"len(cache)\"", "The value of an expression"},
			{"probing -p 4242 eval -f check.py", "Run a file"},
			{"probing 4242 eval --thread main \"import signal; signal.getsignal(2)\"",
			 "On the main thread"},
			{"probing 4242 eval --frame 1 \"self.rows[-1]\"",
			 "In its caller, in a pause"},
			{"probing 4242 eval --loop \"await queue.put(None)\"", "In the event loop"},
			{}},
	.run = run,
};
