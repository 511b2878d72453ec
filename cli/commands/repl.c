/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/eval/console.h"
#include "control/load.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "command/prompt/prompt.h"
#include "remote/remote.h"
#include "command/term.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "target/spec/target_spec.h"

struct repl_settings {
	const char *thread;
	double timeout;
	bool no_inject;
};

/** Code that does not stop is given so many Ctrl-C before it is left. */
enum { PATIENCE = 3 };
/** How long a statement may take to stop after its --timeout. */
enum { STOP_MS = 2000, STOP_STEP_MS = 20 };

struct repl {
	struct prb_target *target; /**< NULL if it is elsewhere */
	int pid;		   /**< as it is called where it runs */
	struct prb_agent *agent;
	struct prb_eval how;
	struct prb_eval_console console;
	struct prb_str text;   /**< the statement so far */
	struct prb_str prompt; /**< in front of its first line, and of the others */
	struct prb_str more;
	bool incomplete, over;
	bool told_to_stop; /**< the last statement; it may not have yet */
};

/** True for errors after which there is no agent, or no output. */
static bool is_fatal(const struct prb_error *err)
{
	return err->code == PRB_ERROR_NO_PROCESS || err->code == PRB_ERROR_OS ||
	       err->code == PRB_ERROR_BAD_DATA || err->code == PRB_ERROR_NOMEM ||
	       err->code == PRB_ERROR_CANCELLED;
}

/** Applies the outcome of a statement to the prompt; its error is shown to the user. */
static struct prb_error *judge(struct repl *r, const struct prb_eval_result *result)
{
	struct prb_error *err = prb_eval_judge(r->target, r->pid, &r->how, result);

	r->incomplete = result->outcome == PRB_WIRE_INCOMPLETE;
	r->over = result->outcome == PRB_WIRE_EXIT;
	r->told_to_stop = result->outcome == PRB_WIRE_TIMED_OUT;
	if (result->outcome == PRB_WIRE_INTERRUPTED && result->has_traceback) {
		/* The traceback says it. */
		prb_error_destroy(err);
		err = prb_error_create(PRB_ERROR_FAILED, "%s", "");
	} else if (!err && result->text.length) {
		prb_warn(prb_str_text(&result->text));
	}
	return err;
}

/** Runs the statement, once the one before has stopped. */
static struct prb_error *run_next(struct repl *r, const struct prb_eval *how,
				  struct prb_eval_result *result)
{
	struct prb_error *err = prb_eval_run(r->agent, how, "<probing>", &r->text, result);

	for (int ms = 0; err && result->refused && r->told_to_stop && ms < STOP_MS;
	     ms += STOP_STEP_MS) {
		prb_error_destroy(err);
		result->refused = false;
		poll(NULL, 0, STOP_STEP_MS);
		err = prb_eval_run(r->agent, how, "<probing>", &r->text, result);
	}
	if (err && result->refused && r->told_to_stop) {
		prb_error_destroy(err);
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_FAILED,
				"the previous statement was interrupted and is still running"),
			"it ends when the call that it is in returns");
	}
	return err;
}

/** Has the agent run what was entered so far. */
static struct prb_error *run_text(struct repl *r, uint32_t more_flags, struct prb_error **ret_told)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	struct prb_eval how = r->how;

	*ret_told = NULL;
	if (r->text.failed)
		return prb_error_nomem();
	if (r->text.length > PRB_EVAL_MAX_CODE) {
		*ret_told = prb_error_create(PRB_ERROR_USAGE, "the code has over %d bytes",
					     PRB_EVAL_MAX_CODE);
		return NULL;
	}
	how.flags |= more_flags;
	prb_interrupt_forget();
	prb_interrupt_hold(true);

	struct prb_error *err = run_next(r, &how, &result);
	prb_interrupt_hold(false);
	if (err && is_fatal(err))
		return err;
	*ret_told = err ? err : judge(r, &result);
	return NULL;
}

