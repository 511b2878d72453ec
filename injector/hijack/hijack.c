/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/hijack/hijack.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/log.h"
#include "target/ptrace/fault_step.h"
#include "target/ptrace/unstopped.h"
#include "base/clock.h"
#include "injector/hijack/mailbox.h"
#include "injector/hijack/run_to.h"

enum {
	SIGNALS_FIRST = 64, /* signals that may come before the stop that was asked for */
	SYSCALL_STOP = SIGTRAP | 0x80,
	ERESTART_RESTARTBLOCK = 516, /* result of a call that the kernel has noted how to go on */
};
static const double step_timeout = 1.0; /* seconds for what takes microseconds */

static struct prb_error *step(struct prb_hijack *b, int request, int signal)
{
	prb_fault_step();
	if (ptrace(request, b->stop.tid, NULL, signal))
		return prb_error_os(errno, "cannot resume thread %d", b->stop.tid);
	return NULL;
}

static struct prb_error *await(struct prb_hijack *b, double deadline, int *status)
{
	struct prb_error *err = prb_stop_await(&b->stop, deadline, true, status);

	if (!b->stop.seized)
		b->changed = false;
	return err;
}

static bool is_event(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP;
}

/* Signals that were on their way are delivered first, as they would have been. */
static struct prb_error *stop_at_event(struct prb_hijack *b, int timeout_ms)
{
	PRB_TRY(prb_stop_ask(&b->stop));
	PRB_TRY(prb_stop_wait(&b->stop, timeout_ms));
	for (int i = 0; b->stop.signal; i++) {
		int signal = b->stop.signal;

		if (i == SIGNALS_FIRST)
			return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
							       "thread %d gets signals without end",
							       b->stop.tid),
					      "try again when the machine is less busy");
		PRB_TRY(prb_stop_ask(&b->stop));
		b->stop.signal = 0;
		PRB_TRY(step(b, PTRACE_CONT, signal));
		b->stop.stopped = false;
		PRB_TRY(prb_stop_wait(&b->stop, timeout_ms));
	}
	return NULL;
}

static struct prb_error *read_state(struct prb_hijack *b)
{
	PRB_TRY(b->arch->save(b->stop.tid, &b->state));
	if (ptrace(PTRACE_GETSIGMASK, b->stop.tid, sizeof(b->state.mask), &b->state.mask))
		return prb_error_os(errno, "cannot read the signal mask of thread %d", b->stop.tid);
	return NULL;
}

/* Reads the state of the thread at its current stop. */
static struct prb_error *look(struct prb_hijack *b)
{
	b->begin = b->stop.begin;
	b->at_event = true;
	if (b->stop.group_stop)
		return prb_error_hint(
			prb_conflict_create("process %d is stopped by job control", b->target->pid),
			"resume it first: kill -CONT %d", b->target->pid);
	return read_state(b);
}

struct prb_error *prb_hijack_take(struct prb_hijack *b, pid_t tid, int timeout_ms)
{
	b->changed = b->at_event = b->stop_signal = false;
	b->earlier_us = 0;
	PRB_TRY(prb_stop_seize_in_turn(tid, &b->stop));
	PRB_TRY(stop_at_event(b, timeout_ms));
	return look(b);
}

struct prb_error *prb_hijack_follow(struct prb_hijack *b, uint64_t address, int timeout_ms,
				    bool *reached)
{
	b->earlier_us += (prb_clock_seconds() - b->begin) * 1e6;
	PRB_TRY(prb_run_to(&b->stop, address, timeout_ms, reached));
	prb_unstopped_extend();
	return look(b);
}

/*
 * Is there room below the red zone in the same mapping? The frame would lie elsewhere if not. The
 * kernel extends the stack of the first thread when it is written to, and keeps a gap of 256 pages
 * (Documentation/admin-guide/kernel-parameters, stack_guard_gap) to what lies below.
 */
