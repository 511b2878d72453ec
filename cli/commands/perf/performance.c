/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/commands.h"
#include "command/exit.h"
#include "command/output.h"
#include "cli/commands/perf/modes.h"
#include "cli/commands/perf/show/performance.h"
#include "cli/commands/perf/show/slowest.h"
#include "cli/commands/perf/record/background.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/record/program.h"
#include "cli/commands/perf/record/record.h"
#include "cli/commands/perf/record/shared.h"
#include "cli/commands/perf/torch/exact/exact.h"
#include "cli/commands/perf/torch/ops/ops.h"
#include "cli/commands/perf/torch/torch.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/formats/format.h"
#include "profile/recording/join.h"
#include "profile/recording/library_view.h"
#include "profile/store/load/load.h"
#include "profile/recording/range.h"
#include "profile/recording/tasks_view.h"
#include "target/recorded/recorded.h"
#include "target/spec/target_spec.h"

#define auto_choice __attribute__((cleanup(prb_performance_choice_deinit)))

static struct prb_error *load(const char *path, const struct prb_performance_settings *s,
			      const struct prb_profile_format *format, struct prb_recording **ret)
{
	PRB_TRY(prb_performance_mode_check(PRB_PERFORMANCE_RECORDING, s));
	if (prb_performance_writes_recording(s))
		return prb_error_create(PRB_ERROR_USAGE,
					"this is a recording already: copy the file");
	if (format == &prb_format_html && !s->show.diff && !(s->show.last > 0) && !s->record.tasks)
		return prb_profile_load_steps(path, ret);
	PRB_TRY(prb_profile_load_view(path, prb_performance_needs_order(s, format), s->record.tasks,
				      ret));
	if (s->record.tasks && !(*ret)->tasks)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 "the recording was made without the tasks of asyncio"),
			"--async records them, for both views");
	if (s->show.last > 0)
		prb_recording_clip(*ret,
				   PRB_MAX((*ret)->duration - (int64_t)(s->show.last * 1e9), 0),
				   INT64_MAX);
	return NULL;
}

/** Makes a recording, or loads the target's file. */
static struct prb_error *get(const struct prb_cli *cli, const struct prb_performance_settings *s,
			     const struct prb_profile_format *format, struct prb_recording **ret)
{
	__attribute__((cleanup(
		prb_performance_targets_deinit))) struct prb_performance_targets targets = {};
	struct prb_target *first;
	bool source;

	PRB_TRY(prb_performance_open(cli, s, &targets));
	first = targets.list.items[0];
	if (prb_recorded_path(first))
		return load(prb_recorded_path(first), s, format, ret);
	source = prb_performance_writes_recording(s) ? !s->record.no_source
						     : prb_performance_wants_source(s, format);
	PRB_TRY(prb_performance_shared(&targets, s, source, ret));
	if (!*ret)
		return prb_performance_record(&targets, s, format, ret);
	return prb_performance_writes_recording(s)
		       ? prb_performance_keep_recording(*ret, s->out.path)
		       : NULL;
}

/** The end of the process's ring recording, or of the target's file. */
static struct prb_error *get_last(const struct prb_cli *cli,
				  const struct prb_performance_settings *s,
				  const struct prb_profile_format *format,
				  struct prb_recording **ret)
{
	prb_auto_free char *kept = NULL;
	bool running = false;

	PRB_TRY(prb_performance_find_kept(cli, &kept, &running));
	if (!kept)
		return get(cli, s, format, ret);
	PRB_TRY(load(kept, s, format, ret));
	/* A recorder that is still running is no news to the user. */
	if (running && (*ret)->end == PRB_PROFILE_CUT_OFF)
		(*ret)->end = PRB_PROFILE_DONE;
	return NULL;
}

static struct prb_error *put_report(const struct prb_recording *recording,
				    const struct prb_profile_choice *choice,
				    const struct prb_performance_settings *s, struct prb_str *text)
{
	struct prb_report report;
	struct prb_error *err;

	PRB_TRY(prb_report_make(recording, choice, &report));
	err = (s->out.json ? prb_performance_json : prb_performance_text)(recording, choice,
									  &report, text);
	prb_report_deinit(&report);
	return err;
}

