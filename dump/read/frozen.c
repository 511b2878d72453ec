/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads all threads at one instant. A sleeping thread need not be stopped, only proven not to have
 * run during the copy. So threads on a processor are stopped first; threads that wake up during the
 * copy are stopped too in the next attempt. The pages to copy are learnt while all threads run, and
 * decoded after they run again.
 *
 * With native frames all threads are stopped: only then are all their registers readable.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dump/read/reader.h"
#include "dump/read/call.h"
#include "dump/tasks/stop_all.h"

enum {
	ATTEMPTS = 6, /* instants before threads are decoded while stopped */
	MOMENTS = 24, /* the same if a thread is always in the middle of a call or return */
};

struct frozen {
	struct prb_reader *reader;
	struct prb_view *view;
	struct prb_stop_all stops;
	bool threadless; /* read only states without a thread */
};

static bool is_ours(const struct frozen *f, const struct prb_reader_thread *thread)
{
	return !f->threadless || !thread->task;
}

/* The stop of its thread; NULL if it has none. */
static struct prb_stop *stop_of(struct frozen *f, const struct prb_reader_thread *thread)
{
	return thread->task ? &f->stops.list.items[thread->task - f->reader->tasks.list.items]
			    : NULL;
}

/* Copies what a thread needs. A thread that has ended left only its state. */
static struct prb_error *copy_thread(struct frozen *f, struct prb_reader_thread *thread,
				     const struct prb_stop *stop)
{
	struct prb_mem *mem = prb_view_mem(f->view);
	bool ended = stop && !stop->stopped && prb_task_has_ended(thread->task);
	struct prb_error *err = ended ? NULL : prb_reader_check_state(thread, mem);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		prb_reader_detach(f->reader, thread);
	if (!ended && !err)
		return prb_reader_walk(thread, mem);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	prb_reader_clear(thread);
	thread->regs.known = 0;
	thread->frames_error = prb_reader_ended(thread);
	prb_reader_out(f->reader, thread)->ended = true;
	return NULL;
}

static struct prb_error *copy_all(struct frozen *f)
{
	struct prb_reader *r = f->reader;
	struct prb_reader_thread *thread;

	PRB_TRY(prb_view_prefetch(f->view));
	prb_vec_each (thread, &r->threads) {
		struct prb_stop *stop = stop_of(f, thread);
		bool stopped = stop && stop->stopped;

		if (!is_ours(f, thread))
			continue;
		PRB_TRY(prb_read_moment(r, thread, stopped ? stop : NULL));
		if (r->native && stopped) {
			PRB_TRY(prb_stop_registers(stop, &thread->regs));
			thread->pc = thread->regs.pc;
			PRB_TRY(prb_reader_fetch_stack(r, f->view, &thread->regs));
		} else if (stopped && !r->options->no_waits) {
			PRB_TRY(prb_reader_note_pc(thread, stop));
		}
		PRB_TRY(copy_thread(f, thread, stop));
	}
	return NULL;
}

static struct prb_error *decode_all(struct frozen *f)
{
	struct prb_reader *r = f->reader;
	struct prb_reader_thread *thread;

	prb_reader_share(r, prb_view_mem(f->view));
	prb_vec_each (thread, &r->threads)
		if (is_ours(f, thread))
			PRB_TRY(prb_reader_decode(r, thread, prb_view_mem(f->view)));
	prb_reader_share(r, NULL);
	return NULL;
}

/* Accounts the pause to the threads, after the stops have ended. */
static void account(struct frozen *f, const bool *stopped, double pause_us)
{
	struct prb_reader *r = f->reader;
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads) {
		struct prb_dump_thread *out = prb_reader_out(r, thread);
		/* A state without a thread: no thread that could have changed it ran. */
		bool was_stopped = !thread->task || stopped[thread->task - r->tasks.list.items];

		if (!is_ours(f, thread))
			continue;
		out->read = was_stopped ? PRB_READ_STOPPED : PRB_READ_IDLE;
		out->pause_us += was_stopped ? pause_us : 0;
	}
}

