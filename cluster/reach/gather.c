/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/room.h"
#include "base/clock.h"
#include "command/program.h"
#include "command/waiting.h"

enum {
	MOST_AT_ONCE = 256,
	MOST_OUTPUT = 256 << 20,
	MOST_ERRORS = 65536, /* of stderr; the rest is dropped */
	FIRST_VERDICT = 10,  /* exit codes */
	LAST_VERDICT = 99,
	CHUNK = 65536,
	SPOOL_SHIFT = 24, /* after so many bytes room is looked at again */
};

static const uint64_t MOST_SPOOLED = 64ULL << 30;

static const char PROBING[] = "probing: ", PROBING_WARNS[] = "probing: warning: ";

/** A program that runs. */
struct runner {
	struct prb_answer *answer;
	pid_t pid;
	int out, err; /**< ends of its pipes; -1 once they have ended */
	double until;
	struct prb_str errors;
	bool late, too_much, full;
	int status; /**< once `ended` */
	bool ended; /**< and was reaped */
};

struct gathering {
	const struct prb_gather_options *options;
	struct runner runners[MOST_AT_ONCE];
	size_t running;
};

/* Seconds until one is looked at again that has printed all. */
static const double LOOK_AGAIN = 0.02;

struct prb_answer *prb_answers_add(struct prb_answers *answers, const char *host)
{
	struct prb_answer *answer = prb_vec_push(&answers->list);

	if (answer)
		*answer = (struct prb_answer){.host = host, .in = -1, .spool = -1};
	return answer;
}

struct prb_error *prb_answer_spool(struct prb_answer *answer)
{
	const char *folder = getenv("TMPDIR");

	if (!folder || !*folder)
		folder = "/tmp";
	answer->spool = prb_nameless_file(folder);
	if (answer->spool < 0)
		answer->spool = memfd_create("probing-answer", MFD_CLOEXEC);
	return answer->spool < 0 ? prb_error_os(errno, "cannot make a file in %s", folder) : NULL;
}

void prb_answers_deinit(struct prb_answers *answers)
{
	struct prb_answer *answer;

	prb_vec_each (answer, &answers->list) {
		prb_words_deinit(&answer->words);
		if (answer->in >= 0)
			close(answer->in);
		if (answer->spool >= 0)
			close(answer->spool);
		prb_str_deinit(&answer->out);
		free(answer->error);
	}
	prb_vec_free(&answers->list);
}

static struct prb_error *start(struct gathering *g, struct prb_answer *answer)
{
	struct runner *r = &g->runners[g->running];
	prb_auto_close int out = -1, err = -1, out_end = -1, err_end = -1;
	int ends[2];
	char **list;

