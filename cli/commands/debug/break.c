/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing break`: lets the target run to a line, and holds it there. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/debug/session.h"
#include "cli/commands/pause/step_place.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "target/spec/target_spec.h"

struct break_settings {
	double max, within;
	const char *catches;
	bool json, uncaught;
};

static const double MAX_SECONDS = 600;
enum { MAX_WORDS = 100 }; /* a condition may be several */

/** The words as one text: "train.py:22 if step > 100". */
static struct prb_error *join(const struct prb_cli *cli, const struct break_settings *s,
			      struct prb_str *ret)
{
	const char *second = cli->argument_count > 1 ? cli->arguments[1] : "";
	bool conditional =
		!strncmp(second, "if ", 3) || (cli->argument_count > 2 && !strcmp(second, "if"));

	if (!s->catches == !cli->argument_count || (cli->argument_count > 1 && !conditional) ||
	    (s->uncaught && !s->catches))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "break: where is the target to stop?"),
			"for example 'probing 4242 break train.py:22 if \"step > 100\"',"
			" 'probing 4242 break Trainer.step' or 'probing 4242 break "
			"--catch ValueError'");
	for (size_t i = 0; i < cli->argument_count; i++)
		prb_str_printf(ret, "%s%s", i ? " " : "", cli->arguments[i]);
	return ret->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *add(struct prb_debug *d, const struct prb_cli *cli,
			     const struct break_settings *s)
{
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks made = {};
	prb_auto_str struct prb_str words = {};
	struct prb_drive_place place = {.once = true};

	PRB_TRY(join(cli, s, &words));
	if (s->catches) {
		place = (struct prb_drive_place){
			.catches = true, .uncaught = s->uncaught, .name = s->catches};
	} else {
		PRB_TRY(prb_debug_read_place(words.data, &place));
		if (!place.file)
			return prb_error_create(PRB_ERROR_USAGE,
						"break: a line needs its file: FILE:LINE");
	}
	PRB_TRY(prb_drive_add(d->drive, &place, &made));
	return s->json ? NULL : prb_debug_show_breaks(&made);
}

static struct prb_error *tell(struct prb_debug *d, const struct prb_drive_stop *stop,
			      const struct break_settings *s)
{
	prb_auto_str struct prb_str text = {};
	int pid = (int)d->target->pid;

	if (s->json)
		return prb_step_tell(d->target, stop->tid, true);
	PRB_TRY(prb_debug_stopped(d, stop));
	prb_str_printf(&text, "%d is paused there for at most ", pid);
	prb_text_duration(&text, d->max);
	prb_str_printf(&text,
		       "\n  inspect   probing -t %d backtrace | query | eval --frame 0 | repl\n"
		       "  step      probing -t %d step --tid %d\n"
		       "  resume    Ctrl-C here, or probing -t %d resume\n",
		       pid, pid, (int)stop->tid, pid);
	return prb_output(&text);
}

/** Until the pause ends, or Ctrl-C. */
static void hold(struct prb_debug *d)
{
	struct pollfd wait = {.fd = d->ends[1], .events = POLLIN};

	while (!d->over && !prb_interrupted())
		if (poll(&wait, 1, -1) > 0)
			prb_debug_happened(d);
}

static struct prb_error *go_on(struct prb_debug *d, const struct prb_cli *cli,
			       const struct break_settings *s)
{
	__attribute__((cleanup(prb_drive_stop_deinit))) struct prb_drive_stop stop = {};
	struct prb_error *err;

	PRB_TRY(add(d, cli, s));
	PRB_TRY(prb_debug_runs(d));
	prb_interrupt_hold(true);
	err = prb_drive_continue(d->drive, &stop);
	prb_interrupt_hold(false);
	PRB_TRY(err);
	if (!stop.breakpoint)
		return prb_error_create(PRB_ERROR_CANCELLED,
					"interrupted before the breakpoint was reached");
	PRB_TRY(tell(d, &stop, s));
	hold(d);
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct break_settings *s = settings;
	__attribute__((cleanup(prb_debug_end))) struct prb_debug d = {};
	struct prb_target *target = NULL;
	struct prb_error *err;

	if (cli->targets.count != 1)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 cli->target ? "one target is stopped" : "no target given"),
			"for example 'probing 4242 break train.py:22'");
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	prb_interrupt_catch(NULL);
	err = prb_debug_begin(target, s->within, s->max > 0 ? s->max : MAX_SECONDS, &d);
	if (!err && !d.drive)
		err = prb_error_create(PRB_ERROR_UNSUPPORTED,
				       "a %s cannot stop anywhere: nothing runs in it",
				       prb_target_kind_name(target->kind));
	return err ? err : go_on(&d, cli, s);
}

const struct prb_command prb_command_break = {
	.rank = 115,
	.for_clients = true,
	.name = "break",
	.summary = "Pause the target when it comes to a line, function or exception",
	.description =
		"Waits until a thread comes to the line, or to the first line of the function, "
		"prints where, and pauses the target there as 'probing debug --pause' does, until "
		"Ctrl-C, 'probing resume' or --max. With 'if' and a condition only the times count "
		"when that is true; it is evaluated on the thread, with its variables. A file is "
		"named by the end of its path; code that is loaded later counts, too.\n\n"
		"The breakpoint is removed when it was reached, and when this command ends. If "
		"this command is killed, the target removes it at the next function start. "
		"'probing debug' has more than one, and steps.\n\n"
		"From Python 3.12 on only that line gets slower. Before, every call of the program "
		"does while the breakpoint exists, and with --catch every line.",
	.options =
		(const struct prb_option[]){
			{"catch", 0, PRB_OPTION_TEXT, "CLASS",
			 "Stop where an exception of that class is raised", PRB_COMPLETE_NOTHING,
			 offsetof(struct break_settings, catches), .for_clients = true},
			{"uncaught", 0, PRB_OPTION_FLAG, NULL,
			 "With --catch: only if no 'except' takes it; 'with' or C code still may",
			 PRB_COMPLETE_NOTHING, offsetof(struct break_settings, uncaught),
			 .for_clients = true},
			{"max", 0, PRB_OPTION_SECONDS, "TIME",
			 "Resume after TIME (default: 10 minutes)", PRB_COMPLETE_NOTHING,
			 offsetof(struct break_settings, max), .for_clients = true},
			{"within", 0, PRB_OPTION_SECONDS, "TIME",
			 "Give up if the agent gets no GIL within TIME (default: 2 s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct break_settings, within),
			 .for_clients = true},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print where it stopped as JSON",
			 PRB_COMPLETE_NOTHING, offsetof(struct break_settings, json),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct break_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "FILE:LINE|FUNCTION [if COND]",
	.max_arguments = MAX_WORDS,
	.examples = (const struct prb_example[]){{"probing 4242 break train.py:22 if \"loss > 10\"",
						  "Pause where that is true"},
						 {"probing 4242 break Trainer.step",
						  "At the next call of a method"},
						 {"probing 4242 break --catch KeyError --uncaught",
						  "Where no caller has an 'except' (a 'with' may)"},
						 {}},
	.run = run,
};
