/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/record/background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/local_time.h"
#include "base/own_file.h"
#include "base/text.h"
#include "cli/commands/perf/record/processes.h"
#include "cli/commands/perf/record/record.h"
#include "command/background.h"
#include "command/exit.h"
#include "command/output.h"
#include "profile/store/load/load.h"
#include "profile/store/write/store.h"
#include "target/spec/target_spec.h"

static const double usual_ring = 600;
static const double patience = 2; /* seconds until the user is told about the wait */

struct background {
	const struct prb_cli *cli;
	struct prb_performance_settings settings;
	char *output; /* absolute; NULL: a file in our folder */
};

void prb_performance_note_begun(void *context)
{
	struct prb_performance_note *note = context;
	bool background = note->report >= 0;
	prb_auto_free char *path = realpath(note->output, NULL);
	prb_auto_free char *text = NULL;
	prb_auto_error struct prb_error *err =
		path ? prb_known_add(note->pid, path, background, &note->known)
		     : prb_error_os(errno, "cannot find %s", note->output);

	note->begun = true;
	if (!background && err) {
		prb_warn(err->message);
		return;
	}
	if (!background)
		return;
	text = prb_format("%d %d %s", (int)note->pid, (int)getpid(), path ? path : "");
	prb_background_report(note->report, err, text ? text : "");
	close(note->folder);
}

/* Signals that end a process end the recording, like Ctrl-C. */
static void on_end(int number)
{
	(void)number;
	raise(SIGINT);
}

static void prepare_signals(void)
{
	static const int ends[] = {SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_end};
	sigset_t none;

	signal(SIGINT, SIG_DFL);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static struct prb_error *refuse_second(pid_t pid)
{
	prb_auto_known_list struct prb_known_list known = {};
	const struct prb_known_recording *other;

	PRB_TRY(prb_known_find(pid, &known));
	prb_vec_each (other, &known.list)
		if (other->background && other->running)
			return prb_error_hint(
				prb_error_create(
					PRB_ERROR_FAILED,
					"process %d is recorded already: process %d writes "
					"%s",
					(int)pid, (int)other->recorder, other->path),
				"'probing %d perf --last 60s' shows it, 'probing %d perf --stop' "
				"ends it",
				(int)pid, (int)pid);
	return NULL;
}

/*
 * The target's pid may be reused after its end, so the name also has the time; "-2" follows if that
 * name exists.
 */
static struct prb_error *choose_output(struct background *b, pid_t pid, const char *folder)
{
	const struct prb_local_time stamp = prb_local_time(time(NULL), PRB_LOCAL_STAMP);

	if (b->output)
		return NULL;
	for (unsigned again = 1; !b->output; again++) {
		prb_auto_free char *path =
			again > 1 ? prb_format("%s/perf-%d-%s-%u%s", folder, (int)pid, stamp.text,
					       again, PRB_STORE_EXTENSION)
				  : prb_format("%s/perf-%d-%s%s", folder, (int)pid, stamp.text,
					       PRB_STORE_EXTENSION);

		if (!path)
			return prb_error_nomem();
		if (access(path, F_OK))
			b->output = prb_steal(&path);
	}
	return NULL;
}

static struct prb_error *record(struct background *b, struct prb_performance_note *note)
{
	__attribute__((cleanup(
		prb_performance_targets_deinit))) struct prb_performance_targets targets = {};
	prb_auto_recording struct prb_recording *recording = NULL;
	prb_auto_free char *folder = NULL;

	PRB_TRY(prb_performance_open(b->cli, &b->settings, &targets));
	note->pid = targets.list.items[0]->pid;
	PRB_TRY(prb_known_folder(&note->folder, &folder));
	flock(note->folder, LOCK_EX);
	PRB_TRY(refuse_second(note->pid));
	PRB_TRY(choose_output(b, note->pid, folder));
	note->output = b->settings.out.path = b->output;
	return prb_performance_keep(&targets, &b->settings, note, &recording);
}

/* Main function of the background process. */
static void be_recorder(void *context, int report)
{
	struct background *b = context;
	struct prb_performance_note note = {
		.known = PRB_KNOWN_NOTHING, .report = report, .folder = -1};
	struct prb_error *err;

	prepare_signals();
	err = chdir("/") ? prb_error_os(errno, "cannot go to /") : record(b, &note);
	/* The recording may have ended before it was noted. */
	if (!note.begun && err)
		prb_background_report(report, err, "");
	else if (!note.begun)
		prb_performance_note_begun(&note);
	prb_known_end(&note.known, err);
	_exit(err ? 1 : 0);
}

/* Makes the path absolute: the recorder changes its folder. */
static struct prb_error *make_absolute(const char *path, char **ret)
{
	prb_auto_free char *here = path && path[0] != '/' ? realpath(".", NULL) : NULL;

	if (!path)
		return NULL;
	if (path[0] != '/' && !here)
		return prb_error_os(errno, "cannot tell the current folder");
	*ret = here ? prb_format("%s/%s", here, path) : strdup(path);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *tell(const struct background *b, const char *said)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {.out = &text};
	int pid = 0, recorder = 0, length = 0;

	if (sscanf(said, "%d %d %n", &pid, &recorder, &length) != 2 || !length)
		return prb_error_create(PRB_ERROR_FAILED, "the recorder said '%.100s'", said);
	if (b->settings.out.json) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "pid", pid);
		prb_json_integer(&json, "recorder", recorder);
		prb_json_text(&json, "recording", said + length);
		prb_json_close(&json, '}');
		prb_str_putc(&text, '\n');
		return prb_output(&text);
	}
	prb_str_printf(&text, "process %d is recorded in the background, by process %d", pid,
		       recorder);
	if (b->settings.record.ring > 0) {
		prb_str_puts(&text, "; the last ");
		prb_text_duration(&text, b->settings.record.ring);
		prb_str_puts(&text, " are kept");
	}
	prb_str_puts(&text, "\nfile:           ");
	prb_text_escape(&text, said + length);
	prb_str_printf(&text,
		       "\nto look at it:  probing %d perf --last 60s\n"
		       "                probing %d flamegraph --last 60s\n"
		       "to stop it:     probing %d perf --stop\n",
		       pid, pid, pid);
	return prb_output(&text);
}

