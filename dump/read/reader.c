/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dump/read/decode.h"
#include "dump/read/describe.h"

enum {
	STOP_TIMEOUT_MS = 1000,
	STOP_ATTEMPTS = 8, /* times that a thread is stopped before it is decoded while it stands */
	MOMENTS = 24,	   /* the same while it is caught between two frames each time */
	IDLE_ATTEMPTS = 8, /* tries to read a thread that wakes up all the time without a stop */
	STACK_LIMIT = 8 << 20, /* bytes of a native stack copied at once */
};

/* Errors that end the dump; all others belong to one thread. */
static bool ends_dump(const struct prb_error *err)
{
	return err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS ||
	       err->code == PRB_ERROR_PERMISSION;
}

void prb_reader_clear(struct prb_reader_thread *thread)
{
	prb_py_frames_deinit(&thread->frames);
	prb_error_destroy(prb_steal(&thread->frames_error));
}

/* Who had it when threads were listed may have gone to sleep before it was read. */
static void look_at_gil(struct prb_reader_thread *thread, struct prb_mem *mem)
{
	struct prb_py_thread *state = &thread->state;
	uint64_t holder;
	struct prb_error *err = prb_python_gil_holder(thread->py, mem, state->gil, &holder);

	if (!err)
		state->holds_gil = holder == state->address;
	prb_error_destroy(err);
}

struct prb_error *prb_reader_walk(struct prb_reader_thread *thread, struct prb_mem *mem)
{
	prb_reader_clear(thread);
	if (!thread->py)
		return NULL;

	struct prb_error *err =
		prb_python_frames(thread->py, mem, thread->state.address, &thread->frames);
	look_at_gil(thread, mem);
	if (err && ends_dump(err))
		return err;
	thread->frames_error = err;
	return NULL;
}

static struct prb_error *set_error(char **slot, const struct prb_error *err)
{
	return prb_str_copy(err ? err->message : NULL, slot);
}

void prb_reader_share(struct prb_reader *r, struct prb_mem *mem)
{
	prb_decoder_destroy(prb_steal(&r->shared));
	r->shared_mem = mem;
}

/* The decoder that threads share, made for the first of them. */
static struct prb_error *shared_decoder(struct prb_reader *r, struct prb_python *py,
					struct prb_decoder **ret)
{
	if (r->shared && r->shared_py != py)
		prb_reader_share(r, r->shared_mem);
	if (!r->shared)
		PRB_TRY(prb_decoder_create(py, r->shared_mem, r->options, r->dump->pool,
					   &r->shared));
	r->shared_py = py;
	*ret = r->shared;
	return NULL;
}

static struct prb_error *decode_python(struct prb_reader *r, struct prb_reader_thread *thread,
				       struct prb_mem *mem)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	struct prb_decoder *decoder;

	if (mem == r->shared_mem) {
		PRB_TRY(shared_decoder(r, thread->py, &decoder));
		return prb_decode_frames(decoder, &thread->frames, out);
	}
	PRB_TRY(prb_decoder_create(thread->py, mem, r->options, r->dump->pool, &decoder));

	struct prb_error *err = prb_decode_frames(decoder, &thread->frames, out);
	prb_decoder_destroy(decoder);
	return err;
}

struct prb_error *prb_reader_decode(struct prb_reader *r, struct prb_reader_thread *thread,
				    struct prb_mem *mem)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);

	prb_dump_frames_clear(out);
	PRB_TRY(set_error(&out->error, thread->frames_error));
	if (thread->py)
		PRB_TRY(decode_python(r, thread, mem));
	if (r->native && thread->regs.known)
		PRB_TRY(prb_native_merge(r->native, thread->py, mem, &thread->regs, &thread->frames,
					 &thread->doubt, out));
	return NULL;
}

/* The stack from the stack pointer outwards, as far as its mapping goes. */
struct prb_error *prb_reader_fetch_stack(struct prb_reader *r, struct prb_view *view,
					 const struct prb_regs *regs)
{
	uint64_t sp;

	if (!prb_regs_get(regs, prb_regs_sp(regs->machine), &sp))
		return NULL;

	const struct prb_map *map = prb_maps_find(&r->target->maps, sp);
	if (!map)
		return NULL;
	return prb_view_prefetch_range(view, sp, PRB_MIN(map->end - sp, (uint64_t)STACK_LIMIT));
}

struct prb_error *prb_reader_check_state(struct prb_reader_thread *thread, struct prb_mem *mem)
{
	uint64_t pthread, kept;

	if (!thread->py)
		return NULL;
	PRB_TRY(prb_mem_read_u64(
		mem, thread->state.address + (uint64_t)thread->py->layout.thread_id, &pthread));
	if (pthread != thread->state.pthread)
		return prb_error_create(PRB_ERROR_NO_PROCESS, "the thread has ended");
	if (!thread->kept_at)
		return NULL;
	PRB_TRY(prb_mem_read_u64(mem, thread->kept_at, &kept));
	if (kept != thread->state.address)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the state has no thread any more");
	return NULL;
}

