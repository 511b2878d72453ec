/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Each file is recorded by a child process, so that the next one begins at the moment at which the
 * one before ends, and what is left to do for that one (names of C frames, source, the disk) takes
 * no time of the series.
 */
#include "cli/commands/perf/record/rotate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/commands/perf/record/processes.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "command/term.h"
#include "profile/store/write/store.h"

/* A file of the series. */
struct part {
	char *path;
	dev_t device;
	ino_t inode;
};

/* The process that records one, or gets ready to. */
struct recorder {
	pid_t pid;
	int answer; /* a pipe */
	int done; /* one whose other end it closes after its last sample; -1: the next one has it */
	char *path;
	int64_t end; /* on prb_clock_ns() */
};

/* What it writes there when the file is complete, in one piece. */
struct answer {
	double started;
	int64_t duration;
	int32_t pid, end;
	int32_t code; /* of an error, or NO_ERROR */
	char message[2560], hint[1024];
};
enum { NO_ERROR = -1 };
_Static_assert(sizeof(struct answer) <= 4096, "PIPE_BUF");

struct series {
	const struct prb_performance_settings *settings;
	const struct prb_performance_targets *targets;
	PRB_VEC(struct part) parts;	    /* complete ones, oldest first */
	PRB_VEC(struct recorder) recorders; /* in order of time: one, or two for a while */
	int64_t until;			    /* 0: no end of its own */
	unsigned interrupts;		    /* that were sent on */
	bool stopping;
};

static bool is_being_made(const struct series *s, const char *path)
{
	const struct recorder *recorder;

	prb_vec_each (recorder, &s->recorders)
		if (!strcmp(recorder->path, path))
			return true;
	return false;
}

/* "run.profile" is "run-20261231-235959.profile" then; of the same second, "-2" follows. */
static char *name_part(const struct series *s, int64_t begin)
{
	const char *output = s->settings->output;
	int stem = (int)(strlen(output) - strlen(PRB_STORE_EXTENSION));
	const time_t when = time(NULL) + (begin - prb_clock_ns()) / 1000000000;
	char stamp[32] = "";
	struct tm local;

	if (localtime_r(&when, &local))
		strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	for (unsigned again = 1;; again++) {
		char *path = again > 1 ? prb_format("%.*s-%s-%u%s", stem, output, stamp, again,
						    PRB_STORE_EXTENSION)
				       : prb_format("%.*s-%s%s", stem, output, stamp,
						    PRB_STORE_EXTENSION);
		struct stat st;

		if (!path || (lstat(path, &st) && !is_being_made(s, path)))
			return path;
		free(path);
	}
}

static struct prb_error *add_part(struct series *s, const char *path)
{
	struct part *part;
	struct stat st;

	if (lstat(path, &st))
		return NULL;
	part = prb_vec_push(&s->parts);
	if (!part)
		return prb_error_nomem();
	*part = (struct part){strdup(path), st.st_dev, st.st_ino};
	return part->path ? NULL : prb_error_nomem();
}

/* Only what was written here is removed: by now another file may have the name. */
static void drop_oldest(struct series *s)
{
	struct part *oldest = s->parts.items;
	struct stat st;

	if (!s->parts.count)
		return;
	if (!lstat(oldest->path, &st) && st.st_dev == oldest->device && st.st_ino == oldest->inode)
		unlink(oldest->path);
	free(oldest->path);
	s->parts.count--;
	memmove(oldest, oldest + 1, s->parts.count * sizeof(*oldest));
}

static struct prb_error *tell(const struct series *s, const char *path, const struct answer *a)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {.out = &text};

	if (s->settings->json) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "recording", path);
		prb_json_real(&json, "timestamp", a->started, 6);
		prb_json_integer(&json, "duration_ns", a->duration);
		prb_json_text(&json, "ended", prb_profile_end_text((enum prb_profile_end)a->end));
		prb_json_close(&json, '}');
		prb_str_putc(&text, '\n');
	} else {
		prb_text_escape(&text, path);
		prb_str_puts(&text, ": ");
		prb_text_duration(&text, (double)a->duration / 1e9);
		prb_str_printf(&text, " of %d\n", (int)a->pid);
	}
	PRB_TRY(prb_output(&text));
	return prb_output_flush();
}