static bool has_room(const struct prb_hijack *b, const struct prb_maps *maps)
{
	struct prb_regs regs;

	b->arch->registers(&b->state, &regs);
	const struct prb_map *map = prb_maps_find(maps, regs.value[prb_regs_sp(regs.machine)]);

	return map && map->write &&
	       (map->start <= b->frame.address || !strcmp(map->path, "[stack]"));
}

static struct prb_error *no_room(const struct prb_hijack *b)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
					       "the stack of thread %d has no room for %zu bytes",
					       b->stop.tid, b->frame.size),
			      "nothing was changed in it; try again when it is less deep");
}

/* The maps were read before it stopped: new threads and stacks may exist since. */
static struct prb_error *check_room(struct prb_hijack *b)
{
	struct prb_maps maps;

	if (has_room(b, &b->target->maps))
		return NULL;
	PRB_TRY(prb_target_read_maps(b->target, &maps));
	bool room = has_room(b, &maps);
	prb_maps_deinit(&maps);
	return room ? NULL : no_room(b);
}

static struct prb_error *set_mask(struct prb_hijack *b, uint64_t mask)
{
	prb_fault_step();
	if (ptrace(PTRACE_SETSIGMASK, b->stop.tid, sizeof(mask), &mask))
		return prb_error_os(errno, "cannot set the signal mask of thread %d", b->stop.tid);
	return NULL;
}

/*
 * After a signal frame the kernel has lost the restart of restart_syscall(), which returns EINTR:
 * the frame has to make the call itself again.
 */
static struct prb_error *note_resumed_call(struct prb_hijack *b)
{
	uint8_t code[PRB_CODE_BEFORE];
	struct prb_regs regs;
	uint64_t arguments[6];

	b->state.resumed = 0;
	if (!b->arch->resumed_call || b->arch->call(&b->state, arguments) != SYS_restart_syscall)
		return NULL;
	b->arch->registers(&b->state, &regs);
	struct prb_error *err =
		prb_mail_read(b->memory, regs.pc - sizeof(code), code, sizeof(code));
	if (err)
		return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
	b->state.resumed = b->arch->resumed_call(&b->state, code, b->memory);
	return NULL;
}

/*
 * Lets the thread restart its call, and interrupts it again at once: the result in between shows
 * whether the kernel has noted a restart. Each stop on the way answers what was asked for, so that
 * it is asked for anew.
 */
static struct prb_error *ask_kernel(struct prb_hijack *b, long number)
{
	double deadline = prb_clock_seconds() + step_timeout, begin = b->begin;
	int64_t result = 0;
	int status;

	for (;;) {
		PRB_TRY(step(b, PTRACE_SYSCALL, b->stop.signal));
		PRB_TRY(await(b, deadline, &status));
		if (is_event(status))
			break;
		b->stop.signal = WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status);
		result = 0;
		if (!b->stop.signal)
			PRB_TRY(b->arch->syscall_result(b->stop.tid, &result));
		PRB_TRY(prb_stop_ask(&b->stop));
	}
	b->stop.signal = 0;
	b->stop.group_stop = WSTOPSIG(status) != SIGTRAP;
	PRB_TRY(look(b));
	b->begin = begin;
	b->state.resumed = result == -ERESTART_RESTARTBLOCK ? number : 0;
	return NULL;
}

static struct prb_error *note_call(struct prb_hijack *b)
{
	if (prb_stop_restart_call(&b->stop))
		PRB_TRY(read_state(b));
	PRB_TRY(note_resumed_call(b));
	long number = b->state.resumed || !b->arch->resumable_call
			      ? 0
			      : b->arch->resumable_call(&b->state);
	return number ? ask_kernel(b, number) : NULL;
}

/* The way back is laid before the first step away. */
static struct prb_error *lay_way_back(struct prb_hijack *b)
{
	PRB_TRY(note_call(b));
	b->arch->frame(&b->state, &b->code, &b->frame);
	PRB_TRY(check_room(b));
	struct prb_error *err =
		prb_mail_write(b->memory, b->frame.address, b->frame.bytes, b->frame.size);
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? no_room(b) : err;
}