/** "%trace list" and "%trace clear [N]", which are no Python: false if the line is another. */
static bool take_trace(const char *line, struct prb_str *ret)
{
	static const char list[] = "%trace list", clear[] = "%trace clear";
	size_t length = strlen(line);

	while (length && isspace((unsigned char)line[length - 1]))
		length--;
	if (length == strlen(list) && !memcmp(line, list, length)) {
		prb_str_puts(ret, "list");
	} else if (length >= strlen(clear) && !memcmp(line, clear, strlen(clear))) {
		const char *number = line + strlen(clear);

		number += strspn(number, " ");
		prb_str_printf(ret, "clear\n%.*s", (int)(line + length - number), number);
	} else {
		return false;
	}
	return true;
}

/** One more line; what is complete is run. */
static struct prb_error *enter(struct repl *r, const char *line, size_t length,
			       struct prb_error **ret_told)
{
	if (!r->incomplete && take_trace(line, &r->text)) {
		PRB_TRY(run_text(r, PRB_WIRE_TRACE, ret_told));
		prb_str_truncate(&r->text, 0);
		return NULL;
	}
	if (r->incomplete)
		prb_str_putc(&r->text, '\n');
	prb_str_append(&r->text, line, length);
	r->incomplete = false;
	PRB_TRY(run_text(r, PRB_WIRE_INTERACTIVE, ret_told));
	if (!r->incomplete)
		prb_str_truncate(&r->text, 0);
	return NULL;
}

/** A statement in a history is as many entries as it has lines. */
static void note(const char *lines)
{
	prb_auto_free char *copy = strdup(lines);
	char *rest = NULL;

	for (char *line = copy ? strtok_r(copy, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		if (line[strspn(line, " \t\r\f")])
			prb_prompt_history_add(line);
}

static void greet(const struct repl *r)
{
	const struct prb_wire_hello *hello = prb_agent_hello(r->agent);
	prb_auto_str struct prb_str text = {};

	if (!isatty(STDERR_FILENO))
		return;
	prb_str_puts(&text, "Python ");
	prb_text_escape(&text, hello->python);
	prb_str_printf(&text,
		       " in process %d, which keeps running when you leave (exit or Ctrl-D)\n"
		       "Tab completes names, Ctrl-C interrupts the running statement\n",
		       r->pid);
	fputs(prb_str_text(&text), stderr);
}

/**
 * "4242 >>> ", with the pid in grey; escape sequences are marked for readline as having no width.
 */
static struct prb_error *make_prompts(struct repl *r)
{
	bool colour = prb_term_colour(isatty(STDOUT_FILENO) ? stdout : stderr);
	int width = snprintf(NULL, 0, "%d", r->pid);

	prb_str_printf(&r->prompt, "%s%d%s >>> ", colour ? "\001\033[2m\002" : "", r->pid,
		       colour ? "\001\033[0m\002" : "");
	prb_str_printf(&r->more, "%*s ... ", width, "");
	return r->prompt.failed || r->more.failed ? prb_error_nomem() : NULL;
}

/** Statements are typed. Errors are printed, and the prompt goes on. */
static struct prb_error *converse(struct repl *r)
{
	PRB_TRY(make_prompts(r));
	greet(r);
	prb_prompt_begin("repl_history", prb_agent_descriptor(r->agent));
	prb_prompt_python_begin(r->agent);
	while (!r->over) {
		prb_auto_free char *line = NULL;
		struct prb_error *told;

		prb_interrupt_forget();

		enum prb_prompt_read read =
			prb_prompt_read(prb_str_text(r->incomplete ? &r->more : &r->prompt), &line);
		if (prb_prompt_is_lost())
			return prb_agent_explain_end(
				r->agent,
				prb_error_create(PRB_ERROR_NO_PROCESS,
						 "the agent of process %d closed the connection",
						 r->pid));
		if (read == PRB_PROMPT_END)
			break;
		if (read == PRB_PROMPT_GIVEN_UP) {
			fputs("KeyboardInterrupt\n", stderr);
			prb_str_truncate(&r->text, 0);
			r->incomplete = false;
			continue;
		}
		note(line);
		PRB_TRY(enter(r, line, strlen(line), &told));
		prb_exit_report(told);
	}
	return prb_output_flush();
}

/** Statements come from a file or pipe, line by line as if they were typed. */
static struct prb_error *read_lines(struct repl *r)
{
	prb_auto_free char *line = NULL;
	struct prb_error *told = NULL;
	size_t size = 0;
	ssize_t length;

	while (!r->over && (length = getline(&line, &size, stdin)) >= 0) {
		if (length && line[length - 1] == '\n')
			length--;
		PRB_TRY(enter(r, line, (size_t)length, &told));
		/* After an exception the next statement follows; other errors end the session. */
		if (told && *told->message)
			return told;
		prb_error_destroy(told);
	}
	if (ferror(stdin))
		return prb_error_os(errno, "cannot read stdin");
	if (r->over || !r->incomplete)
		return prb_output_flush();
	PRB_TRY(run_text(r, PRB_WIRE_INTERACTIVE | PRB_WIRE_LAST, &told));
	if (told && *told->message)
		return told;
	prb_error_destroy(told);
	return prb_output_flush();
}

static void repl_deinit(struct repl *r)
{
	prb_agent_close(r->agent);
	if (r->target)
		prb_target_destroy(r->target);
	prb_str_deinit(&r->text);
	prb_str_deinit(&r->prompt);
	prb_str_deinit(&r->more);
	prb_interrupt_release();
}

static struct prb_error *reach(const struct prb_cli *cli, bool may_load, struct repl *r)
{
	if (prb_remote_is(cli->target)) {
		PRB_TRY(prb_remote_agent(cli, may_load, &r->agent));
		r->pid = (int)prb_agent_hello(r->agent)->pid;
		return NULL;
	}
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &r->target));
	r->pid = (int)r->target->pid;
	return prb_agent_reach(r->target, may_load, &r->agent);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct repl_settings *s = settings;
	__attribute__((cleanup(repl_deinit))) struct repl r = {
		.how = {.timeout = s->timeout},
		.console = {PATIENCE, "probing: the code has not ended; Ctrl-C again abandons it"},
	};

	prb_eval_console_use(&r.console, false, &r.how);
	PRB_TRY(prb_eval_thread(s->thread, &r.how.flags));
	PRB_TRY(reach(cli, !s->no_inject, &r));
	PRB_TRY(prb_agent_requires(r.agent, PRB_WIRE_CAN_INTERACT, "be a prompt"));
	prb_interrupt_catch(NULL);
	return isatty(STDIN_FILENO) ? converse(&r) : read_lines(&r);
}

