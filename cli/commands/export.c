/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing export`: metrics for monitoring. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/new_file.h"
#include "command/command.h"
#include "command/output.h"
#include "gateway/metrics.h"

struct export_settings {
	const char *file;
};

/** A file that is there whole or not at all, for a collector that is another user. */
static struct prb_error *write_file(const char *path, const struct prb_str *text)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;

	PRB_TRY(prb_new_file_open(&file, path));
	if (write(file.fd, prb_str_text(text), text->length) != (ssize_t)text->length ||
	    fchmod(file.fd, 0644))
		return prb_error_os(errno, "cannot write %.200s", path);
	return prb_new_file_finish(&file);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct export_settings *s = settings;
	prb_auto_str struct prb_str text = {};
	struct prb_texts targets = cli->targets;

	if (!cli->argument_count || strcmp(cli->arguments[0], "prometheus") != 0)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "the format to export is 'prometheus'"),
			"for example 'probing export prometheus'");
	for (size_t i = 1; i < cli->argument_count && targets.count < PRB_MAX_TEXTS; i++)
		targets.items[targets.count++] = cli->arguments[i];
	PRB_TRY(prb_metrics_collect(&targets, &text));
	if (text.failed)
		return prb_error_nomem();
	return s->file ? write_file(s->file, &text) : prb_output(&text);
}

const struct prb_command prb_command_export = {
	.rank = 88,
	.name = "export",
	.summary = "Print metrics of Python processes for Prometheus",
	.description =
		"Prints threads by state, waiters for the GIL and locks, processor time, memory "
		"and "
		"the garbage collector's runs, for each process: those that are named, or all that "
		"may be read. --textfile writes a file for node_exporter; 'probing serve' has the "
		"same at /metrics.",
	.options =
		(const struct prb_option[]){
			{"textfile", 0, PRB_OPTION_TEXT, "FILE",
			 "Write FILE, which is there whole or not at all", PRB_COMPLETE_FILE,
			 offsetof(struct export_settings, file)},
			{},
		},
	.settings_size = sizeof(struct export_settings),
	.target_use = PRB_TARGET_ANY,
	.only_processes = true,
	.argument = "prometheus [TARGET…]",
	.max_arguments = PRB_MAX_TEXTS,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing export prometheus", "All processes"},
			{"probing export prometheus train.py --textfile probing.prom",
			 "One, for node_exporter"},
			{},
		},
	.run = run,
};
