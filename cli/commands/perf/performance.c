/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "command/commands.h"
#include "command/descriptors.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/naming.h"
#include "command/output.h"
#include "cli/commands/perf/show/performance.h"
#include "cli/commands/perf/record/background.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/record/program.h"
#include "cli/commands/perf/record/progress.h"
#include "cli/commands/perf/record/steps.h"
#include "cli/commands/perf/torch/torch.h"
#include "command/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/text.h"
#include "profile/formats/format.h"
#include "profile/recording/join.h"
#include "profile/store/load/load.h"
#include "profile/recording/range.h"
#include "profile/sampler/sampler.h"
#include "profile/recording/tasks_view.h"
#include "target/recorded/recorded.h"
#include "target/spec/command_line.h"
#include "target/spec/target_spec.h"

static const double default_seconds = 10, around = 10;
static const int default_rate = 100, highest_rate = 20000;

enum { CHUNK_RUNS = 16384 }; /* of a recording that is written when it is made already */

#define auto_choice __attribute__((cleanup(prb_performance_choice_deinit)))

/** What is recorded of a program that is started, and where to. */
struct started {
	const struct prb_performance_settings *settings;
	const char *command;
	struct prb_store *store; /**< NULL: no file */
	bool source;
	const struct prb_profile_program *program; /**< set when it runs */
	bool caught;				   /**< its signals are ours now */
};

static bool is_cancelled(void *context)
{
	(void)context;
	return prb_interrupted();
}

static bool gives_up_names(void *context)
{
	prb_progress_say("naming C functions; Ctrl-C leaves their addresses");
	return prb_naming_gives_up(context);
}

/** Without an end of its own: until Ctrl-C. */
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

/** A Ctrl-C ends the recording, not the command. One in the background is only ever asked to end,
 * and its names are waited for. */
static struct prb_error *record(const struct prb_performance_targets *targets,
				const struct prb_performance_settings *s, struct prb_store *store,
				bool source, struct prb_performance_note *note,
				struct prb_recording **ret)
{
	struct prb_target *target = targets->list.items[0];
	prb_auto_free char *command = NULL;
	struct prb_profile_options options = {
		.seconds =
			s->duration > 0 || s->ring > 0 || s->when ? s->duration : default_seconds,
		.ring = s->ring,
		.condition = s->when,
		.around = s->when ? around : 0,
		.rate = s->rate ? s->rate : default_rate,
		.tid = s->tid,
		.native = s->cc,
		.tasks = s->tasks,
		.source = source,
		.store = store,
		.others = targets->list.items + 1,
		.others_count = targets->list.count - 1,
		.names = s->several ? s->several->names + 1 : NULL,
		.children = s->subprocesses ? prb_performance_children : NULL,
		.begun = note ? prb_performance_note_begun : NULL,
		.progress = prb_progress_put,
		.cancelled = is_cancelled,
		.give_up_names = note && note->report >= 0 ? NULL : gives_up_names,
		.context = note,
	};
	struct prb_error *err;

	if (target->local && !s->several)
		PRB_TRY(prb_performance_command_line(target, &command));
	options.command = s->several ? s->several->names[0] : command;
	tell_begin(target, &options);
	prb_progress_begin();
	prb_interrupt_catch_ends();
	err = prb_profile_record(target, &options, ret);
	prb_interrupt_release();
	prb_progress_end();
	prb_naming_tell(*ret);
	return prb_command_line_name(target, err);
}

static bool writes_recording(const struct prb_performance_settings *s)
{
	return s->output && !s->format && prb_store_is_path(s->output);
}

/** Whether it matters when the runs of a recording were. */
static bool needs_order(const struct prb_performance_settings *s,
			const struct prb_profile_format *format)
{
	return s->diff || s->last > 0 || s->from > 0 || s->to > 0 || (format && !format->any_order);
}

/** Whether source lines are recorded. */
static bool wants_source(const struct prb_performance_settings *s,
			 const struct prb_profile_format *format)
{
	return !s->no_source && (s->annotate || writes_recording(s) || format == &prb_format_html);
}

struct prb_error *prb_performance_keep(const struct prb_performance_targets *targets,
				       const struct prb_performance_settings *s,
				       struct prb_performance_note *note,
				       struct prb_recording **ret)
{
	prb_auto_store struct prb_store *store = NULL;

