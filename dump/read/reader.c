/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum { STACK_LIMIT = 8 << 20 /* bytes of a native stack copied at once */ };

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

void prb_reader_deinit(struct prb_reader *r)
{
	struct prb_reader_thread *thread;

	prb_reader_share(r, NULL);
	prb_vec_each (thread, &r->threads)
		prb_reader_clear(thread);
	prb_vec_free(&r->threads);
	prb_vec_each (thread, &r->others)
		prb_reader_clear(thread);
	prb_vec_free(&r->others);
	prb_wait_context_destroy(r->waits);
	prb_tasks_deinit(&r->tasks);
	prb_view_destroy(r->view);
	prb_native_destroy(r->native);
}

/* The thread may have released or acquired the GIL since threads were listed. */
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

/* The decoder shared by all threads, made for the first one. */
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

/*
 * Stopped in the middle of a call or return, the chain of frames is invalid or, while the eval loop
 * is being entered (up to 3.12), seems empty. A thread may really have no Python frames, so an
 * empty chain is only doubted a few times.
 */
bool prb_reader_is_between(struct prb_reader_thread *thread, int attempt)
{
	enum { DOUBTS = 4 };

	if (!thread->py)
		return false;
	if (thread->doubt == PRB_NATIVE_BARE_LOOP) {
		/* A thread with the same pc has not run on yet. */
		thread->doubts += thread->doubt_pc != thread->regs.pc;
		thread->doubt_pc = thread->regs.pc;
		if (thread->doubts >= DOUBTS)
			thread->doubt = PRB_NATIVE_SWITCHED;
		return true;
	}
	return thread->frames_error || (!thread->frames.list.count && attempt < DOUBTS);
}

/*
 * Lets the thread run on a little, which is the only remedy. On a busy machine it must get a
 * processor first: its counters show when it did.
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

struct prb_error *prb_reader_ended(const struct prb_reader_thread *thread)
{
	return prb_error_create(PRB_ERROR_NO_PROCESS,
				thread->task && thread->task->state == 'Z'
					? "it has ended, and the process goes on without it"
					: "it ended while it was read");
}

/* An ended thread, or one that cannot be stopped, gets an error of its own; the dump goes on. */
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
