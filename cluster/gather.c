/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "command/program.h"
#include "remote/ssh_words.h"

enum {
	MOST_AT_ONCE = 64,
	MOST_OUTPUT = 256 << 20,
	MOST_ERRORS = 4096, /* of stderr; the rest is dropped */
	CHUNK = 65536,
};

/** One ssh that runs. */
struct runner {
	struct prb_answer *answer;
	pid_t pid;
	int out, err; /**< ends of its pipes; -1 once they have ended */
	double until;
	struct prb_str errors;
	bool late, too_much;
};

struct gathering {
	const char *const *words;
	double deadline_s;
	struct runner runners[MOST_AT_ONCE];
	size_t running;
};

void prb_answers_deinit(struct prb_answers *answers)
{
	struct prb_answer *answer;

	prb_vec_each (answer, &answers->list) {
		prb_str_deinit(&answer->out);
		free(answer->error);
	}
	prb_vec_free(&answers->list);
}

static struct prb_error *start(struct gathering *g, struct prb_answer *answer)
{
	struct runner *r = &g->runners[g->running];
	prb_auto_words struct prb_words words = {};
	int out[2], err[2];
	char **list;

	PRB_TRY(prb_ssh_words(answer->host, g->words, &words));
	PRB_TRY(prb_words_end(&words, &list));
	if (pipe2(out, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	if (pipe2(err, O_CLOEXEC)) {
		close(out[0]);
		close(out[1]);
		return prb_error_os(errno, "cannot make a pipe");
	}
	*r = (struct runner){.answer = answer,
			     .out = out[0],
			     .err = err[0],
			     .until = prb_clock_seconds() + g->deadline_s};
	const struct prb_program program = {.words = list, .in = -1, .out = out[1], .err = err[1]};
	struct prb_error *failed = prb_program_start(&program, &r->pid);

	close(out[1]);
	close(err[1]);
	if (failed) {
		close(out[0]);
		close(err[0]);
		return failed;
	}
	g->running++;
	return NULL;
}

/** Reads what is there, up to @p most bytes in all; the descriptor is closed at its end. */
static void take(int *fd, struct prb_str *s, size_t most, bool *too_much)
{
	char chunk[CHUNK];
	ssize_t got = read(*fd, chunk, sizeof(chunk));

	if (got < 0 && errno == EINTR)
		return;
	if (got <= 0) {
		close(prb_steal_fd(fd));
		return;
	}
	if (s->length + (size_t)got > most) {
		*too_much = true;
		got = (ssize_t)(most - s->length);
	}
	prb_str_append(s, chunk, (size_t)got);
}

/** The last line of what ssh or probing said, which is the reason mostly. */
static char *explain(struct runner *r, int status)
{
	char *text = r->errors.length ? r->errors.data : NULL;

	if (r->late)
		return strdup("no answer in time");
	if (r->too_much)
		return strdup("the answer is too long");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && !text)
		return strdup("there is no probing there");
	if (!text)
		return prb_format("ssh ended with %d", status);
	text[strcspn(text, "\n")] = '\0';
	return strdup(!strncmp(text, "probing: ", 9) ? text + 9 : text);
}

static struct prb_error *finish(struct gathering *g, size_t i)
{
	struct runner *r = &g->runners[i];
	int status = 0;

	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r->late || r->too_much || !WIFEXITED(status) || WEXITSTATUS(status))
		r->answer->error = explain(r, status);
	bool failed =
		r->answer->out.failed || ((r->late || r->too_much || status) && !r->answer->error);
	prb_str_deinit(&r->errors);
	*r = g->runners[--g->running];
	return failed ? prb_error_nomem() : NULL;
}

/** Waits for output of any of them until the first deadline. */
static struct prb_error *wait_for_any(struct gathering *g)
{
	struct pollfd list[2 * MOST_AT_ONCE];
	double now = prb_clock_seconds(), first = now + g->deadline_s;
	bool dropped;

	for (size_t i = 0; i < g->running; i++) {
		list[2 * i] = (struct pollfd){.fd = g->runners[i].out, .events = POLLIN};
		list[2 * i + 1] = (struct pollfd){.fd = g->runners[i].err, .events = POLLIN};
		first = PRB_MIN(first, g->runners[i].until);
	}
	if (poll(list, 2 * g->running, (int)(PRB_MAX(first - now, 0) * 1000) + 1) < 0)
		return errno == EINTR ? prb_error_create(PRB_ERROR_CANCELLED, "interrupted")
				      : prb_error_os(errno, "cannot wait for ssh");
	for (size_t i = 0; i < g->running; i++) {
		struct runner *r = &g->runners[i];

		if (list[2 * i].revents)
			take(&r->out, &r->answer->out, MOST_OUTPUT, &r->too_much);
		if (list[2 * i + 1].revents)
			take(&r->err, &r->errors, MOST_ERRORS, &dropped);
	}
	return NULL;
}

/** Kills late runners, and removes ended ones from the list. */
static struct prb_error *tend(struct gathering *g)
{
	double now = prb_clock_seconds();

	for (size_t i = g->running; i-- > 0;) {
		struct runner *r = &g->runners[i];

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
		kill(g->runners[i].pid, SIGKILL);
		waitpid(g->runners[i].pid, NULL, 0);
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
	size_t next = 0;

	while (next < answers->list.count || g->running) {
		while (next < answers->list.count && g->running < MOST_AT_ONCE)
			PRB_TRY(start(g, &answers->list.items[next++]));
		PRB_TRY(wait_for_any(g));
		PRB_TRY(tend(g));
	}
	return NULL;
}

struct prb_error *prb_gather(const struct prb_hosts *hosts, const char *const *words,
			     double deadline_s, struct prb_answers *ret)
{
	struct gathering g = {.words = words, .deadline_s = deadline_s};
	char *const *host;

	prb_vec_each (host, &hosts->list) {
		struct prb_answer *answer = prb_vec_push(&ret->list);

		if (!answer)
			return prb_error_nomem();
		answer->host = *host;
	}

	struct prb_error *err = run_all(&g, ret);
	end_all(&g);
	return err;
}
