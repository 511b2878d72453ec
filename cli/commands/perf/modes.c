/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/modes.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "command/modes.h"

static const int highest_rate = 20000;

/* Options for how samples are taken, which are shown, and where. */
#define SAMPLING "duration rate cc async no-source "
#define PROCESSES "tid all subprocesses "
#define KEEPING "ring when "
#define SHOWING "mode threads lines by-library from to diff annotate "
#define WRITING "output format json "

static const struct prb_mode modes[] = {
	[PRB_PERFORMANCE_STOP] = {.name = "--stop", .by = "stop", .takes = "stop json"},
	[PRB_PERFORMANCE_OPS] = {.name = "'--torch --ops'",
				 .by = "torch ops",
				 .takes = "torch ops steps duration " WRITING},
	[PRB_PERFORMANCE_EXACT] = {.name = "'--torch --exact'",
				   .by = "torch exact",
				   .takes = "torch exact steps duration " WRITING},
	[PRB_PERFORMANCE_TORCH] = {.name = "--torch",
				   .by = "torch",
				   .takes = "torch steps duration rate mode tid cc " WRITING},
	[PRB_PERFORMANCE_BACKGROUND] = {.name = "--background",
					.by = "background",
					.takes = "background output json source " SAMPLING PROCESSES
						KEEPING},
	[PRB_PERFORMANCE_LAST] = {.name = "--last",
				  .by = "last",
				  .takes = "last slowest tid async no-source " SHOWING WRITING},
	[PRB_PERFORMANCE_PROCESS] = {.name = "sampling a process",
				     .by = "",
				     .takes = "source " SAMPLING PROCESSES KEEPING SHOWING WRITING},
	[PRB_PERFORMANCE_PROGRAM] = {.name = "a program to start",
				     .by = "",
				     .takes = "subprocesses ring " SAMPLING SHOWING WRITING},
	[PRB_PERFORMANCE_RECORDING] = {.name = "a recording",
				       .by = "",
				       .takes =
					       "last slowest tid async no-source " SHOWING WRITING},
};

enum output { TABLE, PROFILE, VIEWER, OUTPUTS };

static const struct prb_mode outputs[] = {
	[TABLE] = {.name = "a table", .leaves = "ring when background format"},
	[PROFILE] = {.name = "'-o FILE.profile'", .leaves = "torch format"},
	[VIEWER] = {.name = "'-o FILE' for a viewer", .leaves = "ring when background annotate"},
};

/* Further rules; one match is enough. */
static const struct prb_mode others[] = {
	{.name = "--diff",
	 .by = "diff",
	 .leaves = "tid",
	 .instead = "--threads compares those whose names match"},
	{.name = "--diff", .by = "diff", .leaves = "annotate slowest"},
	{.name = "--slowest", .by = "slowest", .leaves = "annotate tid threads"},
	{.name = "--by-library", .by = "by-library", .leaves = "lines annotate"},
	{.name = "--when", .by = "when", .leaves = "ring"},
	{.name = "--tid",
	 .by = "tid",
	 .leaves = "all subprocesses",
	 .instead = "--threads shows those whose names match"},
};

enum prb_performance_mode prb_performance_mode_of(const struct prb_cli *cli,
						  const struct prb_performance_settings *s)
{
	if (cli->program)
		return PRB_PERFORMANCE_PROGRAM;
	return (enum prb_performance_mode)prb_mode_find(modes, prb_performance_options, s);
}

static enum output output_of(const struct prb_performance_settings *s,
			     const struct prb_profile_format *format)
{
	if (prb_performance_writes_recording(s) || (s->background && !s->out.path))
		return PROFILE;
	return format ? VIEWER : TABLE;
}

/* A viewer weighs samples itself, by the modes that its format has. */
static struct prb_error *check_weight(const struct prb_performance_settings *s,
				      const struct prb_profile_format *format)
{
	enum prb_weight weight;

	PRB_TRY(prb_weight_parse(s->show.mode, &weight));
	if (!format || !format->basic_modes || weight <= PRB_WEIGHT_RUNQUEUE)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "%s has no mode '%s'", format->name,
					       prb_weight_words[weight].mode),
			      "the table, .html, .svg, .collapsed and .speedscope.json have it");
}

static struct prb_error *check_source(const struct prb_performance_settings *s)
{
	const struct prb_performance_sampling *how = &s->record;

	if (!how->source || !strcmp(how->source, "stops"))
		return NULL;
	if (strcmp(how->source, "ebpf"))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "there is no source '%s'", how->source),
			"--source is 'stops' or 'ebpf'");
	if (how->cc || how->tasks || how->tid || how->all || how->subprocesses)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "--source ebpf samples the Python frames of "
						       "one process"),
				      "leave out --cc, --async, --tid, --all and --subprocesses, "
				      "or --source");
	return NULL;
}

static struct prb_error *check_values(const struct prb_performance_settings *s,
				      const struct prb_profile_format *format)
{
	if (s->show.to > 0 && s->show.to <= s->show.from)
		return prb_error_create(PRB_ERROR_USAGE, "--to has to be after --from");
	if ((s->show.diff || s->show.slowest) && format && format != &prb_format_html)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "a comparison cannot be written as %s",
						       format->name),
				      "it is a table, --json, or a .html file");
	if (s->record.rate > highest_rate)
		return prb_error_create(PRB_ERROR_USAGE, "--rate is at most %d", highest_rate);
	PRB_TRY(check_source(s));
	PRB_TRY(prb_performance_check_choice(s));
	return check_weight(s, format);
}

struct prb_error *prb_performance_mode_check(enum prb_performance_mode mode,
					     const struct prb_performance_settings *s)
{
	return prb_mode_check(modes, PRB_PERFORMANCE_MODES, mode, prb_performance_options, s);
}

struct prb_error *prb_performance_check_all(enum prb_performance_mode mode,
					    const struct prb_performance_settings *s,
					    const struct prb_profile_format *format)
{
	PRB_TRY(prb_performance_mode_check(mode, s));
	if (mode == PRB_PERFORMANCE_STOP)
		return NULL;
	PRB_TRY(prb_mode_check(outputs, OUTPUTS, output_of(s, format), prb_performance_options, s));
	PRB_TRY(prb_mode_check_each(others, PRB_ARRAY_SIZE(others), prb_performance_options, s));
	return check_values(s, format);
}