static struct prb_error *show(const struct prb_recording *recording,
			      const struct prb_profile_choice *choice,
			      const struct prb_performance_settings *s)
{
	prb_auto_str struct prb_str text = {};

	if (recording->before)
		PRB_TRY(prb_performance_diff(recording, choice, s->out.json, &text));
	else if (s->show.annotate)
		PRB_TRY(prb_performance_annotate(recording, choice, s->show.annotate, s->out.json,
						 &text));
	else
		PRB_TRY(put_report(recording, choice, s, &text));
	if (s->out.path && !s->out.json) {
		prb_text_escape(&text, s->out.path);
		prb_str_puts(&text, ": the samples; 'probing FILE perf' shows them again\n");
	}
	PRB_TRY(prb_output_lines(&text, s->out.json));
	return prb_output_flush();
}

/**
 * Prepares the recording for display: cuts it to the chosen time, and joins it with that of --diff.
 */
static struct prb_error *prepare(const struct prb_performance_settings *s,
				 struct prb_recording **recording)
{
	const int64_t from = (int64_t)(s->show.from * 1e9);
	const int64_t to = s->show.to > 0 ? (int64_t)(s->show.to * 1e9) : INT64_MAX;
	const bool part = s->show.from > 0 || s->show.to > 0;
	prb_auto_recording struct prb_recording *before = NULL, *joined = NULL;

	if (part)
		prb_recording_clip(*recording, from, to);
	if (s->record.no_source)
		prb_recording_drop_lines(*recording);
	/* A recording loaded from a file has this view already. */
	PRB_TRY(prb_tasks_view(*recording, s->record.tasks, NULL));
	if (s->show.by_library)
		PRB_TRY(prb_library_view(*recording));
	if (!s->show.diff)
		return NULL;
	PRB_TRY(prb_profile_load_view(s->show.diff, true, s->record.tasks, &before));
	if (part)
		prb_recording_clip(before, from, to);
	if (s->show.by_library)
		PRB_TRY(prb_library_view(before));
	PRB_TRY(prb_recording_join(before, *recording, &joined));
	prb_recording_destroy(*recording);
	*recording = prb_steal(&joined);
	return NULL;
}

static struct prb_error *show_all(const struct prb_recording *recording,
				  const struct prb_performance_settings *s,
				  const struct prb_profile_format *format)
{
	auto_choice struct prb_performance_choice chosen = {};

	PRB_TRY(prb_performance_choose(recording, s, &chosen));
	if (format)
		PRB_TRY(prb_performance_write(recording, &chosen.choice, &s->out, format));
	return format && !s->out.json ? NULL : show(recording, &chosen.choice, s);
}

struct prb_error *prb_performance_show(struct prb_recording **recording,
				       const struct prb_performance_settings *s)
{
	const struct prb_profile_format *format;

	PRB_TRY(prb_performance_find_format(s, NULL, &format));
	if (prb_performance_writes_recording(s))
		PRB_TRY(prb_performance_keep_recording(*recording, s->out.path));
	PRB_TRY(prepare(s, recording));
	return show_all(*recording, s, format);
}

struct prb_error *prb_performance_check(const struct prb_performance_settings *s)
{
	const struct prb_profile_format *format;

	PRB_TRY(prb_performance_find_format(s, NULL, &format));
	return prb_performance_check_all(PRB_PERFORMANCE_PROCESS, s, format);
}

/* Functions of the modes. */

static struct prb_error *stop(const struct prb_cli *cli, const struct prb_performance_settings *s,
			      const struct prb_profile_format *format)
{
	(void)format;
	return prb_performance_stop(cli, s->out.json);
}

static struct prb_error *background(const struct prb_cli *cli,
				    const struct prb_performance_settings *s,
				    const struct prb_profile_format *format)
{
	(void)format;
	return prb_performance_background(cli, s);
}

static struct prb_error *prepare_and_show(struct prb_recording **recording,
					  const struct prb_performance_settings *s,
					  const struct prb_profile_format *format)
{
	PRB_TRY(prepare(s, recording));
	return show_all(*recording, s, format);
}