void prb_reader_detach(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);

	thread->task = NULL;
	thread->self = thread->kept_at = 0;
	thread->regs.known = 0;
	thread->pc = 0;
	thread->futex = 0;
	out->tid = 0;
	out->ident = 0;
	out->note = "no thread uses it";
	free(prb_steal(&out->waits_for));
}

struct prb_error *prb_reader_note_pc(struct prb_reader_thread *thread, struct prb_stop *stop)
{
	struct prb_regs regs;

	PRB_TRY(prb_stop_registers(stop, &regs));
	thread->pc = regs.pc;
	return NULL;
}

/* What is done while the thread stands still: copy, and follow the chain of frames. */
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
 * Stopped in the middle of a call or return: the chain makes no sense, or (while the eval loop is
 * being entered, up to 3.12) there seems to be none. A thread may really have no Python frames, so
 * that is only doubted a few times.
 */
bool prb_reader_is_between(struct prb_reader_thread *thread, int attempt)
{
	enum { DOUBTS = 4 };

	if (!thread->py)
		return false;
	if (thread->doubt == PRB_NATIVE_BARE_LOOP) {
		/* One that has not run on yet is where it was. */
		thread->doubts += thread->doubt_pc != thread->regs.pc;
		thread->doubt_pc = thread->regs.pc;
		if (thread->doubts >= DOUBTS)
			thread->doubt = PRB_NATIVE_SWITCHED;
		return true;
	}
	return thread->frames_error || (!thread->frames.list.count && attempt < DOUBTS);
}

/*
 * Nothing helps but to let it run on a little. On a busy machine it has to get a processor for
 * that first: its counters tell that it had one.
 */
void prb_reader_let_run(struct prb_reader *r, struct prb_reader_thread *thread)
{
	enum { LOOKS = 20, LOOK_NS = 100 * 1000 };
	struct prb_task_watch before = *thread->task, now = before;

	prb_task_note(&r->tasks, &before);
	for (int i = 0; i < LOOKS; i++) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		prb_task_note(&r->tasks, &now);
		if (strcmp(now.counters, before.counters) != 0 || prb_task_has_ended(&now))
			return;
	}
}

/*
 * Stops until everything that decoding needs was in the copy: what was missing is expected the
 * next time. A program that changes its stack faster than that is decoded while it stands.
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

/* Reads it as if it slept, into its own view; that it did is for the caller to check. */
static struct prb_error *read_once(struct prb_reader *r, struct prb_reader_thread *thread,
				   struct prb_view *view)
{
	prb_view_new_epoch(view);
	PRB_TRY(prb_view_prefetch(view));
	PRB_TRY(prb_reader_walk(thread, prb_view_mem(view)));
	return prb_reader_decode(r, thread, prb_view_mem(view));
}

/* A thread that only wakes up now and then need not be stopped: it sleeps again soon. */
static struct prb_error *read_between(struct prb_reader *r, struct prb_reader_thread *thread,
				      struct prb_view *view, bool *ret)
{
	*ret = false;
	for (int attempt = 0; attempt < IDLE_ATTEMPTS && !*ret; attempt++) {
		prb_task_note(&r->tasks, thread->task);
		thread->regs.known = 0;
		/* Registers come with what it waits for, and native frames from them. */
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

struct prb_error *prb_reader_ended(const struct prb_reader_thread *thread)
{
	return prb_error_create(PRB_ERROR_NO_PROCESS,
				thread->task && thread->task->state == 'Z'
					? "it has ended, and the process goes on without it"
					: "it ended while it was read");
}

/* The thread is gone, or cannot be stopped: that is the thread's error, not the dump's. */
struct prb_error *prb_reader_refuse(struct prb_reader *r, struct prb_reader_thread *thread,
				    struct prb_error *err)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);

	prb_dump_frames_clear(out);
	if (err->code == PRB_ERROR_NO_PROCESS) {
		prb_error_destroy(err);
		err = prb_reader_ended(thread);
		out->ended = true;
	}
	struct prb_error *mine = set_error(&out->error, err);
	prb_error_destroy(err);
	return mine;
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
		prb_reader_detach(r, thread); /* to be read with the others that have none */
	if (err && err->code == PRB_ERROR_PERMISSION) { /* somebody else traces it */
		char **warning = prb_vec_push(&r->dump->warnings);

		if (warning)
			*warning =
				prb_format("%s; it was read without being stopped", err->message);
		bool failed = !warning || !*warning;
		prb_error_destroy(err);
		err = failed ? prb_error_nomem() : prb_read_nonblocking(r, thread);
	}
	if (err && err->code != PRB_ERROR_NOMEM)
		err = prb_reader_refuse(r, thread, err);
	prb_view_destroy(view);
	return err;
}
