/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The body of all commands that print a dump, and the command `dump`. */
#include "cli/commands/dump/dump.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/spec/command_line.h"
#include "cli/commands/cluster/cluster.h"
#include "cli/commands/dump/parent.h"
#include "command/exit.h"
#include "dump/text/fold.h"
#include "command/output.h"
#include "control/pause_state.h"
#include "dump/text/render.h"
#include "target/proc/subprocesses.h"
#include "target/spec/target_spec.h"
#include "command/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/idle.h"
#include "dump/waiting.h"

/** One run of the command. */
struct job {
	struct prb_dump_options options;
	struct prb_repr_options values;
	struct prb_render_options render;
	bool json, tasks;
	const struct prb_cli *cli;
	const struct prb_texts *scripts;
};

static struct prb_error *check(const struct prb_dump_settings *s)
{
	if (s->nonblocking && s->freeze)
		return prb_error_create(PRB_ERROR_USAGE,
					"--nonblocking and --freeze exclude each other");
	if (s->subprocesses && s->tid)
		return prb_error_create(PRB_ERROR_USAGE,
					"--subprocesses and --tid exclude each other");
	if (!s->locals && (s->all_names || prb_value_limited(&s->values)))
		return prb_error_create(PRB_ERROR_USAGE,
					"--all-names, --depth, --max-value, --max-items and "
					"--secrets are of --locals, which is not given");
	if (s->native && *s->native && strcmp(s->native, "all") != 0)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 "--native is followed by nothing or by =all, "
					 "not by '%.100s'",
					 s->native),
			"'--native=all' shows the interpreter's own C frames, too");
	return NULL;
}

static void job_init(struct job *job, const struct prb_cli *cli, const struct prb_dump_settings *s,
		     const struct prb_dump_how *how, bool main_only)
{
	*job = (struct job){
		.cli = cli,
		.values =
			prb_value_options(&s->values, &(struct prb_repr_options){.max_objects = 1}),
		.options = {.mode = s->nonblocking ? PRB_DUMP_NONBLOCKING
				    : s->freeze	   ? PRB_DUMP_FREEZE
						   : PRB_DUMP_DEFAULT,
			    .locals = s->locals,
			    .native = s->native != NULL,
			    .native_all = s->native && *s->native,
			    .source = s->source,
			    .source_innermost = !s->json && prb_term_is(stdout),
			    .main_only = main_only,
			    .tid = s->tid},
		.render = {.colour = !s->json && prb_term_colour(stdout),
			   .fold = !s->no_fold,
			   .numbers = how->numbers,
			   .full_paths = s->full_paths,
			   .full_names = s->full_names,
			   .locals = s->locals,
			   .all_names = s->all_names,
			   .source = s->source,
			   .native = s->native != NULL,
			   .partial = main_only || s->tid},
		.json = s->json,
		.tasks = !s->no_tasks && !main_only && !s->tid,
		.scripts = &s->scripts,
	};
	job->options.values = &job->values;
}

/** Reads the idle times of the threads that will show one. */
static struct prb_error *read_idle(const struct job *job, struct prb_target *target,
				   struct prb_dump *dump)
{
	prb_auto_free bool *alone = NULL;

	if (job->json || !job->render.fold)
		return prb_idle_fill(target, dump, NULL);
	alone = calloc(dump->threads.count + 1, sizeof(*alone));
	if (!alone)
		return prb_error_nomem();
	PRB_TRY(prb_fold_alone(dump, alone));
	return prb_idle_fill(target, dump, alone);
}

static struct prb_error *make_dump(const struct job *job, struct prb_target *target,
				   struct prb_dump **ret)
{
	__attribute__((cleanup(prb_dump_found_deinit))) struct prb_dump_found found = {};
	prb_auto_dump struct prb_dump *dump = NULL;
	unsigned use = PRB_EXTENSION_WAITS | (job->options.locals ? PRB_EXTENSION_PRINTERS : 0);

	PRB_TRY(prb_extensions_load(job->cli, job->scripts, use, target, &target->custom));
	PRB_TRY(prb_dump_create_with(target, &job->options, &found, &dump));
	if (job->tasks)
		PRB_TRY(prb_dump_add_tasks(target, job->options.mode, &found, dump));
	PRB_TRY(read_idle(job, target, dump));
	*ret = prb_steal(&dump);
	return NULL;
}

static struct prb_error *show(const struct job *job, const struct prb_dump *dump)
{
	char *const *warning;

	if (job->json)
		return prb_render_json(dump, &job->render, stdout);
	PRB_TRY(prb_render_text(dump, &job->render, stdout));
	PRB_TRY(prb_output_flush());
	prb_vec_each (warning, &dump->warnings)
		prb_warn(*warning);
	return NULL;
}

/** The printed dumps of a process and its children. */
struct tree {
	const struct job *job;
	struct prb_json skipped;
	size_t dumps;
};

/** Reports a skipped process: in text as a warning, in JSON in a list at the end. */
static struct prb_error *note_skipped(struct tree *tree, const char *role,
				      const struct prb_process *process, const char *reason)
{
	prb_auto_str struct prb_str command = {}, line = {};

	prb_command_line_text(&command, process);
	prb_str_printf(&line, "%s %d (%s) is skipped: %s", role, (int)process->pid,
		       prb_str_text(&command), reason);
	if (command.failed || line.failed)
		return prb_error_nomem();
	if (!tree->job->json) {
		prb_warn(prb_str_text(&line));
		return NULL;
	}
	prb_json_open(&tree->skipped, NULL, '{');
	prb_json_integer(&tree->skipped, "pid", process->pid);
	prb_json_text(&tree->skipped, "command", prb_str_text(&command));
	prb_json_text(&tree->skipped, "reason", reason);
	prb_json_close(&tree->skipped, '}');
	return NULL;
}