	PRB_TRY(prb_store_create(s->output, &store));
	if (s->when)
		PRB_TRY(prb_store_keep_when(store, s->when, around, prb_performance_steps));
	return record(targets, s, store, !s->no_source, note, ret);
}

/** It is written while it is made, and read back to be shown. */
static struct prb_error *record_to_file(const struct prb_performance_targets *targets,
					const struct prb_performance_settings *s,
					struct prb_recording **ret)
{
	prb_auto_recording struct prb_recording *without_runs = NULL;
	struct prb_performance_note note = PRB_PERFORMANCE_NO_NOTE;
	struct prb_error *err;

	note.pid = targets->list.items[0]->pid;
	note.output = s->output;
	err = prb_performance_keep(targets, s, s->ring > 0 ? &note : NULL, &without_runs);
	prb_known_end(&note.known, err);
	PRB_TRY(err);
	return prb_profile_load_view(s->output, needs_order(s, NULL), s->tasks, ret);
}

static struct prb_error *load(const char *path, const struct prb_performance_settings *s,
			      const struct prb_profile_format *format, struct prb_recording **ret)
{
	const char *option = s->duration > 0   ? "--duration"
			     : s->ring > 0     ? "--ring"
			     : s->when	       ? "--when"
			     : s->rate	       ? "--rate"
			     : s->cc	       ? "--cc"
			     : s->subprocesses ? "--subprocesses"
					       : NULL;

	if (option)
		return prb_error_create(PRB_ERROR_USAGE,
					"%s is for a process, and this is a recording of one",
					option);
	if (writes_recording(s))
		return prb_error_create(PRB_ERROR_USAGE,
					"this is a recording already: copy the file");
	if (format == &prb_format_html && !s->diff && !(s->last > 0) && !s->tasks)
		return prb_profile_load_steps(path, ret);
	PRB_TRY(prb_profile_load_view(path, needs_order(s, format), s->tasks, ret));
	if (s->tasks && !(*ret)->tasks)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 "the recording was made without the tasks of asyncio"),
			"--async records them, for both views");
	if (s->last > 0)
		prb_recording_clip(*ret, PRB_MAX((*ret)->duration - (int64_t)(s->last * 1e9), 0),
				   INT64_MAX);
	return NULL;
}

/** A recording that is made now, or that is there. */
static struct prb_error *get(const struct prb_cli *cli, const struct prb_performance_settings *s,
			     const struct prb_profile_format *format, struct prb_recording **ret)
{
	__attribute__((cleanup(
		prb_performance_targets_deinit))) struct prb_performance_targets targets = {};
	prb_auto_free char *kept = NULL;
	struct prb_target *first;
	bool running = false;

	if (s->last > 0)
		PRB_TRY(prb_performance_find_kept(cli, &kept, &running));
	if (kept)
		PRB_TRY(load(kept, s, format, ret));
	/* That it goes on is nothing to be told of. */
	if (kept && running && (*ret)->end == PRB_PROFILE_CUT_OFF)
		(*ret)->end = PRB_PROFILE_DONE;
	if (kept)
		return NULL;
	PRB_TRY(prb_performance_open(cli, s, &targets));
	first = targets.list.items[0];
	if (prb_recorded_path(first))
		return load(prb_recorded_path(first), s, format, ret);
	if (writes_recording(s))
		return record_to_file(&targets, s, ret);
	return record(&targets, s, NULL, wants_source(s, format), NULL, ret);
}

/** A name for a file that the user has not named: "probing-4242-20261231-235959.html". */
static char *file_name(const struct prb_recording *recording,
		       const struct prb_profile_format *format)
{
	const time_t begin = (time_t)recording->started;
	char stamp[32] = "";
	struct tm local;

	if (localtime_r(&begin, &local))
		strftime(stamp, sizeof(stamp), "-%Y%m%d-%H%M%S", &local);
	return prb_format("probing-%d%s%s", (int)recording->pid, stamp, format->extensions[0]);
}

static struct prb_error *write_to(const struct prb_recording *recording,
				  const struct prb_profile_choice *choice,
				  const struct prb_profile_format *format,
				  struct prb_new_file *file, const char *path)
{
	struct prb_sink sink = {.path = path};
	struct prb_error *err;

	PRB_TRY(prb_new_file_open(file, path));
	sink.fd = file->fd;
	err = format->write(recording, choice, &sink);
	prb_str_deinit(&sink.text);
	PRB_TRY(err);
	return prb_new_file_finish(file);
}

