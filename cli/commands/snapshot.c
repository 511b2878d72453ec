/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"
#include "command/waiting.h"
#include "target/spec/target_spec.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/str.h"
#include "base/text.h"
#include "target/snapshot/snapshot.h"
#include "target/spec/command_line.h"
#include "sql/engine/record.h"

struct snapshot_settings {
	const char *output;
	bool redact, heap;
};

/** A target that is being recorded. */
struct recording {
	struct prb_session *session;
	struct prb_target *target; /**< the session's */
	struct prb_recorder *recorder;
	size_t threads;
};

static void recording_deinit(struct recording *r)
{
	prb_recorder_destroy(r->recorder);
	prb_session_destroy(r->session);
}

static void warn(void *context, const char *text)
{
	(void)context;
	prb_warn(text);
}

static struct prb_error *record(const struct prb_cli *cli, const struct snapshot_settings *s,
				struct recording *r)
{
	const enum prb_record_values values = s->redact ? PRB_RECORD_NO_VALUES
					      : s->heap ? PRB_RECORD_OBJECTS
							: PRB_RECORD_VARIABLES;
	struct prb_target *target;

	PRB_TRY(prb_session_create(&r->session));
	prb_session_on_warning(r->session, warn, NULL);
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	PRB_TRY(prb_session_add_target(r->session, cli->target, target));
	r->target = target;
	if (target->replayed)
		return prb_error_create(PRB_ERROR_USAGE, "'%.200s' is a snapshot already",
					cli->target);
	PRB_TRY(prb_recorder_create(&r->recorder));
	prb_recorder_set_redact(r->recorder, s->redact);
	prb_recorder_attach(r->recorder, target);

	PRB_WAITING("reading the process", 0);

	return prb_command_line_name(target, prb_record(r->session, values, &r->threads));
}

/** Copies the whole file to stdout. */
static struct prb_error *copy_to_stdout(int fd)
{
	char chunk[65536];
	ssize_t got = 0;

	for (off_t at = 0; (got = pread(fd, chunk, sizeof(chunk), at)) > 0; at += got)
		PRB_TRY(prb_output_bytes(chunk, (size_t)got));
	if (got < 0)
		return prb_error_os(errno, "cannot read the snapshot back");
	return prb_output_flush();
}

/** The file's header is written last, and so not to a pipe. */
static struct prb_error *write_to_stdout(struct recording *r)
{
	prb_auto_close int fd = memfd_create("snapshot", MFD_CLOEXEC);

	if (fd < 0)
		return prb_error_os(errno, "cannot make a file in memory");
	PRB_TRY(prb_recorder_write_to(r->recorder, r->target, fd, "the snapshot"));
	PRB_TRY(copy_to_stdout(fd));
	fprintf(stderr, "-: %zu thread%s of %d\n", r->threads, r->threads == 1 ? "" : "s",
		(int)r->target->pid);
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct snapshot_settings *s = settings;
	__attribute__((cleanup(recording_deinit))) struct recording r = {};
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_str struct prb_str name = {}, line = {};

	if (s->heap && s->redact)
		return prb_error_create(PRB_ERROR_USAGE, "--heap saves values, and --redact none");
	PRB_TRY(record(cli, s, &r));
	if (s->output && !strcmp(s->output, "-"))
		return write_to_stdout(&r);
	if (s->output)
		prb_str_puts(&name, s->output);
	else
		prb_str_printf(&name, "probing-%d.snapshot", (int)r.target->pid);
	if (name.failed)
		return prb_error_nomem();
	file.replaces_links = !s->output;
	PRB_TRY(prb_new_file_open(&file, prb_str_text(&name)));
	PRB_TRY(prb_recorder_write_to(r.recorder, r.target, file.fd, file.temporary));
	PRB_TRY(prb_new_file_finish(&file));
	prb_text_escape(&line, prb_str_text(&name));
	prb_str_printf(&line, ": %zu thread%s of %d\n", r.threads, r.threads == 1 ? "" : "s",
		       (int)r.target->pid);
	return prb_output(&line);
}

const struct prb_command prb_command_snapshot = {
	.rank = 70,
	.for_clients = true,
	.name = "snapshot",
	.summary = "Save everything that can be read to one file",
	.description = "Reads all threads with variables and native frames, and the SQL tables, "
		       "and saves them to one compressed file. On another machine, without the "
		       "program or its files, 'probing FILE debug --dump' and 'probing FILE "
		       "query' give the same answers as here.\n\n"
		       "The file contains values of variables. --redact omits them, together "
		       "with the environment and most of the command line.",
	.options =
		(const struct prb_option[]){
			{"output", 'o', PRB_OPTION_TEXT, "FILE",
			 "Output file (default: probing-PID.snapshot; '-' is stdout)",
			 PRB_COMPLETE_FILE, offsetof(struct snapshot_settings, output),
			 .for_clients = true},
			{"heap", 0, PRB_OPTION_FLAG, NULL,
			 "All objects too, for scripts and python.objects", PRB_COMPLETE_NOTHING,
			 offsetof(struct snapshot_settings, heap), .for_clients = true},
			{"redact", 0, PRB_OPTION_FLAG, NULL, "Omit values of variables",
			 PRB_COMPLETE_NOTHING, offsetof(struct snapshot_settings, redact),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct snapshot_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 snapshot -o hang.snapshot", "Save it"},
			{"probing hang.snapshot debug --dump", "Read it, anywhere"},
			{}},
	.run = run,
};
