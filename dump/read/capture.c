/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/capture.h"

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

void prb_capture_clear(struct prb_capture_thread *thread)
{
	prb_py_frames_deinit(&thread->frames);
	prb_error_destroy(prb_steal(&thread->frames_error));
}

/* Who had it when threads were listed may have gone to sleep before it was read. */
static void look_at_gil(struct prb_capture_thread *thread, struct prb_mem *mem)
{
	struct prb_py_thread *state = &thread->state;
	uint64_t holder;
	struct prb_error *err = prb_python_gil_holder(thread->py, mem, state->gil, &holder);

	if (!err)
		state->holds_gil = holder == state->address;
	prb_error_destroy(err);
}

struct prb_error *prb_capture_walk(struct prb_capture_thread *thread, struct prb_mem *mem)
{
	prb_capture_clear(thread);
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

void prb_capture_share(struct prb_capture *c, struct prb_mem *mem)
{
	prb_decoder_destroy(prb_steal(&c->shared));
	c->shared_mem = mem;
}

/* The decoder that threads share, made for the first of them. */
static struct prb_error *shared_decoder(struct prb_capture *c, struct prb_python *py,
					struct prb_decoder **ret)
{
	if (c->shared && c->shared_py != py)
		prb_capture_share(c, c->shared_mem);
	if (!c->shared)
		PRB_TRY(prb_decoder_create(py, c->shared_mem, c->options, c->dump->pool,
					   &c->shared));
	c->shared_py = py;
	*ret = c->shared;
	return NULL;
}

static struct prb_error *decode_python(struct prb_capture *c, struct prb_capture_thread *thread,
				       struct prb_mem *mem)
{
	struct prb_dump_thread *out = prb_capture_out(c, thread);
	struct prb_decoder *decoder;

	if (mem == c->shared_mem) {
		PRB_TRY(shared_decoder(c, thread->py, &decoder));
		return prb_decode_frames(decoder, &thread->frames, out);
	}
	PRB_TRY(prb_decoder_create(thread->py, mem, c->options, c->dump->pool, &decoder));

	struct prb_error *err = prb_decode_frames(decoder, &thread->frames, out);
	prb_decoder_destroy(decoder);
	return err;
}

struct prb_error *prb_capture_decode(struct prb_capture *c, struct prb_capture_thread *thread,
				     struct prb_mem *mem)
{
	struct prb_dump_thread *out = prb_capture_out(c, thread);

