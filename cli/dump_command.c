/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/dump_command.h"

#include <stdio.h>

#include "sql/command_line.h"
#include "cli/exit.h"
#include "cli/fold.h"
#include "cli/output.h"
#include "cli/render.h"
#include "cli/subprocesses.h"
#include "sql/target_spec.h"
#include "cli/term.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/json.h"
#include "dwarf/base/text.h"
#include "injector/dump.h"

static void target_guard(struct prb_target **t)
{
	if (*t)
		prb_target_destroy(*t);
}

static void dump_guard(struct prb_dump **dump)
{
	if (*dump)
		prb_dump_destroy(*dump);
}

#define auto_target __attribute__((cleanup(target_guard)))
#define auto_dump __attribute__((cleanup(dump_guard)))

/** One run of the command. */
struct job {
	struct prb_dump_options options;
	struct prb_render_options render;
	bool json;
};

static struct prb_error *job_init(struct job *job, const struct prb_dump_settings *s,
				  bool main_only)
{
	if (s->nonblocking && s->freeze)
		return prb_error_create(PRB_ERROR_USAGE,
					"--nonblocking and --freeze contradict each other");
	if (s->subprocesses && s->tid)
		return prb_error_create(PRB_ERROR_USAGE,
					"--subprocesses and --tid contradict each other");
	*job = (struct job){
		.options = {.mode = s->nonblocking ? PRB_DUMP_NONBLOCKING
				    : s->freeze	   ? PRB_DUMP_FREEZE
						   : PRB_DUMP_DEFAULT,
			    .locals = s->locals,
			    .native = s->native,
			    .source = s->source,
			    .main_only = main_only,
			    .tid = s->tid,
			    .want_idle = s->json || s->no_fold ? NULL : prb_fold_want_idle},
		.render = {.colour = !s->json && prb_term_colour(stdout),
			   .fold = !s->no_fold,
			   .full_paths = s->full_paths,
			   .locals = s->locals,
			   .source = s->source,
			   .partial = main_only || s->tid},
		.json = s->json,
	};
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

/** Tells that a child is skipped: in text by a warning, in JSON in a list at the end. */
static struct prb_error *note_skipped(const struct job *job, struct prb_json *skipped,
				      const struct prb_process *child, const char *reason)
{
	prb_auto_str struct prb_str command = {}, line = {};

	prb_command_line_text(&command, child);
	prb_str_printf(&line, "child %d (%s) is skipped: %s", (int)child->pid,
		       prb_str_text(&command), reason);
	if (command.failed || line.failed)
		return prb_error_nomem();
	if (!job->json) {
		prb_warn(prb_str_text(&line));
		return NULL;
	}
	prb_json_open(skipped, NULL, '{');
	prb_json_integer(skipped, "pid", child->pid);
	prb_json_text(skipped, "command", prb_str_text(&command));
	prb_json_text(skipped, "reason", reason);
	prb_json_close(skipped, '}');
	return NULL;
}

/** Dumps one child; what is no Python or may not be read is skipped, what ended does not count. */
static struct prb_error *dump_child(const struct job *job, const struct prb_process *child,
				    struct prb_json *skipped)
{
	auto_target struct prb_target *target = NULL;
	auto_dump struct prb_dump *dump = NULL;
	prb_auto_error struct prb_error *err = prb_target_open_process(child->pid, &target);

	if (!err)
		err = prb_dump_create(target, &job->options, &dump);
	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
		return NULL;
	if (err)
		return note_skipped(job, skipped, child, err->message);
	if (!dump->python_version)
		return note_skipped(job, skipped, child, "it is not a Python process");
	putchar(job->json ? ',' : '\n');
	return show(job, dump);
}

static struct prb_error *dump_children(const struct job *job, pid_t pid, struct prb_json *skipped)
{
	__attribute__((cleanup(prb_subprocesses_deinit))) struct prb_subprocesses children = {};
	const struct prb_process *child;

	PRB_TRY(prb_subprocesses_find(pid, &children));
	prb_vec_each (child, &children.list)
		PRB_TRY(dump_child(job, child, skipped));
	return NULL;
}

/** The dump of a process and its children: in JSON {"dumps": […], "skipped": […]}. */
static struct prb_error *dump_tree(const struct job *job, const struct prb_target *target,
				   const struct prb_dump *dump)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json skipped = {&text};

	if (target->kind != PRB_TARGET_PROCESS)
		return prb_error_create(PRB_ERROR_USAGE, "--subprocesses needs a running process");
	if (job->json)
		fputs("{\"dumps\":[", stdout);
	prb_json_open(&skipped, NULL, '[');
	PRB_TRY(show(job, dump));
	PRB_TRY(dump_children(job, target->pid, &skipped));
	if (!job->json)
		return NULL;
	prb_json_close(&skipped, ']');
	fputs("],\"skipped\":", stdout);
	prb_str_puts(&text, "}\n");
	return prb_output(&text);
}

struct prb_error *prb_dump_command(const struct prb_cli *cli,
				   const struct prb_dump_settings *settings, bool main_only)
{
	auto_target struct prb_target *target = NULL;
	auto_dump struct prb_dump *dump = NULL;
	struct job job;

	PRB_TRY(job_init(&job, settings, main_only));
	PRB_TRY(prb_spec_open(cli->target, cli->exe, &target));
	PRB_TRY(prb_dump_create(target, &job.options, &dump));
	if (settings->subprocesses)
		return dump_tree(&job, target, dump);
	PRB_TRY(show(&job, dump));
	if (job.json) {
		putchar('\n');
		return prb_output_flush();
	}
	return NULL;
}