/* Without a session folder, notes lie in /tmp, where another user may have taken the name. */
static void warn_of_place(void)
{
	prb_auto_close int fd = prb_run_folder_open(geteuid(), true, NULL);
	prb_auto_error struct prb_error *err = fd < 0 ? prb_tmp_folder_taken(geteuid()) : NULL;
	prb_auto_free char *text =
		err ? prb_format("%s: another folder is used", err->message) : NULL;

	if (text)
		prb_warn(text);
}

struct prb_error *prb_performance_background(const struct prb_cli *cli,
					     const struct prb_performance_settings *settings)
{
	struct background b = {.cli = cli, .settings = *settings};
	const struct prb_background process = {
		.name = "the recorder", .run = be_recorder, .context = &b};
	prb_auto_str struct prb_str said = {};
	struct prb_error *err;

	if (!(b.settings.record.ring > 0) && !(b.settings.record.duration > 0) &&
	    !b.settings.record.when)
		b.settings.record.ring = usual_ring;
	warn_of_place();
	err = make_absolute(settings->out.path, &b.output);
	if (!err)
		err = prb_background_start(&process, &said);
	free(b.output);
	return err ? err : tell(&b, prb_str_text(&said));
}

/* *ret is 0 for a file. An ended process can be given by its pid. */
static struct prb_error *find_pid(const struct prb_cli *cli, pid_t *ret)
{
	enum prb_spec_kind kind = prb_spec_kind(cli->target);
	prb_auto_target struct prb_target *target = NULL;

	*ret = 0;
	if (kind == PRB_SPEC_PID) {
		*ret = (pid_t)strtol(cli->target, NULL, 10);
		return NULL;
	}
	if (kind != PRB_SPEC_REGEX && kind != PRB_SPEC_NAME && kind != PRB_SPEC_SOCKET)
		return NULL;
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	*ret = target->pid;
	return NULL;
}

