/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A thread asleep in a system call shows its pc and sp in /proc. */
static void take_registers(struct prb_reader *r, struct prb_reader_thread *thread,
			   const struct prb_task *task)
{
	if (!r->native || !task->pc || !task->sp || !r->target->live)
		return;
	/* The debugger has provided all registers. */
	if (r->target->held && thread->regs.known)
		return;
	thread->regs = (struct prb_regs){.machine = r->target->machine, .pc = task->pc};
	prb_regs_set(&thread->regs, prb_regs_sp(r->target->machine), task->sp);
	prb_target_note_registers(r->target, task->tid, &thread->regs);
}

static struct prb_error *set_wait(struct prb_reader *r, struct prb_reader_thread *thread,
				  const struct prb_wait *wait)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);

	thread->futex = wait->futex;
	out->enders = wait->enders;
	free(out->waits_for);
	return prb_wait_words(wait, &out->waits_for);
}

/* The input of prb_task_read_call(): a thread outside of any system call. */
static struct prb_task no_call(const struct prb_task_watch *task)
{
	return (struct prb_task){.tid = task->tid, .state = task->state, .syscall = -1};
}

struct prb_error *prb_read_call(struct prb_reader *r, struct prb_reader_thread *thread)
{
	thread->call = no_call(thread->task);
	PRB_TRY(prb_task_read_call(r->target, &thread->call));
	take_registers(r, thread, &thread->call);
	return NULL;
}

struct prb_error *prb_read_wait(struct prb_reader *r, struct prb_reader_thread *thread,
				struct prb_mem *mem)
{
	struct prb_wait wait;

	if (r->options->no_waits || !thread->task)
		return NULL;
	PRB_TRY(prb_wait_describe(r->waits, mem, &thread->call, &wait));

	struct prb_error *err = set_wait(r, thread, &wait);
	prb_wait_deinit(&wait);
	return err;
}

static bool same_call(const struct prb_task *a, const struct prb_task *b)
{
	return a->state == b->state && a->in_syscall == b->in_syscall && a->syscall == b->syscall &&
	       a->sp == b->sp && !memcmp(a->args, b->args, sizeof(a->args));
}

struct prb_error *prb_read_moment(struct prb_reader *r, struct prb_reader_thread *thread,
				  const struct prb_stop *stop)
{
	struct prb_task before = thread->call;

	if (!thread->task)
		return NULL;
	/* A thread stopped by SIGSTOP keeps that state. */
	if (stop && !stop->group_stop)
		thread->task->state = prb_stop_slept(stop) ? 'S' : 'R';
	thread->call = no_call(thread->task);
	if (r->options->no_waits)
		return NULL;
	PRB_TRY(prb_task_read_call(r->target, &thread->call));
	/* Some kernels show no system call of a stopped thread. */
	if (stop && !thread->call.in_syscall)
		prb_stop_call(stop, &thread->call);
	return same_call(&thread->call, &before) ? NULL : prb_read_wait(r, thread, r->target->mem);
}
