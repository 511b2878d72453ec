/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "judge/facts.h"
#include "judge/gil.h"
#include "judge/holder.h"
#include "judge/threads.h"

/* The first pauses are short: most programs are elsewhere after a few milliseconds. */
static const double FIRST_PAUSE = 0.004;
/* Seconds that a thread runs between two looks that count. */
static const double LEAST_RAN = 0.0005;
/* A look of so many seconds sees the memory grow. */
static const double LONG = 5;
/* After so many looks, threads that do something else each time are not looked at any more. */
enum { ENOUGH = 3, PAUSES = 8 };
/* So many times as long a look may take at a thread that gets no processor. */
enum { LONGER = 7 };

void prb_look_destroy(struct prb_look *look)
{
	if (!look)
		return;
	for (size_t i = 0; i < look->count; i++)
		free(look->threads[i].values);
	free(look->holder_text);
	prb_dump_found_deinit(&look->found);
	free(look);
}

void prb_case_deinit(struct prb_case *c)
{
	prb_case_renew(c);
	prb_vec_free(&c->sleepers);
	prb_look_destroy(prb_steal(&c->look));
	prb_holder_destroy(prb_steal(&c->holder));
	prb_gil_history_destroy(prb_steal(&c->gil));
}

/* Seconds with a processor, and ready without one. */
static bool read_times(const struct prb_case *c, pid_t tid, double *ran, double *waited)
{
	prb_auto_str struct prb_str scheduled = {};
	unsigned long long on, off;

	prb_error_destroy(
		prb_target_read_file(c->target, &scheduled, "task/%d/schedstat", (int)tid));
	if (sscanf(prb_str_text(&scheduled), "%llu %llu", &on, &off) != 2)
		return false;
	*ran = (double)on / 1e9;
	*waited = (double)off / 1e9;
	return true;
}

static void add_thread(struct prb_look *look, const struct prb_case *c,
		       const struct prb_dump_thread *thread)
{
	struct prb_look_thread *t = &look->threads[look->count];

	if (look->count == PRB_LOOK_THREADS || prb_thread_is_agents(thread) ||
	    !prb_thread_is(thread, "running"))
		return;
	*t = (struct prb_look_thread){
		.tid = thread->tid, .same = true, .first_line = -1, .last_line = -1};
	look->count += read_times(c, thread->tid, &t->ran_before, &t->waited_before);
}

static void note_times(const struct prb_case *c, double began, struct prb_look_thread *t)
{
	double ran, waited;

	if (!read_times(c, t->tid, &ran, &waited))
		return;
	t->ran = ran - t->ran_before;
	t->waited = PRB_MIN(waited - t->waited_before, prb_clock_seconds() - began);
}

/* All that the frame knows, as one text. */
static char *put_values(const struct prb_dump_frame *frame, bool *whole)
{
	struct prb_str s = {};
	const struct prb_dump_local *local;

	*whole = !frame->error;
	prb_vec_each (local, &frame->locals)
		prb_str_printf(&s, "%s %#llx %s\n", local->name ? local->name : "",
			       (unsigned long long)local->address,
			       local->value ? local->value : "");
	return s.length ? prb_str_take(&s) : strdup("");
}

/* Compares the innermost frame with that of the looks before. */
static struct prb_error *compare(struct prb_look_thread *t, const struct prb_dump_frame *frame)
{
	bool whole;
	prb_auto_free char *values = put_values(frame, &whole);

	if (!values)
		return prb_error_nomem();
	if (!t->looks++) {
		t->code = frame->code;
		t->first = t->last = (int64_t)frame->ip;
		t->first_line = t->last_line = frame->line;
		t->variables = frame->locals.count;
		t->values = prb_steal(&values);
		t->same = whole && frame->code;
		return NULL;
	}
	t->same = whole && frame->code == t->code && !strcmp(values, t->values);
	t->first = PRB_MIN(t->first, (int64_t)frame->ip);
	t->last = PRB_MAX(t->last, (int64_t)frame->ip);
	t->first_line = PRB_MIN(t->first_line, frame->line);
	t->last_line = PRB_MAX(t->last_line, frame->line);
	return NULL;
}

/* A thread that has hardly run since the last look is where it was. */
static bool is_due(const struct prb_look_thread *t)
{
	return t->same && (!t->looks || t->ran - t->ran_at_look >= LEAST_RAN);
}

