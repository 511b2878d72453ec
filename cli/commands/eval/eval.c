/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
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
#include "base/text.h"
#include "target/spec/target_spec.h"

struct eval_settings {
	const char *file, *thread, *name, *frame, *interpreter;
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
	if ((s->frame != NULL) + s->loop + (s->thread != NULL) + (s->interpreter != NULL) > 1)
		return prb_error_create(PRB_ERROR_USAGE,
					"only one of --frame, --loop, --thread and --interpreter "
					"can be used");
	if (s->interpreter && s->json)
		return prb_error_create(PRB_ERROR_USAGE,
					"--interpreter and --json exclude each other");
	if (cli->targets.count != 1)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, cli->target ? "code is run in one target"
								      : "no target given"),
			"for example 'probing 4242 eval \"1 + 1\"'");
	return NULL;
}

/* The Python code that has another interpreter run the user's, as text. */
__asm__(".pushsection .rodata\n"
	".global prb_eval_interpreter_code\n"
	".hidden prb_eval_interpreter_code\n"
	"prb_eval_interpreter_code:\n"
	".incbin \"cli/commands/eval/interpreter.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char prb_eval_interpreter_code[];

/** Replaces the code by what has the interpreter of that number run it. */
static struct prb_error *put_interpreter(const char *number, const char *name, struct prb_str *code)
{
	prb_auto_str struct prb_str plain = *code;
	struct prb_json names = {.out = code};
	char *end;
	long value = strtol(number, &end, 10);

	*code = (struct prb_str){};
	if (end == number || *end || value < 0)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no interpreter", number),
			"the table python.interpreters has their numbers");
	prb_str_puts(code, "exec(");
	prb_json_quote(code, prb_eval_interpreter_code, strlen(prb_eval_interpreter_code));
	prb_str_puts(code, ", ");
	prb_json_open(&names, NULL, '{');
	prb_json_integer(&names, "number", value);
	prb_json_text(&names, "name", name);
	prb_json_bytes(&names, "source", prb_str_text(&plain), plain.length);
	prb_json_close(&names, '}');
	prb_str_putc(code, ')');
	return code->failed ? prb_error_nomem() : NULL;
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

/** Runs what put_interpreter() made: of its own traceback, the last line says what went wrong. */
static struct prb_error *run_interpreter(struct prb_target *t, struct prb_agent *agent,
					 struct prb_eval *how, const struct prb_str *code)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	prb_auto_str struct prb_str plain = {};
	const char *last;

	how->put = NULL;
	prb_interrupt_catch(NULL);
	prb_interrupt_hold(true);

	struct prb_error *err = prb_eval_run(agent, how, "<probing>", code, &result);
	prb_agent_close(agent);
	PRB_TRY(err);
	PRB_TRY(prb_output_bytes(prb_str_text(&result.out), result.out.length));
	PRB_TRY(prb_output_flush());
	fputs(prb_str_text(&result.err), stderr);
	if (!result.has_traceback)
		return prb_eval_judge(t, (int)t->pid, how, &result);
	while (result.traceback.length &&
	       result.traceback.data[result.traceback.length - 1] == '\n')
		prb_str_truncate(&result.traceback, result.traceback.length - 1);
	last = strrchr(prb_str_text(&result.traceback), '\n');
	prb_text_escape(&plain, last ? last + 1 : prb_str_text(&result.traceback));
	return prb_error_create(PRB_ERROR_FAILED, "%.1000s", prb_str_text(&plain));
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct eval_settings *s = settings;
	struct prb_eval_console console = {.patience = 1};
	struct prb_eval how = {.timeout = s->timeout};
	prb_auto_str struct prb_str code = {};
	prb_auto_target struct prb_target *target = NULL;
	struct prb_agent *agent;
	/* Any code runs in the main one. */
	bool elsewhere = s->interpreter && strcmp(s->interpreter, "0") != 0;
	const char *name;
	unsigned frame;

	prb_eval_console_use(&console, s->json, &how);
	PRB_TRY(check(cli, s));
	PRB_TRY(prb_eval_thread(s->thread, &how.flags));
	PRB_TRY(prb_frame_number(s->frame, &frame));
	PRB_TRY(find_code(cli, s, &code, &name));
	if (elsewhere)
		PRB_TRY(put_interpreter(s->interpreter, name, &code));
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
		err = elsewhere ? run_interpreter(target, agent, &how, &code)
				: prb_eval_show(target, agent, &how, name, &code, s->json);
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
			{"interpreter", 0, PRB_OPTION_TEXT, "N",
			 "In the subinterpreter N of python.interpreters; on 3.12+ while it is "
			 "idle",
			 PRB_COMPLETE_NOTHING, offsetof(struct eval_settings, interpreter),
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