/*
 * Sets aside stops that arrive although all signals are blocked. False: the thread itself has
 * failed.
 */
static bool set_aside(struct prb_hijack *b, int status)
{
	if (is_event(status))
		return true;
	if (WSTOPSIG(status) != SIGSTOP)
		return false;
	b->stop_signal = true;
	return true;
}

/* Goes on to the next syscall stop; group stops on the way are passed. */
static struct prb_error *to_syscall_stop(struct prb_hijack *b)
{
	double deadline = prb_clock_seconds() + step_timeout;
	int status;

	for (;;) {
		PRB_TRY(step(b, PTRACE_SYSCALL, 0));
		b->at_event = false;
		PRB_TRY(await(b, deadline, &status));
		if (WSTOPSIG(status) == SYSCALL_STOP)
			return NULL;
		b->at_event = true;
		if (!set_aside(b, status))
			return prb_error_create(PRB_ERROR_FAILED,
						"thread %d got signal %d while it was hijacked",
						b->stop.tid, WSTOPSIG(status));
	}
}

static struct prb_error *make_call(struct prb_hijack *b, long number, const uint64_t arguments[6],
				   int64_t *ret, bool maps)
{
	bool first = !b->changed;

	if (first)
		PRB_TRY(lay_way_back(b));
	if (maps && b->frame.store)
		b->frame.next = b->frame.store;
	b->changed = true;
	prb_unstopped_extend();
	PRB_TRY(b->arch->set_syscall(b->stop.tid, &b->state, b->code.gadget, &b->frame, number,
				     arguments));
	if (first)
		PRB_TRY(set_mask(b, UINT64_MAX));
	PRB_TRY(to_syscall_stop(b));
	PRB_TRY(to_syscall_stop(b));
	return b->arch->syscall_result(b->stop.tid, ret);
}

struct prb_error *prb_hijack_syscall(struct prb_hijack *b, long number, const uint64_t arguments[6],
				     int64_t *ret)
{
	return make_call(b, number, arguments, ret, false);
}

/* While the thread is at the call's own frame, the frame would store the address itself. */
struct prb_error *prb_hijack_map(struct prb_hijack *b, int64_t *ret)
{
	const uint64_t arguments[6] = {0, PRB_SCRATCH_SIZE, PROT_READ | PROT_EXEC,
				       MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX};

	PRB_TRY(make_call(b, b->arch->sys_mmap, arguments, ret, true));
	b->frame.next = b->frame.back;
	if (*ret < 0)
		return NULL;
	PRB_TRY(prb_mail_write(b->memory, b->frame.slot, ret, sizeof(*ret)));
	b->frame.next = b->frame.unmap;
	return NULL;
}

struct prb_error *prb_hijack_unmap(struct prb_hijack *b, uint64_t address, int64_t *ret)
{
	const uint64_t arguments[6] = {address, PRB_SCRATCH_SIZE};

	b->frame.next = b->frame.back;
	return make_call(b, b->arch->sys_munmap, arguments, ret, false);
}

/* Looks whether it stopped by itself; then it goes on, unless it has failed. */
static struct prb_error *look_after(struct prb_hijack *b)
{
	int status;
	pid_t got = waitpid(b->stop.tid, &status, __WALL | WNOHANG);

	if (!got)
		return NULL;
	if (got < 0 || !WIFSTOPPED(status)) {
		b->changed = false;
		return prb_stop_lose(&b->stop);
	}
	b->at_event = true;
	if (!set_aside(b, status))
		return prb_error_create(PRB_ERROR_FAILED,
					"thread %d got signal %d while it was hijacked",
					b->stop.tid, WSTOPSIG(status));
	PRB_TRY(step(b, PTRACE_CONT, 0));
	b->at_event = false;
	return NULL;
}