static struct prb_error *look_at_thread(struct prb_look *look, const struct prb_case *c,
					struct prb_look_thread *t)
{
	const struct prb_dump_options options = {.tid = t->tid,
						 .locals = true,
						 .max_frames = 1,
						 .no_modules = true,
						 .no_command = true,
						 .no_waits = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_thread *thread;
	struct prb_error *err = prb_dump_create_with(c->target, &options, &look->found, &dump);

	PRB_TRY(prb_error_tolerate(err, NULL));
	thread = dump && dump->threads.count ? dump->threads.items : NULL;
	if (!thread || !thread->frames.count || thread->error ||
	    thread->read == PRB_READ_UNSTABLE || thread->frames.items[0].kind != PRB_FRAME_PYTHON) {
		t->same = false;
		return NULL;
	}
	t->in_library = t->in_library || thread->in_c;
	t->ran_at_look = t->ran;
	return compare(t, thread->frames.items);
}

/* True if nobody else has had the GIL since the first look. */
static bool was_kept(struct prb_look *look, const struct prb_case *c)
{
	const struct prb_pythons *pythons = &look->found.pythons;
	uint64_t switches;

	if (pythons->list.count != 1 ||
	    !prb_python_gil_switches(pythons->list.items[0], c->target->mem, &switches) ||
	    (look->looks && switches != look->switches))
		return false;
	look->switches = switches;
	return true;
}

/* Whether the GIL's holder is where it was in the first look. */
static struct prb_error *note_holder(struct prb_look *look, const struct prb_case *c,
				     const struct prb_dump *dump)
{
	const struct prb_dump_thread *thread, *holder = NULL;
	unsigned waiters = 0;

	prb_vec_each (thread, &dump->threads) {
		if (prb_thread_holds_gil(thread) && thread->frames.count)
			holder = thread;
		waiters += prb_thread_waits_for_gil(thread);
	}
	if (!holder || !was_kept(look, c) ||
	    (look->looks &&
	     (holder->tid != look->holder || holder->frames.items[0].code != look->holder_code ||
	      holder->frames.items[0].ip != look->holder_ip))) {
		look->holder = 0;
		return NULL;
	}
	look->looks++;
	look->waited += waiters > 0;
	look->most_waiters = PRB_MAX(look->most_waiters, waiters);
	look->holder = holder->tid;
	look->holder_code = holder->frames.items[0].code;
	look->holder_ip = holder->frames.items[0].ip;
	if (look->holder_text || !holder->in_c)
		return NULL;
	PRB_TRY(prb_str_copy(holder->in_c, &look->holder_text));
	look->holder_in = look->holder_text;
	return NULL;
}

static struct prb_error *look_at_gil(struct prb_look *look, const struct prb_case *c)
{
	const struct prb_dump_options options = {
		.no_values = true, .max_frames = 1, .no_modules = true, .no_command = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	struct prb_error *err = prb_dump_create_with(c->target, &options, &look->found, &dump);

	PRB_TRY(prb_error_tolerate(err, NULL));
	if (dump)
		return note_holder(look, c, dump);
	look->holder = 0;
	return NULL;
}

static struct prb_error *look_once(struct prb_look *look, const struct prb_case *c, double began)
{
	for (size_t i = 0; i < look->count; i++) {
		note_times(c, began, &look->threads[i]);
		if (is_due(&look->threads[i]))
			PRB_TRY(look_at_thread(look, c, &look->threads[i]));
	}
	return look->holder ? look_at_gil(look, c) : NULL;
}

/* True if something is as it should not be, so far. */
static bool is_strange(const struct prb_look *look)
{
	if (look->holder && look->waited)
		return true;
	for (size_t i = 0; i < look->count; i++) {
		const struct prb_look_thread *t = &look->threads[i];

		if (t->same || t->waited > t->ran)
			return true;
	}
	return false;
}

static void note_memory(struct prb_look *look, const struct prb_case *c)
{
	double bytes = prb_resident_bytes(c->target);

	if (look->memories < PRB_LOOK_MEMORY && bytes > 0)
		look->memory[look->memories++] = bytes;
}

/* The time in which a thread that is looked at had no processor shows nothing of it. */
static double starved(const struct prb_look *look)
{
	double most = 0;

	for (size_t i = 0; i < look->count; i++)
		if (look->threads[i].same)
			most = PRB_MAX(most, look->threads[i].waited);
	return most;
}

static struct prb_error *look_on(struct prb_look *look, const struct prb_case *c)
{
	const double began = prb_clock_seconds();
	double pause = FIRST_PAUSE, left, memory_at = began;
	bool is_long = c->patience >= LONG;

	for (unsigned n = 1;; n++) {
		PRB_TRY(look_once(look, c, began));
		look->seconds = prb_clock_seconds() - began;
		if (is_long && prb_clock_seconds() >= memory_at) {
			note_memory(look, c);
			memory_at += c->patience / (PRB_LOOK_MEMORY - 1);
		}
		left = c->patience - look->seconds;
		if (!is_long)
			left += PRB_MIN(starved(look), LONGER * c->patience);
		if (left <= 0 || (n >= ENOUGH && !is_long && !is_strange(look)))
			return NULL;
		if (is_long)
			left = PRB_MIN(left, c->patience / (PRB_LOOK_MEMORY - 1));
		pause = PRB_MIN(left, PRB_MIN(pause, c->patience / PAUSES));
		nanosleep(&(struct timespec){(time_t)pause,
					     (long)((pause - (double)(time_t)pause) * 1e9)},
			  NULL);
		pause *= 2;
	}
}

struct prb_error *prb_case_look(struct prb_case *c, const struct prb_look **ret)
{
	const struct prb_dump_thread *thread;
	struct prb_look *look = c->look;

	*ret = look;
	if (look)
		return NULL;
	look = calloc(1, sizeof(*look));
	if (!look)
		return prb_error_nomem();
	*ret = c->look = look;
	if (c->patience <= 0 || c->at_once || !c->dump || !prb_case_is_here(c))
		return NULL;
	prb_vec_each (thread, &c->dump->threads) {
		add_thread(look, c, thread);
		if (c->dump->threads.count > 1 && prb_thread_holds_gil(thread) &&
		    prb_thread_is(thread, "running") && !prb_thread_is_agents(thread))
			look->holder = thread->tid;
	}
	if (!look->count && c->patience < LONG)
		return NULL;

	const double began = prb_clock_seconds();
	struct prb_error *err = look_on(look, c);

	prb_case_spent(c, began);
	return err;
}