	if (!answer->words.list.count)
		return NULL;
	PRB_TRY(prb_words_end(&answer->words, &list));
	if (answer->spools && answer->spool < 0)
		PRB_TRY(prb_answer_spool(answer));
	if (pipe2(ends, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	out = ends[0];
	out_end = ends[1];
	if (pipe2(ends, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	err = ends[0];
	err_end = ends[1];

	const struct prb_program program = {.words = list,
					    .itself = answer->itself,
					    .in = answer->in,
					    .out = out_end,
					    .err = err_end};
	*r = (struct runner){.answer = answer,
			     .until = prb_clock_seconds() + g->options->deadline_s};
	PRB_TRY(prb_program_start(&program, &r->pid));
	r->out = prb_steal_fd(&out);
	r->err = prb_steal_fd(&err);
	g->running++;
	return NULL;
}

/** Puts what was read where the answer goes. */
static void keep(struct runner *r, const char *data, size_t length)
{
	struct prb_answer *answer = r->answer;

	if (answer->spool < 0) {
		r->too_much |= answer->out.length + length > MOST_OUTPUT;
		if (!r->too_much)
			prb_str_append(&answer->out, data, length);
		return;
	}
	r->too_much |= answer->spooled + length > MOST_SPOOLED;
	/* Other processes need the disk, too: check a large output now and then. */
	if (answer->spooled >> SPOOL_SHIFT != (answer->spooled + length) >> SPOOL_SHIFT &&
	    prb_room(answer->spool) < 1u << SPOOL_SHIFT) {
		r->full = r->too_much = true;
		return;
	}
	while (length && !r->too_much) {
		ssize_t written = write(answer->spool, data, length);

		if (written < 0 && errno == EINTR)
			continue;
		r->full = written < 0;
		r->too_much |= r->full;
		if (r->full)
			return;
		data += written;
		length -= (size_t)written;
		answer->spooled += (uint64_t)written;
	}
}

/** Reads all available bytes; closes the descriptor at its end. */
static void take(struct runner *r, int *fd)
{
	char chunk[CHUNK];
	ssize_t got = read(*fd, chunk, sizeof(chunk));

	if (got < 0 && errno == EINTR)
		return;
	if (got <= 0)
		close(prb_steal_fd(fd));
	else if (fd == &r->out)
		keep(r, chunk, (size_t)got);
	else
		prb_str_append(&r->errors, chunk,
			       PRB_MIN((size_t)got, MOST_ERRORS - r->errors.length));
}

static bool begins_with(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/** True for the lines that ssh and others print after the reason: that a program has failed. */
static bool tells_nothing(const char *line)
{
	return !line[strspn(line, " \t\r")] || begins_with(line, PROBING_WARNS) ||
	       strstr(line, "exit code") || strstr(line, "exit status");
}

/**
 * The line that is the reason: probing's own error, or else the last one. Before that there may be
 * what the shell's start-up files have said, or a warning of ssh in a frame of @ signs. The text is
 * divided. NULL: it says nothing.
 */
static const char *find_reason(char *text)
{
	const char *last = NULL, *empty = NULL;
	char *rest = NULL;

	for (char *line = strtok_r(text, "\r\n", &rest); line;
	     line = strtok_r(NULL, "\r\n", &rest)) {
		if (begins_with(line, PROBING) && !begins_with(line, PROBING_WARNS))
			return line + strlen(PROBING);
		if (tells_nothing(line))
			empty = line;
		else
			last = line;
	}
	return last ? last : empty;
}

static char *explain(struct runner *r, int status, double deadline_s)
{
	const char *program = r->answer->itself ? "it" : r->answer->words.list.items[0];
	const char *reason = r->errors.length ? find_reason(r->errors.data) : NULL;

	if (r->late)
		return prb_format("no answer within %.3g s", deadline_s);
	if (r->full)
		return strdup("there is no space for its answer");
	if (r->too_much)
		return strdup("the answer is too long");
	if (reason)
		return strdup(reason);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return strdup("there is no probing there");
	if (WIFSIGNALED(status))
		return prb_format("%s was ended by signal %d", program, WTERMSIG(status));
	return prb_format("%s ended with exit code %d", program, WEXITSTATUS(status));
}

/** True if it has ended as a program does that gives an answer. */
static bool has_answered(const struct runner *r)
{
	int code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;

	return !r->late && !r->too_much &&
	       (!code || (r->answer->judges && code >= FIRST_VERDICT && code <= LAST_VERDICT));
}

static struct prb_error *finish(struct gathering *g, size_t i)
{
	struct runner *r = &g->runners[i];

	while (!r->ended && waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR)
		;

	const bool answered = has_answered(r);

	if (!answered)
		r->answer->error = explain(r, r->status, g->options->deadline_s);
	r->answer->waited = prb_clock_seconds() - r->until + g->options->deadline_s;
	bool failed = r->answer->out.failed || (!answered && !r->answer->error);
	struct prb_answer *answer = r->answer;

	prb_str_deinit(&r->errors);
	*r = g->runners[--g->running];
	if (failed)
		return prb_error_nomem();
	return g->options->handler ? g->options->handler(g->options->context, answer) : NULL;
}

/**
 * Takes the rest of what it said, if it has ended: an ssh that leaves a connection for later ones
 * (ControlPersist) leaves a process, too, which keeps the pipe open.
 */
static void tend_errors(struct runner *r)
{
	if (r->out >= 0 || r->err < 0 || waitpid(r->pid, &r->status, WNOHANG) != r->pid)
		return;
	r->ended = true;
	fcntl(r->err, F_SETFL, O_NONBLOCK);
	for (size_t before = SIZE_MAX; r->err >= 0 && before != r->errors.length;) {
		before = r->errors.length;
		take(r, &r->err);
	}
	if (r->err >= 0)
		close(prb_steal_fd(&r->err));
}

/** Waits for output of any of them until the first deadline. */
static struct prb_error *wait_for_any(struct gathering *g)
{
	struct pollfd list[2 * MOST_AT_ONCE];
	double now = prb_clock_seconds(), first = now + g->options->deadline_s;

	for (size_t i = 0; i < g->running; i++) {
		list[2 * i] = (struct pollfd){.fd = g->runners[i].out, .events = POLLIN};
		list[2 * i + 1] = (struct pollfd){.fd = g->runners[i].err, .events = POLLIN};
		first = PRB_MIN(first, g->runners[i].until);
		/* Its pipes are closed: only polling finds its exit. */
		if (g->runners[i].out < 0)
			first = PRB_MIN(first, now + LOOK_AGAIN);
	}
	if (poll(list, 2 * g->running, (int)(PRB_MAX(first - now, 0) * 1000) + 1) < 0)
		return errno == EINTR ? prb_error_create(PRB_ERROR_CANCELLED, "interrupted")
				      : prb_error_os(errno, "cannot wait for answers");
	for (size_t i = 0; i < g->running; i++) {
		struct runner *r = &g->runners[i];

		if (list[2 * i].revents)
			take(r, &r->out);
		if (list[2 * i + 1].revents)
			take(r, &r->err);
	}
	return NULL;
}

/** Kills late runners, and removes ended ones from the list. */
static struct prb_error *tend(struct gathering *g)
{
	double now = prb_clock_seconds();

	for (size_t i = g->running; i-- > 0;) {
		struct runner *r = &g->runners[i];

		tend_errors(r);
		if (!r->late && (now >= r->until || r->too_much) && (r->out >= 0 || r->err >= 0)) {
			r->late = now >= r->until;
			kill(r->pid, SIGKILL);
			if (r->out >= 0)
				close(prb_steal_fd(&r->out));
			if (r->err >= 0)
				close(prb_steal_fd(&r->err));
		}
		if (r->out < 0 && r->err < 0)
			PRB_TRY(finish(g, i));
	}
	return NULL;
}

static void end_all(struct gathering *g)
{
	for (size_t i = 0; i < g->running; i++) {
		if (!g->runners[i].ended) {
			kill(g->runners[i].pid, SIGKILL);
			waitpid(g->runners[i].pid, NULL, 0);
		}
		if (g->runners[i].out >= 0)
			close(g->runners[i].out);
		if (g->runners[i].err >= 0)
			close(g->runners[i].err);
		prb_str_deinit(&g->runners[i].errors);
	}
	g->running = 0;
}

static struct prb_error *run_all(struct gathering *g, struct prb_answers *answers)
{
	size_t next = 0, at_once = g->options->at_once;

	if (!at_once || at_once > MOST_AT_ONCE)
		at_once = MOST_AT_ONCE;

	while (next < answers->list.count || g->running) {
		prb_waiting_count(next - g->running, answers->list.count);
		while (next < answers->list.count && g->running < at_once)
			PRB_TRY(start(g, &answers->list.items[next++]));
		if (g->running)
			PRB_TRY(wait_for_any(g));
		PRB_TRY(tend(g));
	}
	return NULL;
}

struct prb_error *prb_gather(struct prb_answers *answers, const struct prb_gather_options *options)
{
	struct gathering *g = calloc(1, sizeof(*g));
	struct prb_error *err;

	if (!g)
		return prb_error_nomem();
	g->options = options;
	prb_waiting_begin("answers", options->deadline_s);
	err = run_all(g, answers);
	prb_waiting_end();
	end_all(g);
	free(g);
	return err;
}
