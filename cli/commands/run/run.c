/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing run`: a program that says what it hangs in. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/commands/run/program.h"
#include "cli/commands/run/report.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"

enum { EXIT_HUNG = 124, SPARE_LINES = 3 };

static const double HANG = 300, GRACE = 10, SHORTEST_LOOK = 0.05, LONGEST_LOOK = 5;
static const double NEVER = 1e9; /* seconds */
/* Limits all snapshots together: a CI system sends SIGKILL some seconds after SIGTERM. */
static const double SAVING = 30, SAVING_IN_A_HURRY = 3;
/* Less of a processor than this is no work: monitors and heartbeats of other threads. */
static const double BUSY = 0.05;

struct settings {
	double hang, timeout, grace;
	const char *output;
	bool redact, keep;
};

struct run {
	const struct settings *s;
	struct prb_started program;
	struct prb_tree tree;
	double began, moved;	      /**< when the program was started; when a process ran last */
	double proof_at;	      /**< when the next proof is looked for */
	double ran;		      /**< processor time since the last one */
	unsigned proven;	      /**< so many readings in a row have found a proof */
	unsigned quiet;		      /**< only threads that poll ran between so many */
	struct prb_standstill before; /**< the reading before, without dumps */
	bool idle;		      /**< it was read since it moved last, and it is not hung */
	bool reported;
};

static double hang_of(const struct run *run)
{
	return run->s->hang > 0 ? run->s->hang : HANG;
}

static void put_reason(struct prb_str *s, const struct run *run, const char *reason)
{
	prb_str_puts(s, "probing: ");
	prb_str_puts(s, reason);
	prb_str_printf(s, ": %zu process%s, ", run->tree.list.count,
		       run->tree.list.count == 1 ? "" : "es");
	prb_str_puts(s, "after ");
	prb_text_duration(s, prb_clock_seconds() - run->began);
	prb_str_putc(s, '\n');
}

static struct prb_error *save(const struct run *run, const struct prb_standstill *still,
			      struct prb_str *line)
{
	prb_auto_free char *name =
		run->s->output ? strdup(run->s->output)
			       : prb_format("probing-run-%d.probing", (int)run->program.pid);
	size_t count, left;

	if (!name)
		return prb_error_nomem();
	PRB_TRY(prb_report_save(still, name, run->s->output, run->s->redact,
				run->program.asked ? SAVING_IN_A_HURRY : SAVING, &count, &left));
	if (!count)
		return NULL;
	prb_str_puts(line, "saved         ");
	prb_text_argument(line, name);
	prb_str_printf(line, ": %zu process%s; 'probing ", count, count == 1 ? "" : "es");
	prb_text_escape(line, name);
	prb_str_puts(line, count == 1 ? "" : "/PID");
	prb_str_puts(line, " dump' shows one\n");
	if (left)
		prb_str_printf(line, "not saved     %zu process%s\n", left, left == 1 ? "" : "es");
	return NULL;
}

/**
 * The text first: where the bundle cannot be written, that is there at least. Nobody may read
 * either: that is no reason to let the program run on.
 */
static struct prb_error *report(struct run *run, const struct prb_standstill *still,
				const char *reason)
{
	prb_auto_str struct prb_str text = {}, line = {};
	prb_auto_error struct prb_error *unsaved = NULL;

	run->reported = true;
	put_reason(&text, run, reason);
	PRB_TRY(prb_report_text(still, SPARE_LINES, &text));
	prb_error_destroy(prb_output_lines(&text, false));
	unsaved = save(run, still, &line);
	if (unsaved)
		prb_warn(unsaved->message);
	prb_error_destroy(prb_output(&line));
	return NULL;
}

/** What cannot be reported must not keep the program from ending. */
static struct prb_error *report_now(struct run *run, const char *reason)
{
	prb_auto_standstill struct prb_standstill still = {};
	prb_auto_error struct prb_error *err = prb_tree_look(&run->tree);

	if (!err)
		err = prb_standstill_read(&run->tree, run->program.pid, &still);
	if (!err)
		err = report(run, &still, reason);
	if (err)
		prb_warn(err->message);
	return NULL;
}

/** Whether a tree that has not moved for long is hung. */
static struct prb_error *judge_still(struct run *run, bool *hung)
{
	prb_auto_standstill struct prb_standstill still = {};
	prb_auto_str struct prb_str reason = {};

	PRB_TRY(prb_standstill_read(&run->tree, run->program.pid, &still));
	*hung = still.hung;
	run->idle = !still.hung;
	if (!still.hung)
		return NULL;
	prb_str_puts(&reason, "nothing has moved for ");
	prb_text_duration(&reason, prb_clock_seconds() - run->moved);
	return report(run, &still, prb_str_text(&reason));
}

/** Only threads that poll have run since the reading before, and the tree is hung without them. */
static void compare(struct run *run, const struct prb_standstill *now)
{
	bool quiet = now->hung && prb_standstill_is_quiet(&run->before, now);

	run->quiet = quiet ? run->quiet + 1 : 0;
	run->proven = prb_standstill_proof(now, 0) ? run->proven + 1 : 0;
}

/** Some threads run now and then: they may only poll, or a proof shows that it cannot go on. */
static struct prb_error *judge_moving(struct run *run, bool *hung)
{
	struct prb_standstill now = {};
	double period = hang_of(run) / 2;
	bool busy = run->ran > BUSY * period;
	struct prb_error *err;

	run->proof_at = prb_clock_seconds() + period;
	run->ran = 0;
	if (busy) {
		run->quiet = run->proven = 0;
		return NULL;
	}
	err = prb_standstill_read(&run->tree, run->program.pid, &now);
	if (!err) {
		compare(run, &now);
		*hung = run->quiet >= 2 || (run->proven >= 3 && prb_standstill_proof(&now, period));
	}
	if (!err && *hung)
		err = report(run, &now,
			     run->proven ? "it cannot go on" : "only threads that poll run");
	/* The dumps are not needed any more, only the counters. */
	prb_standstill_deinit(&run->before);
	run->before = now;
	prb_standstill_forget(&run->before);
	return err;
}

static struct prb_error *look(struct run *run, bool *hung)
{
	double now;

	PRB_TRY(prb_tree_look(&run->tree));
	now = prb_clock_seconds();
	run->ran += run->tree.ran_seconds;
	if (run->tree.moved) {
		run->moved = now;
		run->idle = false;
	}
	if (now - run->moved >= hang_of(run))
		return run->idle ? NULL : judge_still(run, hung);
	return now >= run->proof_at ? judge_moving(run, hung) : NULL;
}

static double next_look(const struct run *run)
{
	double seconds = PRB_MIN(PRB_MAX(hang_of(run) / 10, SHORTEST_LOOK), LONGEST_LOOK);
	double left =
		run->s->timeout > 0 ? run->began + run->s->timeout - prb_clock_seconds() : NEVER;

	return PRB_MAX(PRB_MIN(seconds, left), 0);
}

/** Waits until the program has ended by itself, or is to be ended: *hung. */
static struct prb_error *supervise(struct run *run, bool *hung)
{
	*hung = false;
	while (!*hung) {
		switch (prb_started_wait(&run->program, next_look(run))) {
		case PRB_STARTED_ENDED:
			return NULL;
		case PRB_STARTED_ASKED:
			if (!run->reported)
				PRB_TRY(report_now(run, run->program.asked == SIGINT
								? "asked to end by SIGINT"
								: "asked to end by SIGTERM"));
			prb_started_pass(&run->program);
			continue;
		case PRB_STARTED_RESUMED:
			run->moved = prb_clock_seconds();
			continue;
		case PRB_STARTED_TIME:
			break;
		}
		if (run->s->timeout > 0 && prb_clock_seconds() - run->began >= run->s->timeout) {
			*hung = true;
			return run->reported ? NULL : report_now(run, "the time is over");
		}
		PRB_TRY(look(run, hung));
		if (*hung && run->s->keep) {
			*hung = false;
			run->idle = true;
			run->proof_at = NEVER + prb_clock_seconds();
		}
	}
	return NULL;
}

static struct prb_error *run_it(const struct prb_cli *cli, const void *settings)
{
	const struct settings *s = settings;
	struct run run = {.s = s, .tree = {.root = getpid()}};
	struct prb_error *err;
	bool hung;

	if (!cli->program)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no program given"),
				      "for example 'probing run -- pytest tests'");
	prb_output_aside();
	PRB_TRY(prb_started_begin(cli->program, &run.program));
	run.began = run.moved = prb_clock_seconds();
	run.proof_at = run.began + hang_of(&run) / 2;
	err = supervise(&run, &hung);
	/* Without us it runs as before. */
	while (err && !run.program.ended) {
		prb_exit_report(prb_error_hint(prb_steal(&err), "the program runs on"));
		hung = false;
		while (prb_started_wait(&run.program, NEVER) != PRB_STARTED_ENDED)
			prb_started_pass(&run.program);
	}
	if (!err && hung)
		err = prb_started_end(&run.program, s->grace > 0 ? s->grace : GRACE);
	prb_tree_deinit(&run.tree);
	prb_standstill_deinit(&run.before);
	if (hung)
		prb_exit_pass(EXIT_HUNG << 8);
	else if (run.program.ended)
		prb_started_exit(&run.program);
	return err;
}

const struct prb_command prb_command_run = {
	.rank = 43,
	.name = "run",
	.summary = "Run a program, and say what it hangs in",
	.description =
		"Runs PROGRAM unchanged: terminal, input, signals and exit code are its own, and "
		"nothing is loaded into it. When none of its processes has run for --hang, at "
		"--timeout, and when this command is sent SIGTERM or SIGINT, it prints the verdict "
		"of 'probing why' and the merged stacks of all processes to stderr, in at most 60 "
		"lines, and saves a bundle of snapshots.\n\n"
		"After --hang and --timeout it ends the program and all its descendants, by "
		"SIGTERM and after --grace by SIGKILL, and exits with 124. A signal is passed on. "
		"Otherwise the exit code is the program's, 128 and the number for a signal.\n\n"
		"Waiting for clients, for input, for a signal or until a time is no hang, nor is a "
		"loop that computes or polls: only --timeout ends those. A deadlock is also found "
		"while other threads run now and then.",
	.options =
		(const struct prb_option[]){
			{"hang", 0, PRB_OPTION_SECONDS, "TIME",
			 "Time without progress that is a hang (default 5m)", PRB_COMPLETE_NOTHING,
			 offsetof(struct settings, hang)},
			{"timeout", 0, PRB_OPTION_SECONDS, "TIME",
			 "Time that the program may take (default: any)", PRB_COMPLETE_NOTHING,
			 offsetof(struct settings, timeout)},
			{"grace", 0, PRB_OPTION_SECONDS, "TIME",
			 "Time between SIGTERM and SIGKILL (default 10s)", PRB_COMPLETE_NOTHING,
			 offsetof(struct settings, grace)},
			{"keep", 0, PRB_OPTION_FLAG, NULL,
			 "Report a hang once, and let the program run on", PRB_COMPLETE_NOTHING,
			 offsetof(struct settings, keep)},
			{"output", 'o', PRB_OPTION_TEXT, "FILE",
			 "Output file (default: probing-run-PID.probing)", PRB_COMPLETE_FILE,
			 offsetof(struct settings, output)},
			{"redact", 0, PRB_OPTION_FLAG, NULL, "Omit values of variables",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, redact)},
			{}},
	.settings_size = sizeof(struct settings),
	.takes_program = true,
	.examples = (const struct prb_example[]){{"probing run --hang 60s -- pytest tests",
						  "Tests that name the one that hangs"},
						 {"probing run --timeout 30m -- make check",
						  "Any program, with a limit of time"},
						 {}},
	.run = run_it,
};
