/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads a thread that does not sleep: stops it for one copy, and decodes after it runs again. */
#include <stdio.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "dump/read/call.h"
#include "dump/read/reader.h"

enum {
	STOP_TIMEOUT_MS = 1000,
	STOP_ATTEMPTS = 8, /* stops before the thread is decoded while stopped */
	MOMENTS = 24,	   /* the same if it is always in the middle of a call or return */
	IDLE_ATTEMPTS = 8, /* attempts to read a thread that wakes up all the time without a stop */
};

/* Runs while the thread is stopped: copies, and follows the chain of frames. */
static struct prb_error *copy_stopped(struct prb_reader *r, struct prb_reader_thread *thread,
				      struct prb_view *view, struct prb_stop *stop)
{
	PRB_TRY(prb_view_prefetch(view));
	PRB_TRY(prb_reader_check_state(thread, prb_view_mem(view)));
	PRB_TRY(prb_read_moment(r, thread, stop));
	if (r->native) {
		PRB_TRY(prb_stop_registers(stop, &thread->regs));
		thread->pc = thread->regs.pc;
		PRB_TRY(prb_reader_fetch_stack(r, view, &thread->regs));
	} else if (!r->options->no_waits) {
		PRB_TRY(prb_reader_note_pc(thread, stop));
	}
	return prb_reader_walk(thread, prb_view_mem(view));
}

static struct prb_error *stop_once(struct prb_reader *r, struct prb_reader_thread *thread,
				   struct prb_view *view, bool decode_inside)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	struct prb_stop stop;
	double pause;

	prb_view_new_epoch(view);
	PRB_TRY(prb_stop_seize_after(thread->task->tid, &r->patience, &stop));

	struct prb_error *err = prb_stop_ask(&stop);
	if (!err)
		err = prb_stop_wait(&stop, STOP_TIMEOUT_MS);
	if (!err)
		err = copy_stopped(r, thread, view, &stop);
	if (!err && decode_inside)
		err = prb_reader_decode(r, thread, prb_view_mem(view));
	prb_stop_end(&stop, &pause);
	out->pause_us += pause;
	PRB_TRY(err);
	if (decode_inside)
		return NULL;
	prb_view_seal(view, &r->target->maps);
	return prb_reader_decode(r, thread, prb_view_mem(view));
}

/*
 * Stops the thread repeatedly until a copy has all pages that decoding needs; the next copy
 * includes missing pages. If the stack changes too fast for that, the last attempt decodes while
 * the thread is stopped.
 */
static struct prb_error *read_stopped(struct prb_reader *r, struct prb_reader_thread *thread,
				      struct prb_view *view)
{
	for (int attempt = 1, most = STOP_ATTEMPTS; attempt <= most; attempt++) {
		bool last = attempt == most, between;

		PRB_TRY(stop_once(r, thread, view, last));
		between = prb_reader_is_between(thread, attempt);
		if (!between && (last || !prb_view_misses(view)))
			break;
		if (between) {
			most = MOMENTS;
			if (attempt < most)
				prb_reader_let_run(r, thread);
		}
		prb_log("stop", 2, "thread %d: %zu pages were missing%s, once more",
			thread->task->tid, prb_view_misses(view), between ? ", between" : "");
	}
	prb_reader_out(r, thread)->read = PRB_READ_STOPPED;
	prb_target_note_pages(r->target, thread->task->tid, view);
	if (thread->regs.known)
		prb_target_note_registers(r->target, thread->task->tid, &thread->regs);
	return NULL;
}

/* Reads the thread as if it slept, into its own view; the caller checks that it did. */
static struct prb_error *read_once(struct prb_reader *r, struct prb_reader_thread *thread,
				   struct prb_view *view)
{
	prb_view_new_epoch(view);
	PRB_TRY(prb_view_prefetch(view));
	PRB_TRY(prb_reader_walk(thread, prb_view_mem(view)));
	return prb_reader_decode(r, thread, prb_view_mem(view));
}

/* Reads a thread that wakes up now and then: it soon sleeps again, so it need not be stopped. */
static struct prb_error *read_between(struct prb_reader *r, struct prb_reader_thread *thread,
				      struct prb_view *view, bool *ret)
{
	*ret = false;
	for (int attempt = 0; attempt < IDLE_ATTEMPTS && !*ret; attempt++) {
		prb_task_note(&r->tasks, thread->task);
		thread->regs.known = 0;
		/* The call brings registers, which native frames start from. */
		PRB_TRY(prb_read_call(r, thread));
		PRB_TRY(prb_read_wait(r, thread, r->target->mem));
		PRB_TRY(read_once(r, thread, view));
		if (thread->task->state == 'R')
			return NULL;
		*ret = prb_task_slept(&r->tasks, thread->task, thread->call.sp != 0);
	}
	if (*ret)
		prb_target_note_pages(r->target, thread->task->tid, view);
	return NULL;
}

struct prb_error *prb_read_running(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_view *view;
	bool slept;

	PRB_TRY(prb_view_create(r->target->mem, &view));

	struct prb_error *err = read_between(r, thread, view, &slept);
	if (!err && !slept) {
		if (r->options->mode == PRB_DUMP_NONBLOCKING)
			err = prb_read_nonblocking(r, thread);
		else
			err = read_stopped(r, thread, view);
	}
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		prb_reader_detach(r,
				  thread); /* read later, with the other states without a thread */
	if (err && err->code == PRB_ERROR_PERMISSION) { /* another tracer holds it */
		struct prb_error *failed = prb_dump_warn(
			r->dump, prb_format("%s; it was read without being stopped", err->message));

		prb_error_destroy(err);
		err = failed ? failed : prb_read_nonblocking(r, thread);
	}
	if (err && err->code != PRB_ERROR_NOMEM)
		err = prb_reader_refuse(r, thread, err);
	prb_view_destroy(view);
	return err;
}