/* The kept recording twice: the samples within other calls, and those within the slowest. */
static struct prb_error *slowest(const struct prb_cli *cli,
				 const struct prb_performance_settings *s,
				 const struct prb_profile_format *format)
{
	prb_auto_recording struct prb_recording *others = NULL, *slow = NULL, *joined = NULL;
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_str struct prb_str told = {};

	PRB_TRY(prb_slowest_check(s->show.slowest));
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	PRB_TRY(get_last(cli, s, format, &slow));
	PRB_TRY(get_last(cli, s, format, &others));
	PRB_TRY(prepare(s, &slow));
	PRB_TRY(prepare(s, &others));
	PRB_TRY(prb_slowest_split(target, s->show.slowest, others, slow, &told));
	PRB_TRY(prb_recording_join(others, slow, &joined));
	if (!s->out.json)
		PRB_TRY(prb_output_lines(&told, false));
	return show_all(joined, s, format);
}

static struct prb_error *last(const struct prb_cli *cli, const struct prb_performance_settings *s,
			      const struct prb_profile_format *format)
{
	prb_auto_recording struct prb_recording *recording = NULL;

	if (s->show.slowest)
		return slowest(cli, s, format);
	PRB_TRY(get_last(cli, s, format, &recording));
	return prepare_and_show(&recording, s, format);
}

static struct prb_error *process(const struct prb_cli *cli,
				 const struct prb_performance_settings *s,
				 const struct prb_profile_format *format)
{
	prb_auto_recording struct prb_recording *recording = NULL;

	PRB_TRY(get(cli, s, format, &recording));
	return prepare_and_show(&recording, s, format);
}

static struct prb_error *program(const struct prb_cli *cli,
				 const struct prb_performance_settings *s,
				 const struct prb_profile_format *format)
{
	prb_auto_recording struct prb_recording *recording = NULL;

	PRB_TRY(prb_performance_start(cli, s, format, &recording));
	if (!recording->python && !s->record.cc)
		prb_warn(recording->threads.count
				 ? "no Python was found in the program while it was recorded; "
				   "--cc records C and C++ functions of any program"
				 : "the program ended before it could be looked at");
	return prb_program_wait(prepare_and_show(&recording, s, format));
}

typedef struct prb_error *runs(const struct prb_cli *cli, const struct prb_performance_settings *s,
			       const struct prb_profile_format *format);

static runs *const does[PRB_PERFORMANCE_MODES] = {
	[PRB_PERFORMANCE_STOP] = stop,
	[PRB_PERFORMANCE_OPS] = prb_performance_ops,
	[PRB_PERFORMANCE_EXACT] = prb_performance_exact,
	[PRB_PERFORMANCE_TORCH] = prb_performance_torch,
	[PRB_PERFORMANCE_BACKGROUND] = background,
	[PRB_PERFORMANCE_LAST] = last,
	[PRB_PERFORMANCE_PROCESS] = process,
	[PRB_PERFORMANCE_PROGRAM] = program,
};

struct prb_error *prb_performance_run(const struct prb_cli *cli,
				      const struct prb_performance_settings *s,
				      const struct prb_profile_format *usual)
{
	const enum prb_performance_mode mode = prb_performance_mode_of(cli, s);
	const struct prb_profile_format *format;

	PRB_TRY(prb_performance_find_format(s, usual, &format));
	PRB_TRY(prb_performance_check_all(mode, s, format));
	return does[mode](cli, s, format);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	return prb_performance_run(cli, settings, NULL);
}

