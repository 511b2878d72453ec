/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All threads at one instant. A thread that sleeps need not be stopped for that, only proven not
 * to have run while the memory was copied; so those on a processor are stopped first, and those
 * that wake up meanwhile are stopped too, the next time. What is needed is learnt while all run,
 * and nothing is decoded before they run again.
 *
 * With native frames all are stopped, since only then do they show all their registers.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dump/read/capture.h"
#include "dump/read/describe.h"
#include "dump/tasks/stop_all.h"

enum {
	ATTEMPTS = 6, /* instants before they are decoded while they stand */
	MOMENTS = 24, /* the same while a thread is between two frames each time */
};

struct frozen {
	struct prb_capture *capture;
	struct prb_view *view;
	struct prb_stops stops;
	bool threadless; /* only states without a thread are read */
};

static bool is_ours(const struct frozen *f, const struct prb_capture_thread *thread)
{
	return !f->threadless || !thread->task;
}

/* The stop of its thread; NULL if it has none. */
static struct prb_stop *stop_of(struct frozen *f, const struct prb_capture_thread *thread)
{
	return thread->task ? &f->stops.list.items[thread->task - f->capture->tasks.list.items]
			    : NULL;
}

/* Of a thread that has ended, only the state that it left behind could be read. */
static struct prb_error *copy_thread(struct frozen *f, struct prb_capture_thread *thread,
				     const struct prb_stop *stop)
{
	struct prb_mem *mem = prb_view_mem(f->view);
	bool ended = stop && !stop->stopped && prb_task_has_ended(thread->task);
	struct prb_error *err = ended ? NULL : prb_capture_check_owner(thread, mem);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		prb_capture_detach(f->capture, thread);
	if (!ended && !err)
		return prb_capture_walk(thread, mem);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	prb_capture_clear(thread);
	thread->regs.known = 0;
	thread->frames_error = prb_capture_ended(thread);
	prb_capture_out(f->capture, thread)->ended = true;
	return NULL;
}

static struct prb_error *copy_all(struct frozen *f)
{
	struct prb_capture *c = f->capture;
	struct prb_capture_thread *thread;

	PRB_TRY(prb_view_prefetch(f->view));
	prb_vec_each (thread, &c->threads) {
		struct prb_stop *stop = stop_of(f, thread);
		bool stopped = stop && stop->stopped;

		if (!is_ours(f, thread))
			continue;
		PRB_TRY(prb_describe_moment(c, thread, stopped ? stop : NULL));
		if (c->native && stopped) {
			PRB_TRY(prb_stop_registers(stop, &thread->regs));
			thread->pc = thread->regs.pc;
			PRB_TRY(prb_capture_fetch_stack(c, f->view, &thread->regs));
		} else if (stopped && !c->options->no_waits) {
			PRB_TRY(prb_capture_read_pc(thread, stop));
		}
		PRB_TRY(copy_thread(f, thread, stop));
	}
	return NULL;
}

static struct prb_error *decode_all(struct frozen *f)
{
	struct prb_capture *c = f->capture;
	struct prb_capture_thread *thread;

	prb_capture_share(c, prb_view_mem(f->view));
	prb_vec_each (thread, &c->threads)
		if (is_ours(f, thread))
			PRB_TRY(prb_capture_decode(c, thread, prb_view_mem(f->view)));
	prb_capture_share(c, NULL);
	return NULL;
}

/* Who was stopped for how long; the stops themselves have ended. */
static void account(struct frozen *f, const bool *stopped, double pause_us)
{
	struct prb_capture *c = f->capture;
	struct prb_capture_thread *thread;

	prb_vec_each (thread, &c->threads) {
		struct prb_dump_thread *out = prb_capture_out(c, thread);
		/* Whichever thread might have changed it did not run. */
		bool was_stopped = !thread->task || stopped[thread->task - c->tasks.list.items];

		if (!is_ours(f, thread))
			continue;
		out->read = was_stopped ? PRB_READ_STOPPED : PRB_READ_IDLE;
		out->pause_us += was_stopped ? pause_us : 0;
	}
}

/* A thread on a processor that was stopped in the middle of a call or return; NULL if none was. */
static struct prb_capture_thread *find_between(struct frozen *f, int attempt)
{
	struct prb_capture_thread *thread;