struct prb_error *prb_performance_write(const struct prb_recording *recording,
					const struct prb_profile_choice *choice,
					const struct prb_performance_settings *s,
					const struct prb_profile_format *format)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_free char *own = s->output ? NULL : file_name(recording, format);
	const char *path = s->output ? s->output : own;

	if (!path)
		return prb_error_nomem();
	file.replaces_links = !s->output;
	PRB_TRY(write_to(recording, choice, format, &file, path));
	return s->json ? NULL : prb_performance_tell_file(recording, path);
}

static struct prb_error *put_report(const struct prb_recording *recording,
				    const struct prb_profile_choice *choice,
				    const struct prb_performance_settings *s, struct prb_str *text)
{
	struct prb_report report;
	struct prb_error *err;

	PRB_TRY(prb_report_make(recording, choice, &report));
	err = (s->json ? prb_performance_json : prb_performance_text)(recording, choice, &report,
								      text);
	prb_report_deinit(&report);
	return err;
}

static struct prb_error *show(const struct prb_recording *recording,
			      const struct prb_profile_choice *choice,
			      const struct prb_performance_settings *s)
{
	prb_auto_str struct prb_str text = {};

	if (recording->before)
		PRB_TRY(prb_performance_diff(recording, choice, s->json, &text));
	else if (s->annotate)
		PRB_TRY(prb_performance_annotate(recording, choice, s->annotate, s->json, &text));
	else
		PRB_TRY(put_report(recording, choice, s, &text));
	if (s->output && !s->json) {
		prb_text_escape(&text, s->output);
		prb_str_puts(&text, ": the samples; 'probing FILE perf' shows them again\n");
	}
	PRB_TRY(prb_output(&text));
	return prb_output_flush();
}

/** *ret is NULL if no file is wanted. */
static struct prb_error *find_format(const struct prb_performance_settings *s,
				     const struct prb_profile_format *usual,
				     const struct prb_profile_format **ret)
{
	*ret = usual;
	if (s->format && !s->output && !usual)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "--format is that of a file"),
			"'-o FILE' says which one");
	if (s->format)
		return prb_profile_format_named(s->format, ret);
	if (!s->output)
		return NULL;
	if (writes_recording(s)) {
		*ret = NULL;
		return NULL;
	}
	return prb_profile_format_find(s->output, ret);
}

/** What of a recording is to be shown: a part of its time, and beside the one before it. */
static struct prb_error *prepare(const struct prb_performance_settings *s,
				 struct prb_recording **recording)
{
	const int64_t from = (int64_t)(s->from * 1e9);
	const int64_t to = s->to > 0 ? (int64_t)(s->to * 1e9) : INT64_MAX;
	const bool part = s->from > 0 || s->to > 0;
	prb_auto_recording struct prb_recording *before = NULL, *joined = NULL;

	if (part)
		prb_recording_clip(*recording, from, to);
	if (s->no_source)
		prb_recording_drop_lines(*recording);
	/* One that was read from a file is such a view already. */
	PRB_TRY(prb_tasks_view(*recording, s->tasks, NULL));
	if (!s->diff)
		return NULL;
	PRB_TRY(prb_profile_load_view(s->diff, true, s->tasks, &before));
	if (part)
		prb_recording_clip(before, from, to);
	PRB_TRY(prb_recording_join(before, *recording, &joined));
	prb_recording_destroy(*recording);
	*recording = prb_steal(&joined);
	return NULL;
}

