/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/record/progress.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "command/term.h"

/* State of the printing thread, under the lock. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct prb_profile_cost cost;
	int64_t duration;
	const char *text;	 /* replaces the numbers, or NULL */
	bool there, begun, over; /* there: the line has changed */
} line = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Prints only columns that fit: a wrapped line could not be erased. */
static void print(const struct prb_profile_cost *cost, int64_t duration)
{
	const double seconds = (double)duration / 1e9;
	prb_auto_str struct prb_str text = {};
	size_t columns = 0, rows = 0;

	prb_text_duration(&text, floor(seconds));
	prb_str_printf(&text, " · %llu samples · %.0f/s · %llu missed",
		       (unsigned long long)cost->times, (double)cost->times / seconds,
		       (unsigned long long)cost->missed);
	if (prb_term_size(stderr, &columns, &rows) && columns >= 80)
		prb_str_printf(&text, " · stopped %.1f %% · own CPU %.1f %%",
			       cost->pause_total / seconds / 1e4,
			       100 * (double)cost->own_cpu / (double)duration);
	fprintf(stderr, "\r\x1b[K%s", prb_str_text(&text));
}

static void *run(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&line.lock);
	while (!line.over) {
		struct prb_profile_cost cost = line.cost;
		int64_t duration = line.duration;
		const char *said = line.text;

		if (!line.there) {
			pthread_cond_wait(&line.changed, &line.lock);
			continue;
		}
		line.there = false;
		pthread_mutex_unlock(&line.lock);
		if (said)
			fprintf(stderr, "\r\x1b[K%s", said);
		else
			print(&cost, duration);
		pthread_mutex_lock(&line.lock);
	}
	pthread_mutex_unlock(&line.lock);
	return NULL;
}

/* Starts the thread with signals blocked: they are for the recording thread. */
void prb_progress_begin(void)
{
	sigset_t all, before;

	if (!prb_term_is(stderr))
		return;
	line.there = line.over = false;
	line.text = NULL;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	line.begun = !pthread_create(&line.thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void prb_progress_put(const struct prb_recording *recording)
{
	if (!line.begun || recording->duration <= 0)
		return;
	/* The printing thread holds the lock only briefly. */
	pthread_mutex_lock(&line.lock);
	line.cost = recording->cost;
	line.duration = recording->duration;
	line.there = true;
	pthread_cond_signal(&line.changed);
	pthread_mutex_unlock(&line.lock);
}

void prb_progress_say(const char *text)
{
	if (!line.begun || line.text)
		return;
	pthread_mutex_lock(&line.lock);
	line.text = text;
	line.there = true;
	pthread_cond_signal(&line.changed);
	pthread_mutex_unlock(&line.lock);
}

void prb_progress_end(void)
{
	if (!line.begun)
		return;
	pthread_mutex_lock(&line.lock);
	line.over = true;
	pthread_cond_signal(&line.changed);
	pthread_mutex_unlock(&line.lock);
	pthread_join(line.thread, NULL);
	line.begun = false;
	fputs("\r\x1b[K", stderr);
}