	prb_vec_each (thread, &f->capture->threads)
		if (is_ours(f, thread) && thread->task && thread->task->state == 'R' &&
		    prb_capture_is_between(thread, attempt))
			return thread;
	return NULL;
}

/* One instant. *good is false if a thread ran that should have slept, or a page was missing. */
static struct prb_error *freeze_once(struct frozen *f, bool last, bool *good)
{
	struct prb_capture *c = f->capture;
	prb_auto_free bool *stopped = calloc(c->tasks.list.count, sizeof(bool));
	double pause = 0;

	if (!stopped)
		return prb_error_nomem();
	prb_view_new_epoch(f->view);

	struct prb_error *err = prb_stops_begin(&f->stops, last || (c->native && !f->threadless));
	if (!err)
		err = copy_all(f);
	if (!err && last)
		err = decode_all(f);
	*good = !err && prb_stops_held(&f->stops);
	for (size_t i = 0; i < f->stops.list.count; i++)
		stopped[i] = f->stops.list.items[i].stopped;
	prb_stops_end(&f->stops, &pause);
	account(f, stopped, pause);
	if (err || last || !*good)
		return err;
	prb_view_seal(f->view, &c->target->maps);
	PRB_TRY(decode_all(f));
	*good = !prb_view_misses(f->view);
	return NULL;
}

static struct prb_error *read_frozen(struct frozen *f)
{
	struct prb_capture *c = f->capture;
	struct prb_capture_thread *thread;
	bool good = false;

	prb_vec_each (thread, &c->threads) { /* learn which pages are needed */
		if (!is_ours(f, thread))
			continue;
		if (thread->task)
			PRB_TRY(prb_describe_read_call(c, thread));
		PRB_TRY(prb_describe_wait(c, thread, c->target->mem));
		PRB_TRY(prb_capture_walk(thread, prb_view_mem(f->view)));
		PRB_TRY(prb_capture_decode(c, thread, prb_view_mem(f->view)));
	}
	for (int attempt = 1, most = ATTEMPTS; attempt <= most && !good; attempt++) {
		PRB_TRY(freeze_once(f, attempt == most, &good));
		thread = find_between(f, attempt);
		if (!thread || attempt == MOMENTS)
			continue;
		good = false;
		most = MOMENTS;
		prb_capture_let_run(c, thread);
	}
	prb_target_note_pages(c->target, 0, f->view);
	prb_vec_each (thread, &c->threads)
		if (thread->regs.known && is_ours(f, thread) && thread->task)
			prb_target_note_registers(c->target, thread->task->tid, &thread->regs);
	return NULL;
}

static struct prb_error *freeze(struct prb_capture *c, bool threadless)
{
	struct frozen f = {.capture = c,
			   .threadless = threadless,
			   .stops = {.tasks = &c->tasks, .patience = PRB_STOP_PATIENCE}};
	struct prb_error *err = prb_view_create(c->target->mem, &f.view);

	if (!err)
		err = read_frozen(&f);
	prb_capture_share(c, NULL);
	prb_stops_deinit(&f.stops);
	prb_view_destroy(f.view);
	return err;
}

struct prb_error *prb_capture_frozen(struct prb_capture *c)
{
	return freeze(c, false);
}

/* Without the right to stop threads, or the wish for it. */
static struct prb_error *read_unstable(struct prb_capture *c)
{
	struct prb_capture_thread *thread;

	prb_vec_each (thread, &c->threads) {
		struct prb_error *err = thread->task ? NULL : prb_capture_nonblocking(c, thread);

		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		if (err)
			PRB_TRY(prb_capture_refuse(c, thread, err));
	}
	return NULL;
}

struct prb_error *prb_capture_threadless(struct prb_capture *c)
{
	struct prb_capture_thread *thread;
	struct prb_error *err;
	bool any = false;

	prb_vec_each (thread, &c->threads)
		any |= !thread->task;
	if (!any)
		return NULL;
	if (c->options->mode == PRB_DUMP_NONBLOCKING)
		return read_unstable(c);
	err = freeze(c, true);
	return prb_error_catch(&err, PRB_ERROR_PERMISSION) ? read_unstable(c) : err;
}