static struct prb_error *check(const struct prb_performance_settings *s,
			       const struct prb_profile_format *format)
{
	if (s->steps && !s->torch)
		return prb_error_create(PRB_ERROR_USAGE, "--steps is for --torch");
	if (s->exact && !s->torch)
		return prb_error_create(PRB_ERROR_USAGE, "--exact is for --torch");
	if (s->torch && writes_recording(s))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "a recording does not have modules yet"),
			"-o takes .html and the other formats");
	if (s->to > 0 && s->to <= s->from)
		return prb_error_create(PRB_ERROR_USAGE, "--to has to be after --from");
	if (s->annotate && (s->diff || format))
		return prb_error_create(PRB_ERROR_USAGE,
					"--annotate prints source: it goes with no %s",
					s->diff ? "--diff" : "file for viewers");
	if (s->diff && s->tid)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "--tid is of one recording only"),
			"--threads compares those whose names match");
	if (s->diff && format && format != &prb_format_html)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "a comparison cannot be written as %s",
						       format->name),
				      "it is a table, --json, or a .html file");
	if (s->tid && (s->subprocesses || s->all))
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "--tid is a thread of one process, and %s "
						       "is for several",
						       s->all ? "--all" : "--subprocesses"),
				      "--threads shows those whose names match");
	if (s->rate > highest_rate)
		return prb_error_create(PRB_ERROR_USAGE, "--rate is at most %d", highest_rate);
	if (s->when && !writes_recording(s) && !s->background)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "--when is for a .profile"),
				      "'-o FILE.profile' says which one");
	if (s->when && s->ring > 0)
		return prb_error_create(PRB_ERROR_USAGE, "--when does not go with --ring");
	if (s->background && s->output && !writes_recording(s))
		return prb_error_create(PRB_ERROR_USAGE,
					"--background writes a .profile; --last makes other files "
					"of it");
	if (s->ring > 0 && !writes_recording(s) && !s->background)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "--ring is for a .profile"),
				      "'-o FILE.profile' says which one");
	return prb_performance_check_choice(s);
}

/** What goes with a program to start. */
static struct prb_error *check_program(const struct prb_performance_settings *s)
{
	const char *option = s->when	     ? "--when"
			     : s->last > 0   ? "--last"
			     : s->background ? "--background"
					     : NULL;

	if (option)
		return prb_error_create(PRB_ERROR_USAGE,
					"%s is of a process that runs, not of one to start",
					option);
	if (s->tid || s->all)
		return prb_error_create(
			PRB_ERROR_USAGE,
			"--tid and --all are of a process that runs, not of one to start");
	return NULL;
}

/** Where nothing is shown, nothing of it can be chosen: recordings have all. */
static struct prb_error *check_shown(const struct prb_performance_settings *s)
{
	const char *option = s->threads			? "--threads"
			     : s->annotate		? "--annotate"
			     : s->from > 0 || s->to > 0 ? "--from or --to"
							: NULL;

	if (!option || !s->background)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "%s does not go with --background", option),
		"the recording has everything: 'probing FILE perf' takes %s", option);
}

/** A viewer weighs samples anew, by what its format has of them. */
static struct prb_error *check_format(const struct prb_performance_settings *s,
				      const struct prb_profile_format *format)
{
	enum prb_weight weight;

	PRB_TRY(prb_weight_parse(s->mode, &weight));
	if (!format || !format->basic_modes || weight <= PRB_WEIGHT_RUNQUEUE)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "%s has no mode '%s'", format->name,
					       prb_weight_words[weight].mode),
			      "the table, .html, .svg, .collapsed and .speedscope.json have it");
}

/** Signals are for the program as long as it runs. */
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
		.seconds = s->duration,
		.ring = s->ring,
		.rate = s->rate ? s->rate : default_rate,
		.native = s->cc,
		.tasks = s->tasks,
		.children = s->subprocesses ? prb_performance_children : NULL,
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
	return prb_profile_load_view(s->output, needs_order(s, NULL), s->tasks, ret);
}

/** A program that is started for it. What is printed goes to stderr: its stdout is its own. */
static struct prb_error *start(const struct prb_cli *cli, const struct prb_performance_settings *s,
			       const struct prb_profile_format *format, struct prb_recording **ret)
{
	prb_auto_store struct prb_store *store = NULL;
	prb_auto_str struct prb_str command = {};
	struct started started = {.settings = s};

	if (writes_recording(s))
		PRB_TRY(prb_store_create(s->output, &store));
	for (char *const *word = cli->program; *word; word++)
		prb_str_printf(&command, "%s%s", word == cli->program ? "" : " ", *word);
	started.command = prb_str_text(&command);
	started.store = store;
	started.source = wants_source(s, format);
	prb_output_aside();
	prb_descriptors_raise();
	return prb_program_record(cli->program, record_program, &started, ret);
}

static struct prb_error *show_all(const struct prb_recording *recording,
				  const struct prb_performance_settings *s,
				  const struct prb_profile_format *format)
{
	auto_choice struct prb_performance_choice chosen = {};

	PRB_TRY(prb_performance_choose(recording, s, &chosen));
	if (format)
		PRB_TRY(prb_performance_write(recording, &chosen.choice, s, format));
	return format && !s->json ? NULL : show(recording, &chosen.choice, s);
}

