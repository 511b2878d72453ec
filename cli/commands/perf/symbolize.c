/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing FILE symbolize`: names for C functions that a recording has without. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/commands/perf/debuginfod.h"
#include "cli/commands/perf/show/performance.h"
#include "command/output.h"
#include "profile/native/symbolize.h"
#include "profile/store/load/load.h"
#include "profile/store/write/store.h"
#include "target/recorded/recorded.h"
#include "target/spec/target_spec.h"

struct symbolize_settings {
	const char *from, *output;
};

/* Of our own environment, never a target's. */
static const char *servers(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls ? urls : NULL;
}

static struct prb_error *check(const struct symbolize_settings *s)
{
	if (!s->from && !servers())
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 "--from DIR names a folder of files with symbols"),
			"or set DEBUGINFOD_URLS to the servers that have them");
	if (!s->output || !prb_store_is_path(s->output))
		return prb_error_create(PRB_ERROR_USAGE,
					"-o FILE.profile names the recording to be written");
	return NULL;
}

static struct prb_error *tell(const struct symbolize_settings *s,
			      const struct prb_symbolized *result)
{
	prb_auto_str struct prb_str text = {};

	prb_text_escape(&text, s->output);
	prb_str_printf(&text, ": %zu of %zu functions without a name have one now, from %zu file%s",
		       result->named, result->lacking, result->files,
		       result->files == 1 ? "" : "s");
	if (result->without)
		prb_str_printf(&text, "; the files of %zu have no build-id", result->without);
	if (result->cut_short)
		prb_str_puts(&text, "; the folder has more files than were looked at");
	prb_str_putc(&text, '\n');
	PRB_TRY(prb_output(&text));
	return prb_output_flush();
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct symbolize_settings *s = settings;
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_recording struct prb_recording *recording = NULL;
	struct prb_symbolized result;

	PRB_TRY(check(s));
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	if (!prb_recorded_path(target))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "symbolize needs a recording"),
			"'probing PID perf --cc -o FILE.profile' makes one");
	PRB_TRY(prb_profile_load_view(prb_recorded_path(target), true, false, &recording));
	if (s->from)
		PRB_TRY(prb_symbolize(recording, s->from, &result));
	else
		PRB_TRY(prb_debuginfod_symbolize(recording, servers(), &result));
	PRB_TRY(prb_performance_keep_recording(recording, s->output));
	return tell(s, &result);
}

const struct prb_command prb_command_symbolize = {
	.rank = 66,
	.name = "symbolize",
	.summary = "Name the C functions of a recording by files with symbols",
	.description =
		"A recording made with --cc has functions of stripped libraries as fun_4900, after "
		"where they begin in their file. This looks for files with the same build-ids "
		"below a folder, libraries or separate debug files, and writes a copy of the "
		"recording with the names of their symbols. Without --from, the servers of "
		"$DEBUGINFOD_URLS are asked for the files, if that is set; they learn the "
		"build-ids. Files of over 512 MiB are not taken, none is kept, and it ends after "
		"half an hour.",
	.options =
		(const struct prb_option[]){
			{"from", 0, PRB_OPTION_TEXT, "DIR",
			 "The folder, with all that is in it: /usr/lib/debug, or unstripped "
			 "libraries",
			 PRB_COMPLETE_FILE, offsetof(struct symbolize_settings, from)},
			{"output", 'o', PRB_OPTION_TEXT, "FILE", "The recording to write",
			 PRB_COMPLETE_FILE, offsetof(struct symbolize_settings, output)},
			{}},
	.settings_size = sizeof(struct symbolize_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing run.profile symbolize --from /usr/lib/debug",
			 "By installed debug files"},
			{"DEBUGINFOD_URLS=https://HOST probing run.profile symbolize",
			 "By those of a server"},
			{}},
	.run = run,
};
