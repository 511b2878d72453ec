/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing overview`: what all Python processes do, and what is wrong with them. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "command/command.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "command/term.h"
#include "cli/commands/overview/overview.h"

struct settings {
	double watch;
	bool json;
};

/** Passes that take long are made less often: they take at most so much of the time. */
static const double MOST_SHARE = 0.2;

/** What to type next, for people. */
static const char START_ONE[] =
	"  start one: probing run -- python3 SCRIPT.py; or see 'probing help'\n";

static struct prb_error *show(struct prb_overview *overview, const struct prb_overview_jobs *jobs,
			      bool pending, const struct settings *s)
{
	prb_auto_str struct prb_str out = {};
	size_t columns = 0, rows;

	if (!prb_term_size(stdout, &columns, &rows))
		columns = 0;
	if (s->watch > 0 && !s->json && prb_term_is(stdout))
		prb_str_puts(&out, "\x1b[H\x1b[2J");
	if (s->json)
		PRB_TRY(prb_overview_json(overview, jobs, pending, &out));
	else if (prb_overview_count(overview))
		PRB_TRY(prb_overview_text(overview, jobs, pending, columns, &out));
	else
		fprintf(stderr, "probing: there are no Python processes here\n%s",
			columns && s->watch <= 0 ? START_ONE : "");
	PRB_TRY(prb_output_lines(&out, s->json));
	return prb_output_flush();
}

/** False if it was interrupted. */
static bool wait(double seconds)
{
	int64_t until = prb_clock_ns() + (int64_t)(seconds * 1e9);
	const struct timespec at = {until / 1000000000, until % 1000000000};

	while (!prb_interrupted())
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != EINTR)
			return true;
	return false;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	prb_auto_overview struct prb_overview *overview = NULL;
	__attribute__((cleanup(prb_overview_jobs_deinit))) struct prb_overview_jobs jobs = {};
	const struct settings *s = settings;
	bool first = true;
	struct prb_texts targets = cli->targets;
	double seconds;

	for (size_t i = 0; i < cli->argument_count && targets.count < PRB_MAX_TEXTS; i++)
		targets.items[targets.count++] = cli->arguments[i];
	if (s->watch > 0)
		prb_interrupt_catch(NULL);
	PRB_TRY(prb_overview_create(&targets, &cli->places, &overview));
	if (s->watch > 0 && s->json) {
		PRB_TRY(prb_overview_list(overview));
		PRB_TRY(show(overview, &jobs, true, s));
	}
	do {
		PRB_TRY(prb_overview_pass(overview));
		PRB_TRY(prb_overview_jobs_find(&jobs, overview));
		/* Whoever watches sees the processes at once, and the jobs a moment later. */
		if (first && s->watch > 0 && prb_overview_jobs_wait(&jobs, overview))
			PRB_TRY(show(overview, &jobs, true, s));
		PRB_TRY(prb_overview_jobs_judge(&jobs, overview));
		PRB_TRY(show(overview, &jobs, false, s));
		seconds = first ? 0 : prb_overview_seconds(overview) / MOST_SHARE;
		first = false;
	} while (s->watch > 0 && wait(PRB_MAX(s->watch, seconds)));
	return NULL;
}

const struct prb_command prb_command_overview = {
	.rank = 41,
	.name = "overview",
	.summary = "Show what all Python processes do now, and what is wrong with them",
	.description =
		"Prints a few lines for each Python process that may be read, or for each TARGET: "
		"threads, processor time and memory, what its main thread does or waits for, and "
		"what is wrong: "
		"threads that wait for each other, a wait for a disk, the GIL held by a thread "
		"that "
		"sleeps, memory near the limit of its control group. Processes with a problem come "
		"first.\n\n"
		"With --watch it looks again and again. A process that did not run meanwhile is "
		"not read "
		"again, so this costs little.",
	.options =
		(const struct prb_option[]){
			{"watch", 'w', PRB_OPTION_SECONDS, "TIME", "Repeat every TIME until Ctrl-C",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, watch)},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON, one line for each look",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, json)},
			{}},
	.settings_size = sizeof(struct settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "TARGET…",
	.max_arguments = PRB_MAX_TEXTS,
	.complete = PRB_COMPLETE_TARGET,
	.examples = (const struct prb_example[]){{"probing overview",
						  "All Python processes of this machine"},
						 {"probing overview --watch 2s", "Again and again"},
						 {}},
	.run = run,
};