/** Writes it as if it had been recorded to that file. */
static struct prb_error *keep_recording(const struct prb_recording *recording, const char *path)
{
	prb_auto_store struct prb_store *store = NULL;

	struct prb_recording part = *recording;

	PRB_TRY(prb_store_create(path, &store));
	part.runs.count = 0;
	PRB_TRY(prb_store_begin(store, &part));
	for (size_t left = recording->runs.count; left; left -= part.runs.count) {
		part.runs.items = recording->runs.items + recording->runs.count - left;
		part.runs.count = PRB_MIN(left, (size_t)CHUNK_RUNS);
		PRB_TRY(prb_store_put_rest(store, &part));
	}
	part.runs.count = 0;
	return prb_store_finish(store, &part);
}

struct prb_error *prb_performance_check(const struct prb_performance_settings *s)
{
	const struct prb_profile_format *format;

	PRB_TRY(find_format(s, NULL, &format));
	PRB_TRY(check(s, format));
	return check_format(s, format);
}

struct prb_error *prb_performance_show(struct prb_recording **recording,
				       const struct prb_performance_settings *s)
{
	const struct prb_profile_format *format;

	PRB_TRY(find_format(s, NULL, &format));
	if (writes_recording(s))
		PRB_TRY(keep_recording(*recording, s->output));
	PRB_TRY(prepare(s, recording));
	return show_all(*recording, s, format);
}

struct prb_error *prb_performance_run(const struct prb_cli *cli,
				      const struct prb_performance_settings *s,
				      const struct prb_profile_format *usual)
{
	const struct prb_profile_format *format;
	prb_auto_recording struct prb_recording *recording = NULL;
	struct prb_error *err;

	if (s->stop)
		return prb_performance_stop(cli, s->json);
	PRB_TRY(find_format(s, usual, &format));
	PRB_TRY(check(s, format));
	PRB_TRY(check_shown(s));
	PRB_TRY(check_format(s, format));
	if (cli->program)
		PRB_TRY(check_program(s));
	if (s->torch)
		return prb_performance_torch(cli, s, format);
	if (s->background)
		return prb_performance_background(cli, s);
	PRB_TRY((cli->program ? start : get)(cli, s, format, &recording));
	if (cli->program && !recording->python && !s->cc)
		prb_warn(recording->threads.count
				 ? "no Python was found in the program while it was recorded; "
				   "--cc records C and C++ functions of any program"
				 : "the program ended before it could be looked at");
	err = prepare(s, &recording);
	if (!err)
		err = show_all(recording, s, format);
	return cli->program ? prb_program_wait(err) : err;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	return prb_performance_run(cli, settings, NULL);
}