/* A thread that was on a processor and was stopped in the middle of a call or return; or NULL. */
static struct prb_reader_thread *find_between(struct frozen *f, int attempt)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &f->reader->threads)
		if (is_ours(f, thread) && thread->task && thread->task->state == 'R' &&
		    prb_reader_is_between(thread, attempt))
			return thread;
	return NULL;
}

/* One instant. *good is false if a thread ran that should have slept, or a page was missing. */
static struct prb_error *freeze_once(struct frozen *f, bool last, bool *good)
{
	struct prb_reader *r = f->reader;
	prb_auto_free bool *stopped = calloc(r->tasks.list.count, sizeof(bool));
	double pause = 0;

	if (!stopped)
		return prb_error_nomem();
	prb_view_new_epoch(f->view);

	struct prb_error *err =
		prb_stop_all_begin(&f->stops, last || (r->native && !f->threadless));
	if (!err)
		err = copy_all(f);
	if (!err && last)
		err = decode_all(f);
	*good = !err && prb_stop_all_held(&f->stops);
	for (size_t i = 0; i < f->stops.list.count; i++)
		stopped[i] = f->stops.list.items[i].stopped;
	prb_stop_all_end(&f->stops, &pause);
	account(f, stopped, pause);
	if (err || last || !*good)
		return err;
	prb_view_seal(f->view, &r->target->maps);
	PRB_TRY(decode_all(f));
	*good = !prb_view_misses(f->view);
	return NULL;
}

static struct prb_error *read_frozen(struct frozen *f)
{
	struct prb_reader *r = f->reader;
	struct prb_reader_thread *thread;
	bool good = false;

	prb_vec_each (thread, &r->threads) { /* learn which pages are needed */
		if (!is_ours(f, thread))
			continue;
		if (thread->task)
			PRB_TRY(prb_read_call(r, thread));
		PRB_TRY(prb_read_wait(r, thread, r->target->mem));
		PRB_TRY(prb_reader_walk(thread, prb_view_mem(f->view)));
		PRB_TRY(prb_reader_decode(r, thread, prb_view_mem(f->view)));
	}
	for (int attempt = 1, most = ATTEMPTS; attempt <= most && !good; attempt++) {
		PRB_TRY(freeze_once(f, attempt == most, &good));
		thread = find_between(f, attempt);
		if (!thread || attempt == MOMENTS)
			continue;
		good = false;
		most = MOMENTS;
		prb_reader_let_run(r, thread);
	}
	prb_target_note_pages(r->target, 0, f->view);
	prb_vec_each (thread, &r->threads)
		if (thread->regs.known && is_ours(f, thread) && thread->task)
			prb_target_note_registers(r->target, thread->task->tid, &thread->regs);
	return NULL;
}

static struct prb_error *freeze(struct prb_reader *r, bool threadless)
{
	struct frozen f = {.reader = r,
			   .threadless = threadless,
			   .stops = {.tasks = &r->tasks, .patience = PRB_STOP_PATIENCE}};
	struct prb_error *err = prb_view_create(r->target->mem, &f.view);

	if (!err)
		err = read_frozen(&f);
	prb_reader_share(r, NULL);
	prb_stop_all_deinit(&f.stops);
	prb_view_destroy(f.view);
	return err;
}

struct prb_error *prb_read_frozen(struct prb_reader *r)
{
	return freeze(r, false);
}

/* For use without the right to stop threads, or with --nonblocking. */
static struct prb_error *read_unstable(struct prb_reader *r)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads) {
		struct prb_error *err = thread->task ? NULL : prb_read_nonblocking(r, thread);

		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		if (err)
			PRB_TRY(prb_reader_refuse(r, thread, err));
	}
	return NULL;
}

struct prb_error *prb_read_threadless(struct prb_reader *r)
{
	struct prb_reader_thread *thread;
	struct prb_error *err;
	bool any = false;

	prb_vec_each (thread, &r->threads)
		any |= !thread->task;
	if (!any)
		return NULL;
	if (r->options->mode == PRB_DUMP_NONBLOCKING)
		return read_unstable(r);
	err = freeze(r, true);
	return prb_error_catch(&err, PRB_ERROR_PERMISSION) ? read_unstable(r) : err;
}