const struct prb_option prb_performance_options[] = {
	{"duration", 'd', PRB_OPTION_SECONDS, "TIME",
	 "How long; without it 10s, or until a started program ends", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, record.duration), .for_clients = true},
	{"ring", 0, PRB_OPTION_SECONDS, "TIME",
	 "Record until Ctrl-C, and keep the last TIME in the .profile of -o", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, record.ring)},
	{"background", 'b', PRB_OPTION_FLAG, NULL,
	 "Record in the background, and keep the last 10m or --ring TIME", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, background)},
	{"when", 0, PRB_OPTION_TEXT, "CONDITION",
	 "Until Ctrl-C; keep 10s before and after moments at which SQL holds", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, record.when)},
	{"stop", 0, PRB_OPTION_FLAG, NULL, "End the recording in the background",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, stop)},
	{"last", 0, PRB_OPTION_SECONDS, "TIME",
	 "The end of a .profile, or of what --ring or --background keep of a process",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, show.last),
	 .for_clients = true},
	{"rate", 'r', PRB_OPTION_NUMBER, "HZ", "How often a second on average; without it 100",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, record.rate),
	 .for_clients = true},
	{"source", 0, PRB_OPTION_TEXT, "SOURCE",
	 "Sample running threads by 'stops', or by 'ebpf' without any (root)", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, record.source)},
	{"output", 'o', PRB_OPTION_TEXT, "FILE",
	 "Write FILE: .profile, .html, .svg, .pb.gz and others, as --format has", PRB_COMPLETE_FILE,
	 offsetof(struct prb_performance_settings, out.path)},
	{"format", 'f', PRB_OPTION_TEXT, "FORMAT",
	 "As html, svg, collapsed, speedscope, pprof, trace, gecko or otlp", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, out.format)},
	{"mode", 'm', PRB_OPTION_TEXT, "MODE",
	 "What is weighed: cpu, runqueue, gil, blocked or wall time", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, show.mode), .for_clients = true},
	{"tid", 0, PRB_OPTION_NUMBER, "TID", "Only the thread TID", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, record.tid), .for_clients = true},
	{"all", 0, PRB_OPTION_FLAG, NULL, "All processes that the name or /regex/ matches",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, record.all),
	 .for_clients = true},
	{"subprocesses", 's', PRB_OPTION_FLAG, NULL,
	 "Children too, also those that start meanwhile", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, record.subprocesses), .for_clients = true},
	{"threads", 0, PRB_OPTION_TEXT, "REGEX", "Only threads with a name that matches",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, show.threads),
	 .for_clients = true},
	{"cc", 'C', PRB_OPTION_FLAG, NULL,
	 "C and C++ frames too, of all threads; Python need not be there", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, record.cc), .for_clients = true},
	{"async", 'A', PRB_OPTION_FLAG, NULL,
	 "The asyncio task and its chain of awaits in place of the event loop",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, record.tasks),
	 .for_clients = true},
	{"torch", 'T', PRB_OPTION_FLAG, NULL,
	 "The modules of torch as a tree, and the parts of a training step", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, torch.on), .for_clients = true},
	{"steps", 0, PRB_OPTION_NUMBER, "COUNT", "End after so many training steps, with --torch",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, torch.steps),
	 .for_clients = true},
	{"exact", 0, PRB_OPTION_FLAG, NULL,
	 "Time each call of a module in half of the steps by hooks, with --torch",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, torch.exact),
	 .for_clients = true},
	{"ops", 0, PRB_OPTION_FLAG, NULL,
	 "Operators and kernels of 3 steps, by torch's own profiler, with --torch",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, torch.ops),
	 .for_clients = true},
	{"lines", 'l', PRB_OPTION_FLAG, NULL, "Each line of a function by itself",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, show.lines),
	 .for_clients = true},
	{"by-library", 0, PRB_OPTION_FLAG, NULL,
	 "Each library, Python package, and the program by itself", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, show.by_library), .for_clients = true},
	{"from", 0, PRB_OPTION_SECONDS, "TIME", "Only what was later than TIME after the start",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, show.from),
	 .for_clients = true},
	{"to", 0, PRB_OPTION_SECONDS, "TIME", "Only what was earlier than TIME after the start",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, show.to),
	 .for_clients = true},
	{"diff", 0, PRB_OPTION_TEXT, "BEFORE", "What changed since BEFORE, a recording",
	 PRB_COMPLETE_FILE, offsetof(struct prb_performance_settings, show.diff)},
	{"slowest", 0, PRB_OPTION_TEXT, "PART",
	 "What differs in '1% of FUNCTION', its slowest traced calls, with --last",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, show.slowest)},
	{"annotate", 0, PRB_OPTION_TEXT, "FILE[:FUNCTION]",
	 "Print the source of FILE with the time of each line", PRB_COMPLETE_FILE,
	 offsetof(struct prb_performance_settings, show.annotate), .for_clients = true},
	{"no-source", 0, PRB_OPTION_FLAG, NULL, "Leave source lines out of the file",
	 PRB_COMPLETE_NOTHING, offsetof(struct prb_performance_settings, record.no_source)},
	{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
	 offsetof(struct prb_performance_settings, out.json), .for_clients = true},
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