const struct prb_option prb_performance_options[] = {
	{"duration", 'd', PRB_OPTION_SECONDS, "TIME",
	 "How long; without it 10s, or until a started program ends", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, duration), .for_clients = true},
	{"ring", 0, PRB_OPTION_SECONDS, "TIME",
	 "Record until Ctrl-C, and keep the last TIME in the .profile of -o", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, ring)},
	{"background", 'b', PRB_OPTION_FLAG, NULL,
	 "Record in the background, and keep the last 10m or --ring TIME", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, background)},
	{"when", 0, PRB_OPTION_TEXT, "CONDITION",
	 "Until Ctrl-C; keep 10s before and after moments at which SQL holds",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, when)},
	{"stop", 0, PRB_OPTION_FLAG, NULL, "End the recording in the background",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, stop)},
	{"last", 0, PRB_OPTION_SECONDS, "TIME",
	 "The end of a .profile, or of what --ring or --background keep of a process",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, last),
	 .for_clients = true},
	{"rate", 'r', PRB_OPTION_NUMBER, "HZ", "How often a second on average; without it 100",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, rate),
	 .for_clients = true},
	{"output", 'o', PRB_OPTION_TEXT, "FILE",
	 "Write FILE: .profile, .html, .svg, .pb.gz and others, as --format has", PRB_COMPLETE_FILE,
	 offsetof(struct prb_performance_settings, output)},
	{"format", 'f', PRB_OPTION_TEXT, "FORMAT",
	 "As html, svg, collapsed, speedscope, pprof, trace or gecko", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, format)},
	{"mode", 'm', PRB_OPTION_TEXT, "MODE",
	 "What is weighed: cpu, runqueue, gil, blocked or wall time", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, mode), .for_clients = true},
	{"tid", 0, PRB_OPTION_NUMBER, "TID", "Only the thread TID", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, tid), .for_clients = true},
	{"all", 0, PRB_OPTION_FLAG, NULL, "All processes that the name or /regex/ matches",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, all), .for_clients = true},
	{"subprocesses", 's', PRB_OPTION_FLAG, NULL,
	 "Children too, also those that start meanwhile", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, subprocesses), .for_clients = true},
	{"threads", 0, PRB_OPTION_TEXT, "REGEX", "Only threads with a name that matches",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, threads),
	 .for_clients = true},
	{"cc", 'C', PRB_OPTION_FLAG, NULL,
	 "C and C++ frames too, of all threads; Python need not be there", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, cc), .for_clients = true},
	{"async", 'A', PRB_OPTION_FLAG, NULL,
	 "The asyncio task and its chain of awaits in place of the event loop",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, tasks),
	 .for_clients = true},
	{"torch", 'T', PRB_OPTION_FLAG, NULL,
	 "The modules of torch as a tree, and the parts of a training step", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, torch), .for_clients = true},
	{"steps", 0, PRB_OPTION_NUMBER, "COUNT", "End after so many training steps, with --torch",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, steps),
	 .for_clients = true},
	{"exact", 0, PRB_OPTION_FLAG, NULL,
	 "Time each call of a module in every other step by hooks, with --torch",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, exact),
	 .for_clients = true},
	{"lines", 'l', PRB_OPTION_FLAG, NULL, "Each line of a function by itself",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, lines),
	 .for_clients = true},
	{"from", 0, PRB_OPTION_SECONDS, "TIME", "Only what was later than TIME after the start",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, from),
	 .for_clients = true},
	{"to", 0, PRB_OPTION_SECONDS, "TIME", "Only what was earlier than TIME after the start",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, to), .for_clients = true},
	{"diff", 0, PRB_OPTION_TEXT, "BEFORE", "What changed since BEFORE, a recording",
	 PRB_COMPLETE_FILE, offsetof(struct prb_performance_settings, diff)},
	{"annotate", 0, PRB_OPTION_TEXT, "FILE[:FUNCTION]",
	 "Print the source of FILE with the time of each line", PRB_COMPLETE_FILE,
	 offsetof(struct prb_performance_settings, annotate), .for_clients = true},
	{"no-source", 0, PRB_OPTION_FLAG, NULL, "Leave source lines out of the file",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, no_source)},
	{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, json), .for_clients = true},
	{}};

const struct prb_command prb_command_performance = {
	.rank = 65,
	.for_clients = true,
	.name = "performance",
	.aliases = {"perf", "p"},
	.summary = "Sample where a process spends its time",
	.description =
		"Looks at all Python threads at random times, from outside, and prints which "
		"functions used the processors: by themselves, and with all that they called. "
		"Shares are weighed by what the kernel counts for each thread, and each comes with "
		"the bounds that it has with a probability of 95 %. With --cc also C and C++ "
		"functions, of any process.\n\n"
		"Only threads that run are stopped, each for some 40 µs; what that cost is told at "
		"the end. -o writes a file for a viewer, in the format that its name ends with; "
		"or FILE.profile, from which each view and all other formats can be made later: "
		"it is a target of 'perf', 'flamegraph' and 'query' in place of a process.",
	.options = prb_performance_options,
	.settings_size = sizeof(struct prb_performance_settings),
	.target_use = PRB_TARGET_ONE,
	.takes_program = true,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){{"probing 4242 perf", "Ten seconds of it"},
					     {"probing 4242 perf --mode wall --threads worker",
					      "What the workers wait for"},
					     {"probing 4242 perf --cc", "C and C++ functions too"},
					     {"probing 4242 perf --torch --steps 100",
					      "By module of torch, forward and backward"},
					     {"probing 4242 perf -d 1m -o run.profile",
					      "A minute, to be looked at later"},
					     {"probing perf -- python3 train.py --epochs 3",
					      "Start a program, and record it until it ends"},
					     {"probing perf --diff before.profile after.profile",
					      "What got slower, and whether that is chance"},
					     {"probing run.profile perf -o run.speedscope.json",
					      "The same, for a viewer"},
					     {}},
	.run = run,
};
