/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/waiting.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"
#include "command/exit.h"
#include "command/term.h"

enum { TEXT = 256 };

/* The state of the printing thread, under the lock. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	char what[TEXT], said[TEXT];
	double began, at_most;
	size_t done, total;
	unsigned depth;
	bool runs, news, over; /* news: it is to be printed before the next second */
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

/** Whole seconds: fractions of them are not worth to be read each second. */
static void put_seconds(struct prb_str *s, double seconds)
{
	if (seconds < 60)
		prb_str_printf(s, "%.0f s", seconds);
	else
		prb_text_duration(s, seconds);
}

bool prb_waiting_left(struct prb_str *s)
{
	double left = line.began + line.at_most - prb_clock_seconds();

	if (!(line.at_most > 0) || left <= 0)
		return false;
	put_seconds(s, ceil(left));
	prb_str_puts(s, " left");
	return true;
}

/** What is shown now; "": nothing yet. */
static void describe(struct prb_str *s)
{
	double passed = prb_clock_seconds() - line.began;

	if (*line.said) {
		prb_str_puts(s, line.said);
		return;
	}
	if (passed < PRB_WAITING_AFTER)
		return;
	prb_str_puts(s, line.what);
	if (line.total)
		prb_str_printf(s, ": %zu of %zu", line.done, line.total);
	prb_str_puts(s, " · ");
	put_seconds(s, floor(passed));
	if (line.at_most > passed)
		prb_str_puts(s, ", at most ");
	prb_waiting_left(s);
}

/** Prints only what fits: a line that wraps could not be erased. */
static void print(const struct prb_str *text)
{
	prb_auto_str struct prb_str fits = {};
	size_t columns = 0, rows = 0;

	if (!prb_term_size(stderr, &columns, &rows) || columns < 2)
		columns = 80;
	prb_text_cut(&fits, prb_str_text(text), columns - 1);
	fprintf(stderr, "\r\x1b[K%s", prb_str_text(&fits));
}

/** Until something is said, or for a second. */
static void wait_for_news(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	while (!line.news && !line.over &&
	       !pthread_cond_timedwait(&line.changed, &line.lock, &until))
		;
	line.news = false;
}

static void *run(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&line.lock);
	while (!line.over) {
		prb_auto_str struct prb_str text = {};

		wait_for_news();
		if (line.over)
			break;
		describe(&text);
		pthread_mutex_unlock(&line.lock);
		if (text.length)
			print(&text);
		pthread_mutex_lock(&line.lock);
	}
	pthread_mutex_unlock(&line.lock);
	return NULL;
}

static void hide(void)
{
	if (line.runs)
		fputs("\r\x1b[K", stderr);
}

/** Signals are for the other threads. */
static bool start(void)
{
	pthread_condattr_t attributes;
	sigset_t all, before;
	bool runs;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&line.changed, &attributes);
	pthread_condattr_destroy(&attributes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	runs = !pthread_create(&line.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return runs;
}

void prb_waiting_begin(const char *what, double at_most)
{
	if (line.depth++ || !prb_term_is(stderr))
		return;
	snprintf(line.what, sizeof(line.what), "%s", what);
	*line.said = '\0';
	line.began = prb_clock_seconds();
	line.at_most = at_most;
	line.done = line.total = 0;
	line.news = line.over = false;
	line.runs = start();
	prb_warn_first = hide;
}

bool prb_waiting_shows(void)
{
	return line.runs;
}

void prb_waiting_count(size_t done, size_t total)
{
	if (!line.runs)
		return;
	pthread_mutex_lock(&line.lock);
	line.done = done;
	line.total = total;
	pthread_mutex_unlock(&line.lock);
}

void prb_waiting_say(const char *text)
{
	if (!line.runs)
		return;
	/* The printing thread holds the lock only briefly. */
	pthread_mutex_lock(&line.lock);
	snprintf(line.said, sizeof(line.said), "%s", text);
	line.news = true;
	pthread_cond_signal(&line.changed);
	pthread_mutex_unlock(&line.lock);
}

void prb_waiting_end(void)
{
	if (!line.depth || --line.depth || !line.runs)
		return;
	pthread_mutex_lock(&line.lock);
	line.over = true;
	pthread_cond_signal(&line.changed);
	pthread_mutex_unlock(&line.lock);
	pthread_join(line.thread, NULL);
	line.runs = false;
	fputs("\r\x1b[K", stderr);
}