	prb_dump_frames_clear(out);
	PRB_TRY(set_error(&out->error, thread->frames_error));
	if (thread->py)
		PRB_TRY(decode_python(c, thread, mem));
	if (c->native && thread->regs.known)
		PRB_TRY(prb_native_merge(c->native, thread->py, mem, &thread->regs, &thread->frames,
					 &thread->doubt, out));
	return NULL;
}

/* The stack from the stack pointer outwards, as far as its mapping goes. */
struct prb_error *prb_capture_fetch_stack(struct prb_capture *c, struct prb_view *view,
					  const struct prb_regs *regs)
{
	uint64_t sp;

	if (!prb_regs_get(regs, prb_regs_sp(regs->machine), &sp))
		return NULL;

	const struct prb_map *map = prb_maps_find(&c->target->maps, sp);
	if (!map)
		return NULL;
	return prb_view_prefetch_range(view, sp, PRB_MIN(map->end - sp, (uint64_t)STACK_LIMIT));
}

struct prb_error *prb_capture_check_owner(struct prb_capture_thread *thread, struct prb_mem *mem)
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

void prb_capture_detach(struct prb_capture *c, struct prb_capture_thread *thread)
{
	struct prb_dump_thread *out = prb_capture_out(c, thread);

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

struct prb_error *prb_capture_read_pc(struct prb_capture_thread *thread, struct prb_stop *stop)
{
	struct prb_regs regs;

	PRB_TRY(prb_stop_registers(stop, &regs));
	thread->pc = regs.pc;
	return NULL;
}

/* What is done while the thread stands still: copy, and follow the chain of frames. */
static struct prb_error *copy_stopped(struct prb_capture *c, struct prb_capture_thread *thread,
				      struct prb_view *view, struct prb_stop *stop)
{
	PRB_TRY(prb_view_prefetch(view));
	PRB_TRY(prb_capture_check_owner(thread, prb_view_mem(view)));
	PRB_TRY(prb_describe_moment(c, thread, stop));
	if (c->native) {
		PRB_TRY(prb_stop_registers(stop, &thread->regs));
		thread->pc = thread->regs.pc;
		PRB_TRY(prb_capture_fetch_stack(c, view, &thread->regs));
	} else if (!c->options->no_waits) {
		PRB_TRY(prb_capture_read_pc(thread, stop));
	}
	return prb_capture_walk(thread, prb_view_mem(view));
}

static struct prb_error *stop_once(struct prb_capture *c, struct prb_capture_thread *thread,
				   struct prb_view *view, bool decode_inside)
{
	struct prb_dump_thread *out = prb_capture_out(c, thread);
	struct prb_stop stop;
	double pause;

	prb_view_new_epoch(view);
	PRB_TRY(prb_stop_seize_after(thread->task->tid, &c->patience, &stop));

	struct prb_error *err = prb_stop_ask(&stop);
	if (!err)
		err = prb_stop_wait(&stop, STOP_TIMEOUT_MS);
	if (!err)
		err = copy_stopped(c, thread, view, &stop);
	if (!err && decode_inside)
		err = prb_capture_decode(c, thread, prb_view_mem(view));
	prb_stop_end(&stop, &pause);
	out->pause_us += pause;
	PRB_TRY(err);
	if (decode_inside)
		return NULL;
	prb_view_seal(view, &c->target->maps);
	return prb_capture_decode(c, thread, prb_view_mem(view));
}

/*
 * Stopped in the middle of a call or return: the chain makes no sense, or (while the eval loop is
 * being entered, up to 3.12) there seems to be none. A thread may really have no Python frames, so
 * that is only doubted a few times.
 */
bool prb_capture_is_between(struct prb_capture_thread *thread, int attempt)
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
void prb_capture_let_run(struct prb_capture *c, struct prb_capture_thread *thread)
{
	enum { LOOKS = 20, LOOK_NS = 100 * 1000 };
	struct prb_task_watch before = *thread->task, now = before;

	prb_task_note(&c->tasks, &before);
	for (int i = 0; i < LOOKS; i++) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		prb_task_note(&c->tasks, &now);
		if (strcmp(now.counters, before.counters) != 0 || prb_task_has_ended(&now))
			return;
	}
}

/*
 * Stops until everything that decoding needs was in the copy: what was missing is expected the
 * next time. A program that changes its stack faster than that is decoded while it stands.
 */
static struct prb_error *read_stopped(struct prb_capture *c, struct prb_capture_thread *thread,
				      struct prb_view *view)
{
	for (int attempt = 1, most = STOP_ATTEMPTS; attempt <= most; attempt++) {
		bool last = attempt == most, between;

		PRB_TRY(stop_once(c, thread, view, last));
		between = prb_capture_is_between(thread, attempt);
		if (!between && (last || !prb_view_misses(view)))
			break;
		if (between) {
			most = MOMENTS;
			if (attempt < most)
				prb_capture_let_run(c, thread);
		}
		prb_log("stop", 2, "thread %d: %zu pages were missing%s, once more",
			thread->task->tid, prb_view_misses(view), between ? ", between" : "");
	}
	prb_capture_out(c, thread)->read = PRB_READ_STOPPED;
	prb_target_note_pages(c->target, thread->task->tid, view);
	if (thread->regs.known)
		prb_target_note_registers(c->target, thread->task->tid, &thread->regs);
	return NULL;
}

/* Reads it as if it slept, into its own view; that it did is for the caller to check. */
static struct prb_error *read_once(struct prb_capture *c, struct prb_capture_thread *thread,
				   struct prb_view *view)
{
	prb_view_new_epoch(view);
	PRB_TRY(prb_view_prefetch(view));
	PRB_TRY(prb_capture_walk(thread, prb_view_mem(view)));
	return prb_capture_decode(c, thread, prb_view_mem(view));
}

/* A thread that only wakes up now and then need not be stopped: it sleeps again soon. */
static struct prb_error *read_between(struct prb_capture *c, struct prb_capture_thread *thread,
				      struct prb_view *view, bool *ret)
{
	*ret = false;
	for (int attempt = 0; attempt < IDLE_ATTEMPTS && !*ret; attempt++) {
		prb_task_note(&c->tasks, thread->task);
		thread->regs.known = 0;
		/* Registers come with what it waits for, and native frames from them. */
		PRB_TRY(prb_describe_read_call(c, thread));
		PRB_TRY(prb_describe_wait(c, thread, c->target->mem));
		PRB_TRY(read_once(c, thread, view));
		if (thread->task->state == 'R')
			return NULL;
		*ret = prb_task_slept(&c->tasks, thread->task, thread->call.sp != 0);
	}
	if (*ret)
		prb_target_note_pages(c->target, thread->task->tid, view);
	return NULL;
}

struct prb_error *prb_capture_ended(const struct prb_capture_thread *thread)
{
	return prb_error_create(PRB_ERROR_NO_PROCESS,
				thread->task && thread->task->state == 'Z'
					? "it has ended, and the process goes on without it"
					: "it ended while it was read");
}

/* The thread is gone, or cannot be stopped: that is the thread's error, not the dump's. */
struct prb_error *prb_capture_refuse(struct prb_capture *c, struct prb_capture_thread *thread,
				     struct prb_error *err)
{
	struct prb_dump_thread *out = prb_capture_out(c, thread);

	prb_dump_frames_clear(out);
	if (err->code == PRB_ERROR_NO_PROCESS) {
		prb_error_destroy(err);
		err = prb_capture_ended(thread);
		out->ended = true;
	}
	struct prb_error *mine = set_error(&out->error, err);
	prb_error_destroy(err);
	return mine;
}

struct prb_error *prb_capture_running(struct prb_capture *c, struct prb_capture_thread *thread)
{
	struct prb_view *view;
	bool slept;

	PRB_TRY(prb_view_create(c->target->mem, &view));

	struct prb_error *err = read_between(c, thread, view, &slept);
	if (!err && !slept) {
		if (c->options->mode == PRB_DUMP_NONBLOCKING)
			err = prb_capture_nonblocking(c, thread);
		else
			err = read_stopped(c, thread, view);
	}
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		prb_capture_detach(c, thread); /* to be read with the others that have none */
	if (err && err->code == PRB_ERROR_PERMISSION) { /* somebody else traces it */
		char **warning = prb_vec_push(&c->dump->warnings);

		if (warning)
			*warning =
				prb_format("%s; it was read without being stopped", err->message);
		bool failed = !warning || !*warning;
		prb_error_destroy(err);
		err = failed ? prb_error_nomem() : prb_capture_nonblocking(c, thread);
	}
	if (err && err->code != PRB_ERROR_NOMEM)
		err = prb_capture_refuse(c, thread, err);
	prb_view_destroy(view);
	return err;
}
