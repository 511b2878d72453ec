/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/record/record.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/perf/record/background.h"
#include "cli/commands/perf/record/progress.h"
#include "cli/commands/perf/record/program.h"
#include "cli/commands/perf/record/steps.h"
#include "command/descriptors.h"
#include "command/interrupt.h"
#include "command/naming.h"
#include "command/output.h"
#include "command/term.h"
#include "command/waiting.h"
#include "profile/sampler/sampler.h"
#include "profile/store/load/load.h"
#include "target/spec/command_line.h"

static const double default_seconds = 10, around = 10;
static const int default_rate = 100;

static bool is_cancelled(void *context)
{
	(void)context;
	return prb_interrupted();
}

static bool gives_up_names(void *context)
{
	prb_waiting_say("naming C functions; Ctrl-C leaves their addresses");
	return prb_naming_gives_up(context);
}

/** Without a duration, the recording ends with Ctrl-C. */
static void tell_begin(const struct prb_target *target, const struct prb_profile_options *options)
{
	prb_auto_str struct prb_str text = {};

	if (!prb_term_is(stderr))
		return;
	if (options->seconds > 0) {
		prb_str_puts(&text, " for ");
		prb_text_duration(&text, options->seconds);
	}
	fprintf(stderr, "sampling %d%s; Ctrl-C ends it and shows what there is\n", (int)target->pid,
		prb_str_text(&text));
}

/**
 * Ctrl-C ends the recording, not the command. A background recorder is only asked to end, and
 * always names all C functions.
 */
static struct prb_error *record(const struct prb_performance_targets *targets,
				const struct prb_performance_settings *s, struct prb_store *store,
				bool source, struct prb_performance_note *note,
				struct prb_recording **ret)
{
	struct prb_target *target = targets->list.items[0];
	prb_auto_free char *command = NULL;
	const struct prb_performance_sampling *how = &s->record;
	const bool endless = how->ring > 0 || how->when;
	struct prb_profile_options options = {
		.seconds = how->duration > 0 || endless ? how->duration : default_seconds,
		.ring = how->ring,
		.condition = how->when,
		.around = how->when ? around : 0,
		.rate = how->rate ? how->rate : default_rate,
		.tid = how->tid,
		.native = how->cc,
		.ebpf = how->source && !strcmp(how->source, "ebpf"),
		.tasks = how->tasks,
		.source = source,
		.store = store,
		.others = targets->list.items + 1,
		.others_count = targets->list.count - 1,
		.names = how->several ? how->several->names + 1 : NULL,
		.children = how->subprocesses ? prb_performance_children : NULL,
		.begun = note ? prb_performance_note_begun : NULL,
		.progress = prb_recording_progress,
		.cancelled = is_cancelled,
		.give_up_names = note && note->report >= 0 ? NULL : gives_up_names,
		.context = note,
	};
	struct prb_error *err;

	if (target->local && !how->several)
		PRB_TRY(prb_performance_command_line(target, &command));
	options.command = how->several ? how->several->names[0] : command;
	tell_begin(target, &options);
	prb_waiting_begin("sampling", options.seconds);
	prb_interrupt_catch_ends();
	err = prb_profile_record(target, &options, ret);
	prb_interrupt_release();
	prb_waiting_end();
	prb_naming_tell(*ret);
	return prb_command_line_name(target, err);
}

struct prb_error *prb_performance_keep(const struct prb_performance_targets *targets,
				       const struct prb_performance_settings *s,
				       struct prb_performance_note *note,
				       struct prb_recording **ret)
{
	prb_auto_store struct prb_store *store = NULL;

	PRB_TRY(prb_store_create(s->out.path, &store));
	if (s->record.when)
		PRB_TRY(prb_store_keep_when(store, s->record.when, around, prb_performance_steps));
	return record(targets, s, store, !s->record.no_source, note, ret);
}

/** Records into a file, and loads the file to show it. */
static struct prb_error *record_to_file(const struct prb_performance_targets *targets,
					const struct prb_performance_settings *s,
					struct prb_recording **ret)
{
	prb_auto_recording struct prb_recording *without_runs = NULL;
	struct prb_performance_note note = PRB_PERFORMANCE_NO_NOTE;
	struct prb_error *err;

	note.pid = targets->list.items[0]->pid;
	note.output = s->out.path;
	err = prb_performance_keep(targets, s, s->record.ring > 0 ? &note : NULL, &without_runs);
	prb_known_end(&note.known, err);
	PRB_TRY(err);
	return prb_profile_load_view(s->out.path, prb_performance_needs_order(s, NULL),
				     s->record.tasks, ret);
}

struct prb_error *prb_performance_record(const struct prb_performance_targets *targets,
					 const struct prb_performance_settings *s,
					 const struct prb_profile_format *format,
					 struct prb_recording **ret)
{
	if (prb_performance_writes_recording(s))
		return record_to_file(targets, s, ret);
	return record(targets, s, NULL, prb_performance_wants_source(s, format), NULL, ret);
}

/** The recording of a started program. */
struct started {
	const struct prb_performance_settings *settings;
	const char *command;
	struct prb_store *store; /**< NULL: no file */
	bool source;
	const struct prb_profile_program *program; /**< set when it runs */
	bool caught;				   /**< we catch its signals now */
};

/** While the program runs, signals are for the program. */
static bool gives_up_names_of_program(void *context)
{
	struct started *started = context;

	if (!started->caught && !started->program->has_ended(started->program->context))
		return false;
	if (!started->caught)
		prb_interrupt_catch(NULL);
	started->caught = true;
	return gives_up_names(NULL);
}

static struct prb_error *record_program(void *context, const struct prb_profile_program *program,
					struct prb_recording **ret)
{
	struct started *started = context;
	const struct prb_performance_settings *s = started->settings;
	const struct prb_profile_options options = {
		.seconds = s->record.duration,
		.ring = s->record.ring,
		.rate = s->record.rate ? s->record.rate : default_rate,
		.native = s->record.cc,
		.tasks = s->record.tasks,
		.children = s->record.subprocesses ? prb_performance_children : NULL,
		.source = started->source,
		.command = started->command,
		.store = started->store,
		.give_up_names = gives_up_names_of_program,
		.context = started,
	};
	prb_auto_recording struct prb_recording *without_runs = NULL;
	struct prb_recording **made = started->store ? &without_runs : ret;
	struct prb_error *err;

	started->program = program;
	err = prb_profile_record_program(program, &options, made);
	if (started->caught)
		prb_interrupt_release();
	prb_naming_tell(*made);
	if (err || !started->store)
		return err;
	return prb_profile_load_view(s->out.path, prb_performance_needs_order(s, NULL),
				     s->record.tasks, ret);
}

struct prb_error *prb_performance_start(const struct prb_cli *cli,
					const struct prb_performance_settings *s,
					const struct prb_profile_format *format,
					struct prb_recording **ret)
{
	prb_auto_store struct prb_store *store = NULL;
	prb_auto_str struct prb_str command = {};
	struct started started = {.settings = s};

	if (prb_performance_writes_recording(s))
		PRB_TRY(prb_store_create(s->out.path, &store));
	for (char *const *word = cli->program; *word; word++)
		prb_str_printf(&command, "%s%s", word == cli->program ? "" : " ", *word);
	started.command = prb_str_text(&command);
	started.store = store;
	started.source = prb_performance_wants_source(s, format);
	prb_output_aside();
	prb_descriptors_raise();
	return prb_program_record(cli->program, record_program, &started, ret);
}