/* Until it has left our code: *refused is why it could not do anything there, or 0. */
static struct prb_error *until_left(struct prb_hijack *b, uint64_t mailbox, double deadline,
				    int64_t *refused)
{
	uint32_t left = 0;

	for (;;) {
		PRB_TRY(prb_mail_read(b->memory, b->frame.nap + offsetof(struct prb_nap, refused),
				      refused, sizeof(*refused)));
		if (*refused)
			return NULL;
		PRB_TRY(prb_mail_read(b->memory,
				      mailbox + offsetof(struct prb_mailbox, hijack_state), &left,
				      sizeof(left)));
		if (left)
			return NULL;
		PRB_TRY(look_after(b));
		if (prb_clock_seconds() > deadline)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_TIMEOUT,
						 "thread %d waits in pthread_create()",
						 b->stop.tid),
				"try again when the machine is less busy");
		sched_yield();
	}
}

/* From wherever it is to a stop from which the kernel restarts calls. */
static struct prb_error *to_event(struct prb_hijack *b, bool running)
{
	double deadline = prb_clock_seconds() + step_timeout;
	int status = 0;

	if (b->at_event)
		return NULL;
	prb_fault_step();
	if (ptrace(PTRACE_INTERRUPT, b->stop.tid, NULL, NULL))
		return prb_error_os(errno, "cannot stop thread %d", b->stop.tid);
	if (!running)
		PRB_TRY(step(b, PTRACE_CONT, 0));
	PRB_TRY(await(b, deadline, &status));
	if (!is_event(status) && WSTOPSIG(status) == SIGSTOP)
		b->stop_signal = true;
	b->at_event = true;
	return NULL;
}

/* Notes whether the thread slept until it gave us up, and is back where it was. */
static struct prb_error *note_whether_back(struct prb_hijack *b, uint64_t mailbox)
{
	struct prb_regs regs;

	PRB_TRY(prb_stop_registers(&b->stop, &regs));
	b->changed = regs.value[b->arch->mailbox_register] == mailbox;
	return NULL;
}

struct prb_error *prb_hijack_run(struct prb_hijack *b, uint64_t code, uint64_t stack,
				 uint64_t mailbox, double timeout, int64_t *refused)
{
	uint64_t start = code + (uint64_t)(b->arch->hijack_code - b->arch->code);

	prb_unstopped_extend();
	PRB_TRY(b->arch->set_hijack(b->stop.tid, &b->state, start, stack, mailbox));
	PRB_TRY(step(b, PTRACE_CONT, 0));
	b->at_event = false;

	struct prb_error *err = until_left(b, mailbox, prb_clock_seconds() + timeout, refused);
	if (err && (!b->stop.seized || b->at_event))
		return err;
	prb_auto_error struct prb_error *late = err;
	PRB_TRY(to_event(b, true));
	if (late) {
		b->changed = false; /* in the middle of pthread_create(): it goes on alone */
		return prb_steal(&late);
	}
	return note_whether_back(b, mailbox);
}

/* Restores the thread's state, in an order in which we may die after any step. */
static struct prb_error *restore(struct prb_hijack *b)
{
	PRB_TRY(to_event(b, false));
	PRB_TRY(b->arch->restore_extended(b->stop.tid, &b->state));
	PRB_TRY(set_mask(b, b->state.mask));
	return b->arch->restore_general(b->stop.tid, &b->state);
}

struct prb_error *prb_hijack_give_back(struct prb_hijack *b, double *pause_us)
{
	struct prb_error *err = NULL;
	bool again = b->stop_signal;

	*pause_us = 0;
	if (!b->stop.seized)
		return NULL;
	prb_unstopped_extend();
	if (b->changed) {
		err = restore(b);
		if (err)
			prb_log("inject", 1, "%s", err->message);
		b->stop.signal = 0;
	}
	b->stop.begin = b->begin;
	prb_stop_end(&b->stop, pause_us);
	*pause_us += b->earlier_us;
	if (again)
		kill(b->target->pid, SIGSTOP);
	return err;
}