/*
 * Stops the recorder, which still writes its last samples and names C functions, however long that
 * takes.
 */
static struct prb_error *end_recorder(const struct prb_known_recording *r, pid_t pid)
{
	prb_auto_free char *text = NULL;
	bool ended;

	PRB_TRY(prb_known_stop(r, pid));
	PRB_TRY(prb_known_await(r, pid, patience, &ended));
	if (ended)
		return NULL;
	text = prb_format("process %d writes the rest of %s: this waits for its end; Ctrl-C ends "
			  "the waiting only",
			  (int)r->recorder, r->path);
	if (text)
		prb_warn(text);
	while (!ended)
		PRB_TRY(prb_known_await(r, pid, patience, &ended));
	return NULL;
}

struct prb_error *prb_performance_stop(const struct prb_cli *cli, bool as_json)
{
	prb_auto_known_list struct prb_known_list known = {};
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {.out = &text};
	const struct prb_known_recording *r;
	pid_t pid;

	PRB_TRY(find_pid(cli, &pid));
	PRB_TRY(prb_known_find(pid, &known));
	prb_vec_each (r, &known.list) {
		if (!r->background || !r->running)
			continue;
		PRB_TRY(end_recorder(r, pid));
		if (as_json) {
			prb_json_open(&json, NULL, '{');
			prb_json_integer(&json, "pid", pid);
			prb_json_text(&json, "recording", r->path);
			prb_json_close(&json, '}');
			prb_str_putc(&text, '\n');
			continue;
		}
		prb_text_escape(&text, r->path);
		prb_str_puts(&text, ": the samples; 'probing FILE perf' shows them\n");
	}
	if (!text.length)
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"nothing records '%s' in the background for this user",
					cli->target);
	return prb_output(&text);
}

struct prb_error *prb_performance_check_kept(const char *path)
{
	prb_auto_close int fd =
		open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return prb_error_os(errno, "cannot read the recording, %s", path);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return prb_error_create(
			PRB_ERROR_FAILED,
			"%s is no file of this user any more, which the recording was", path);
	return NULL;
}

struct prb_error *prb_performance_wait_written(const char *path, int64_t end, bool *ret_reached)
{
	enum { LOOKS = 80 };
	static const struct timespec pause = {0, 50 * 1000 * 1000};
	bool over = false;

	*ret_reached = false;
	for (unsigned i = 0; i < LOOKS && !*ret_reached && !over; i++) {
		const struct prb_recording *about;
		struct prb_load *load;

		if (i)
			nanosleep(&pause, NULL);
		PRB_TRY(prb_performance_check_kept(path));
		PRB_TRY(prb_load_open(path, &load));
		about = prb_load_about(load);
		*ret_reached = (int64_t)(about->started * 1e9) + about->duration >= end;
		over = about->end != PRB_PROFILE_CUT_OFF;
		prb_load_destroy(load);
	}
	return NULL;
}

struct prb_error *prb_performance_find_kept(const struct prb_cli *cli, char **ret,
					    bool *ret_running)
{
	prb_auto_known_list struct prb_known_list known = {};
	const struct prb_known_recording *newest;
	prb_auto_free char *warning = NULL;
	pid_t pid;

	PRB_TRY(find_pid(cli, &pid));
	if (!pid)
		return NULL;
	PRB_TRY(prb_known_find(pid, &known));
	newest = known.list.items;
	if (!known.list.count)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND,
					 "no recording of process %d is kept by this user",
					 (int)pid),
			"'probing %d inject -P' begins to; --duration records from now on",
			(int)pid);
	PRB_TRY(prb_performance_check_kept(newest->path));
	if (newest->failed)
		warning = prb_format("its recording ended early: %s", newest->failed);
	else if (!newest->running)
		warning = prb_format("its recording has ended: this is the end of that");
	if (warning)
		prb_warn(warning);
	*ret_running = newest->running;
	*ret = strdup(newest->path);
	return *ret ? NULL : prb_error_nomem();
}