static struct prb_error *show_next(struct tree *tree, const struct prb_dump *dump)
{
	if (tree->dumps++)
		putchar(tree->job->json ? ',' : '\n');
	return show(tree->job, dump);
}

/**
 * Dumps one child. A process without Python, or an unreadable one, is skipped with a note; an ended
 * one without.
 */
static struct prb_error *dump_child(struct tree *tree, const struct prb_process *child)
{
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_error struct prb_error *err = prb_target_open_process(child->pid, &target);

	if (!err)
		err = make_dump(tree->job, target, &dump);
	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
		return NULL;
	if (err)
		return note_skipped(tree, "child", child, err->message);
	if (!dump->python_version)
		return note_skipped(tree, "child", child, "it is not a Python process");
	return show_next(tree, dump);
}

/** The process itself: its dump, or a note with the error @p refused. */
static struct prb_error *dump_top(struct tree *tree, const struct prb_target *target,
				  const struct prb_dump *dump, const struct prb_error *refused)
{
	struct prb_process process;

	if (dump)
		return show_next(tree, dump);
	PRB_TRY(prb_process_describe(target->pid, &process));

	struct prb_error *err = note_skipped(tree, "process", &process, refused->message);
	prb_process_deinit(&process);
	return err;
}

static struct prb_error *dump_children(struct tree *tree, const struct prb_subprocesses *children)
{
	const struct prb_process *child;

	prb_vec_each (child, &children->list)
		PRB_TRY(dump_child(tree, child));
	return NULL;
}

/**
 * Prints the dumps of a process and its children: in JSON {"dumps": […], "skipped": […]}. The
 * process itself need not run Python: shells, init programs and launchers do not. @p refused: why
 * it has no dump.
 */
static struct prb_error *dump_tree(const struct job *job, const struct prb_target *target,
				   const struct prb_dump *dump, const struct prb_error *refused)
{
	__attribute__((cleanup(prb_subprocesses_deinit))) struct prb_subprocesses children = {};
	prb_auto_str struct prb_str text = {};
	struct tree tree = {.job = job, .skipped = {&text}};

	if (!target->local)
		return prb_error_create(PRB_ERROR_USAGE, "--subprocesses needs a running process");
	PRB_TRY(prb_subprocesses_find(target->pid, &children));
	if (job->json)
		fputs("{\"dumps\":[", stdout);
	prb_json_open(&tree.skipped, NULL, '[');
	PRB_TRY(dump_top(&tree, target, dump, refused));
	PRB_TRY(dump_children(&tree, &children));
	if (job->json) {
		prb_json_close(&tree.skipped, ']');
		fputs("],\"skipped\":", stdout);
		prb_str_puts(&text, "}\n");
		PRB_TRY(prb_output(&text));
	}
	if (tree.dumps)
		return NULL;
	return prb_error_hint(
		prb_command_line_name(target,
				      prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "neither it nor any of its children is a "
						       "Python that can be read")),
		"'probing list --tree' shows the Python processes");
}

/**
 * True if all ranks of a bundle are shown as one tree; variables are shown only for a single rank.
 */
static bool is_for_cluster(const char *text, const struct prb_dump_settings *s)
{
	return prb_spec_kind(text) == PRB_SPEC_BUNDLE && !s->locals && !s->tid && !s->source &&
	       !s->native;
}

struct prb_error *prb_dump(const struct prb_cli *cli, const void *of_command)
{
	static const struct prb_dump_how plain = {};
	const struct prb_dump_settings *settings = of_command;
	const struct prb_dump_how *how = cli->command->how ? cli->command->how : &plain;
	const bool main_only = how->main_thread && !settings->all && !settings->tid;
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_str struct prb_str paused = {};
	struct prb_pause_state pause;
	struct job job;

	if (settings->all && settings->tid)
		return prb_error_create(PRB_ERROR_USAGE, "--all and --tid exclude each other");
	if (is_for_cluster(cli->target, settings))
		return prb_cluster_dump_bundle(cli, !main_only, settings->json);
	PRB_TRY(check(settings));
	job_init(&job, cli, settings, how, main_only);
	PRB_TRY(prb_dump_open(cli, &target));
	prb_pause_state_find(target, &pause);
	prb_pause_state_tell(&pause, target->pid, &paused);
	job.render.paused = prb_str_text(&paused);

	prb_auto_error struct prb_error *refused = make_dump(&job, target, &dump);
	if (settings->subprocesses && (!refused || refused->code == PRB_ERROR_UNSUPPORTED))
		return dump_tree(&job, target, dump, refused);
	if (refused)
		return prb_command_line_name(target, prb_steal(&refused));
	PRB_TRY(show(&job, dump));
	if (job.json) {
		putchar('\n');
		return prb_output_flush();
	}
	return NULL;
}

const struct prb_command prb_command_dump = {
	.rank = 30,
	.for_clients = true,
	.name = "dump",
	.summary = "Print the stack of every thread (short for 'debug --dump')",
	.description = "Same as 'probing debug --dump'; see 'probing help debug'.",
	.options = (const struct prb_option[]){PRB_DUMP_OPTIONS, {}},
	.settings_size = sizeof(struct prb_dump_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){{"probing dump 4242", "What are its threads doing?"},
					     {}},
	.run = prb_dump,
};