const struct prb_command prb_command_repl = {
	.rank = 100,
	.for_clients = true,
	.name = "repl",
	.aliases = {"r"},
	.summary = "Open a Python prompt in the target",
	.description = "Reads statements from the terminal and runs them in the namespace of the "
		       "target's __main__. Lines can be edited and recalled, Tab completes "
		       "names, and _ is the last value. A block ends with an empty line. If "
		       "stdin is not a terminal, statements are read from it line by line, "
		       "without prompts.\n\n"
		       "Ctrl-C interrupts the running statement; Ctrl-D or exit leaves the "
		       "prompt, and the target keeps running. Only the effects of your "
		       "statements remain in it. Several prompts can be open at once, each with "
		       "its own output and its own _. stdin belongs to the program, so input() "
		       "raises EOFError.\n\n"
		       "'%trace list' shows the logpoints of 'probing trace', '%trace clear' "
		       "removes them, or one by its number.\n\n"
		       "Completion never runs code of the program: it offers the attributes that "
		       "an object and its classes store, but neither those that __getattr__ or "
		       "__dir__ would compute, nor anything after a property or a call.",
	.options =
		(const struct prb_option[]){
			{"thread", 0, PRB_OPTION_TEXT, "THREAD",
			 "Thread to run it on: agent (the default) or main", PRB_COMPLETE_THREAD,
			 offsetof(struct repl_settings, thread), .for_clients = true},
			{"timeout", 0, PRB_OPTION_SECONDS, "TIME",
			 "Interrupt a statement after TIME (default: must start within 5 s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct repl_settings, timeout),
			 .for_clients = true},
			{"no-inject", 0, PRB_OPTION_FLAG, NULL,
			 "Fail if the target has no agent, instead of loading it",
			 PRB_COMPLETE_NOTHING, offsetof(struct repl_settings, no_inject),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct repl_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_PROCESS,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 repl", "Open a prompt in process 4242"},
			{"probing 4242 repl <checks.py", "Run the statements of a file"},
			{}},
	.run = run,
};
