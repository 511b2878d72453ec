/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * All threads at one instant: what is needed is learnt while they run, then all are stopped, the
 * memory is copied, and they run again before anything is decoded.
 */
#include <string.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/log.h"
#include "dwarf/snapshot/snapshot.h"
#include "injector/capture.h"
#include "injector/describe.h"

enum { STOP_TIMEOUT_MS = 2000, ATTEMPTS = 3 };

struct frozen {
	struct prb_capture *capture;
	struct prb_view *view;
	PRB_VEC(struct prb_stop) stops; /* one for each task, in the same order */
};

/* Asks all first and waits afterwards, so that they stop together. */
static struct prb_error *stop_all(struct frozen *f)
{
	struct prb_capture *c = f->capture;
	struct prb_task_watch *task;
	struct prb_stop *stop;

	f->stops.count = 0;
	prb_vec_each (task, &c->tasks.list) {
		stop = prb_vec_push(&f->stops);
		if (!stop)
			return prb_error_nomem();
		*stop = (struct prb_stop){.tid = task->tid};
		if (task->state == 'Z' || task->state == 'X')
			continue;

		struct prb_error *err = prb_stop_seize(task->tid, stop);
		if (err && err->code != PRB_ERROR_NO_PROCESS)
			return err;
		prb_error_destroy(err);
	}
	prb_vec_each (stop, &f->stops)
		if (stop->seized)
			prb_error_destroy(prb_stop_ask(stop));
	prb_vec_each (stop, &f->stops) {
		struct prb_error *err = stop->seized ? prb_stop_wait(stop, STOP_TIMEOUT_MS) : NULL;

		/* Asleep in the kernel where it cannot be stopped: it does not run either. */
		if (err)
			prb_log("stop", 1, "%s", err->message);
		prb_error_destroy(err);
	}
	return NULL;
}

static void resume_all(struct frozen *f, double *pause_us)
{
	struct prb_stop *stop;

	*pause_us = 0;
	prb_vec_each (stop, &f->stops) {
		double pause;

		prb_stop_end(stop, &pause);
		*pause_us = pause > *pause_us ? pause : *pause_us;
	}
}

static struct prb_error *copy_all(struct frozen *f)
{
	struct prb_capture *c = f->capture;
	struct prb_capture_thread *thread;

	PRB_TRY(prb_view_prefetch(f->view));
	prb_vec_each (thread, &c->threads) {
		struct prb_stop *stop = &f->stops.items[thread->task - c->tasks.list.items];

		if (c->native && stop->stopped) {
			PRB_TRY(prb_stop_registers(stop, &thread->regs));
			PRB_TRY(prb_capture_fetch_stack(c, f->view, &thread->regs));
		}
		PRB_TRY(prb_capture_walk(c, thread, prb_view_mem(f->view)));
	}
	return NULL;
}

static struct prb_error *decode_all(struct frozen *f)
{
	struct prb_capture *c = f->capture;
	struct prb_capture_thread *thread;

	prb_capture_share(c, prb_view_mem(f->view));
	prb_vec_each (thread, &c->threads) {
		PRB_TRY(prb_capture_decode(c, thread, prb_view_mem(f->view)));
		prb_capture_out(c, thread)->read = PRB_READ_STOPPED;
	}
	prb_capture_share(c, NULL);
	return NULL;
}

static struct prb_error *freeze_once(struct frozen *f, bool decode_inside)
{
	struct prb_capture *c = f->capture;
	struct prb_capture_thread *thread;
	double pause;

	prb_view_new_epoch(f->view);

	struct prb_error *err = stop_all(f);
	if (!err)
		err = copy_all(f);
	if (!err && decode_inside)
		err = decode_all(f);
	resume_all(f, &pause);
	prb_vec_each (thread, &c->threads)
		prb_capture_out(c, thread)->pause_us += pause;
	PRB_TRY(err);
	if (decode_inside)
		return NULL;
	prb_view_seal(f->view, &c->target->maps);
	return decode_all(f);
}

static struct prb_error *read_frozen(struct frozen *f)
{
	struct prb_capture *c = f->capture;
	struct prb_capture_thread *thread;

	prb_vec_each (thread, &c->threads) { /* learn which pages are needed */
		PRB_TRY(prb_describe_wait(c, thread));
		PRB_TRY(prb_capture_walk(c, thread, prb_view_mem(f->view)));
		PRB_TRY(prb_capture_decode(c, thread, prb_view_mem(f->view)));
	}
	for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
		PRB_TRY(freeze_once(f, attempt == ATTEMPTS));
		if (!prb_view_misses(f->view))
			break;
	}
	if (!c->target->recorder)
		return NULL;
	prb_recorder_pages(c->target->recorder, 0, f->view);
	prb_vec_each (thread, &c->threads)
		if (thread->regs.known)
			prb_target_note_registers(c->target, thread->task->tid, &thread->regs);
	return NULL;
}

struct prb_error *prb_capture_frozen(struct prb_capture *c)
{
	struct frozen f = {.capture = c};

	PRB_TRY(prb_view_create(c->target->mem, &f.view));

	struct prb_error *err = read_frozen(&f);
	prb_vec_free(&f.stops);
	prb_view_destroy(f.view);
	return err;
}