/* In the child. When the series is killed, its file is still made complete. */
static _Noreturn void be_recorder(const struct series *s, const char *path, int64_t end,
				  pid_t parent, int begin, int answer, int done)
{
	struct prb_performance_settings settings = *s->settings;
	prb_auto_recording struct prb_recording *recording = NULL;
	struct answer a = {.code = NO_ERROR};
	struct prb_error *err;

	if (prctl(PR_SET_PDEATHSIG, SIGINT) || getppid() != parent)
		_exit(1);
	prb_interrupt_only_sent();
	prb_interrupt_hold(false);
	settings.output = path;
	settings.end_at = end;
	settings.begin_fd = begin;
	settings.done_fd = done;
	err = prb_performance_keep(s->targets, &settings, NULL, &recording);
	if (err) {
		a.code = (int32_t)err->code;
		snprintf(a.message, sizeof(a.message), "%s", err->message);
		snprintf(a.hint, sizeof(a.hint), "%s", err->hint ? err->hint : "");
	} else {
		a.started = recording->started;
		a.duration = recording->duration;
		a.pid = (int32_t)recording->pid;
		a.end = (int32_t)recording->end;
	}
	_exit(write(answer, &a, sizeof(a)) != (ssize_t)sizeof(a));
}

static struct prb_error *make_pipes(int answer[2], int done[2])
{
	if (pipe2(answer, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	if (!pipe2(done, O_CLOEXEC))
		return NULL;

	struct prb_error *err = prb_error_os(errno, "cannot make a pipe");

	close(answer[0]);
	close(answer[1]);
	return err;
}

/* One begins when the one before has taken its last sample, at @p begin; the first one at once. */
static struct prb_error *start(struct series *s, int64_t begin)
{
	int64_t end = begin + (int64_t)(s->settings->rotate * 1e9);
	prb_auto_free char *path = name_part(s, begin);
	struct recorder *recorder = prb_vec_push(&s->recorders), *before;
	int answer[2], done[2];
	pid_t pid, parent = getpid();

	if (!recorder)
		return prb_error_nomem();
	s->recorders.count--;
	before = s->recorders.count ? recorder - 1 : NULL;
	if (!path)
		return prb_error_nomem();
	if (s->until)
		end = PRB_MIN(end, s->until);
	PRB_TRY(make_pipes(answer, done));
	fflush(stdout);
	pid = fork();
	if (!pid)
		be_recorder(s, path, end, parent, before ? before->done : 0, answer[1], done[1]);
	close(answer[1]);
	close(done[1]);
	if (pid < 0) {
		close(answer[0]);
		close(done[0]);
		return prb_error_os(errno, "cannot start a process that records");
	}
	if (before) {
		close(before->done);
		before->done = -1;
	}
	*recorder = (struct recorder){pid, answer[0], done[0], prb_steal(&path), end};
	s->recorders.count++;
	return NULL;
}

/* Takes what the oldest recorder has written, and its end. */
static struct prb_error *take(struct series *s, struct answer *ret, char **path)
{
	struct recorder recorder = s->recorders.items[0];
	ssize_t length;
	int status = 0;

	do
		length = read(recorder.answer, ret, sizeof(*ret));
	while (length < 0 && errno == EINTR);
	close(recorder.answer);
	if (recorder.done >= 0)
		close(recorder.done);
	while (waitpid(recorder.pid, &status, 0) < 0 && errno == EINTR)
		;
	s->recorders.count--;
	memmove(s->recorders.items, s->recorders.items + 1,
		s->recorders.count * sizeof(*s->recorders.items));
	*path = recorder.path;
	if (length != (ssize_t)sizeof(*ret))
		return WIFSIGNALED(status)
			       ? prb_error_create(PRB_ERROR_FAILED,
						  "the recorder of %s was ended by signal %d",
						  recorder.path, WTERMSIG(status))
			       : prb_error_create(PRB_ERROR_FAILED,
						  "the recorder of %s ended with exit code %d",
						  recorder.path, WEXITSTATUS(status));
	if (ret->code == NO_ERROR)
		return NULL;

	struct prb_error *err =
		prb_error_create((enum prb_error_code)ret->code, "%s", ret->message);

	return *ret->hint ? prb_error_hint(err, "%s", ret->hint) : err;
}

/* A recorder that samples completes its file. A recorder that has not begun leaves no file, so it
 * is stopped first. After the last sample it names C functions, and only a second request ends
 * that. */
static void stop(struct series *s)
{
	int64_t now = prb_clock_ns();

	for (size_t i = s->recorders.count; i-- > 0;)
		if (s->stopping || s->recorders.items[i].end > now)
			kill(s->recorders.items[i].pid, SIGINT);
	s->stopping = true;
}

static void stop_once(struct series *s)
{
	if (!s->stopping)
		stop(s);
}

/* Each Ctrl-C. */
static bool stop_if_interrupted(struct series *s)
{
	unsigned count = prb_interrupt_count();

	if (count == s->interrupts)
		return false;
	s->interrupts = count;
	stop(s);
	return true;
}

static struct prb_error *finish_oldest(struct series *s)
{
	prb_auto_free char *path = NULL;
	struct answer answer;
	struct prb_error *err = take(s, &answer, &path);

	/* The process may end between two of them. */
	if (s->stopping || s->parts.count)
		if (prb_error_catch(&err, PRB_ERROR_CANCELLED) ||
		    prb_error_catch(&err, PRB_ERROR_NO_PROCESS)) {
			stop_once(s);
			return NULL;
		}
	PRB_TRY(err);
	if (answer.end != PRB_PROFILE_DONE)
		stop_once(s);
	PRB_TRY(add_part(s, path));
	while (s->settings->keep && s->parts.count > (size_t)s->settings->keep)
		drop_oldest(s);
	return tell(s, path, &answer);
}

/* When the next one is to get ready. */
static int64_t next_at(const struct series *s)
{
	const struct recorder *newest = &s->recorders.items[s->recorders.count - 1];
	const double lead = PRB_MIN(s->settings->rotate / 2, 1.0);

	if (s->stopping || (s->until && newest->end >= s->until))
		return INT64_MAX;
	return newest->end - (int64_t)(lead * 1e9);
}

/* Until the oldest one is complete, or that time has come, or a Ctrl-C, which comes here only. */
static bool wait_for_oldest(const struct series *s, int64_t until)
{
	struct pollfd fd = {.fd = s->recorders.items[0].answer, .events = POLLIN};
	int64_t left = PRB_MAX(until - prb_clock_ns(), (int64_t)0);
	struct timespec time = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
	sigset_t mask;

	prb_interrupt_mask(&mask);
	return ppoll(&fd, 1, until == INT64_MAX ? NULL : &time, &mask) > 0;
}

static void tell_begin(const struct series *s)
{
	prb_auto_str struct prb_str text = {};

	if (!prb_term_is(stderr))
		return;
	prb_text_duration(&text, s->settings->rotate);
	fprintf(stderr, "sampling %d, to a new file after each %s; Ctrl-C ends it\n",
		(int)s->targets->list.items[0]->pid, prb_str_text(&text));
}

static struct prb_error *run_series(struct series *s)
{
	tell_begin(s);
	PRB_TRY(start(s, prb_clock_ns()));
	while (s->recorders.count) {
		int64_t next = next_at(s);

		if (wait_for_oldest(s, next))
			PRB_TRY(finish_oldest(s));
		else if (!stop_if_interrupted(s) && prb_clock_ns() >= next)
			PRB_TRY(start(s, s->recorders.items[s->recorders.count - 1].end));
	}
	return NULL;
}

struct prb_error *prb_performance_rotate(const struct prb_cli *cli,
					 const struct prb_performance_settings *settings)
{
	__attribute__((cleanup(
		prb_performance_targets_deinit))) struct prb_performance_targets targets = {};
	struct series s = {.settings = settings, .targets = &targets};
	struct prb_error *err;

	if (settings->duration > 0)
		s.until = prb_clock_ns() + (int64_t)(settings->duration * 1e9);
	err = prb_performance_open(cli, settings, &targets);
	/* A Ctrl-C between two files ends the series too. */
	prb_interrupt_keep();
	prb_interrupt_hold(true);
	if (!err)
		err = run_series(&s);
	stop(&s);
	while (s.recorders.count) {
		prb_auto_free char *path = NULL;
		struct answer answer;

		prb_error_destroy(take(&s, &answer, &path));
	}
	prb_interrupt_hold(false);
	prb_vec_free(&s.recorders);
	for (size_t i = 0; i < s.parts.count; i++)
		free(s.parts.items[i].path);
	prb_vec_free(&s.parts);
	return err;
}
