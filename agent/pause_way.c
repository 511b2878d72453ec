/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How who pauses is the next one to have the GIL, of many that want it.
 *
 * Python gives it to any of those that wait for it, each time that one of them has waited for 5 ms:
 * of 16 that never rest, each has it after 80 ms, if it is lucky. So the client stops them while
 * our worker waits, too. They wait in a condition variable, where none may be stopped: in glibc
 * before 2.41 who signals waits for those that were signalled before. While its mutex is held,
 * those that are woken come to wait for that, and nobody gets or gives away the GIL, so that the
 * client can tell who has it. That one is asked for it meanwhile, as by who has waited for 5 ms,
 * which begin anew for all that are woken (gil_request.c).
 */
#include <string.h>

#include "agent/connection.h"
#include "agent/gil_request.h"
#include "agent/libc.h"
#include "agent/life.h"
#include "agent/pause.h"
#include "agent/pause_private.h"
#include "agent/python.h"

enum {
	LOCK_US = 2000,
	COME_US = 1000,
	LOOK_US = 20,
	HOLD_US = 50000, /* who has the GIL may want to give it away, and cannot meanwhile */
	FREE = 0,
	CONTENDED = 2,
};

static struct prba_pausing *const pausing = &prba_pausing;

/* The server's thread: the mutex that is held, NULL: none, and until when at most. */
static _Atomic uint32_t *held;
static int64_t held_until_us;

/**
 * Locks a mutex of glibc by its first word alone, within some time. It has no owner then, so that
 * an interpreter that just ends may destroy it: who finds an owner there aborts the program.
 */
static bool lock(_Atomic uint32_t *word)
{
	int64_t until = prba_pause_now_us() + LOCK_US, left = LOCK_US;

	if (atomic_load(word) > CONTENDED)
		return false;
	while (left > 0) {
		if (atomic_exchange(word, CONTENDED) == FREE)
			return true;
		prba_wait_for(word, CONTENDED, (uint32_t)left);
		left = until - prba_pause_now_us();
	}
	return false;
}

static void unlock(_Atomic uint32_t *word)
{
	if (atomic_exchange(word, FREE) == CONTENDED)
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void set_wants(struct prba_connection *c, bool wants)
{
	prba_pause_lock();
	/* Or it was given up meanwhile, and another client pauses. */
	if (pausing->by == c) {
		pausing->holder = (pid_t)syscall(SYS_gettid);
		pausing->wants = wants && c->job.freezes;
	}
	if (c->job.freezes)
		prba_pause_tell(c, wants ? PRB_WIRE_WANTS : PRB_WIRE_THAW, NULL, 0);
	prba_pause_unlock();
}

void prba_pause_want(struct prba_connection *c)
{
	set_wants(c, true);
}

void prba_pause_got(struct prba_connection *c)
{
	set_wants(c, false);
}

/** Under the lock. */
static bool is_wanted(const struct prba_connection *c)
{
	return pausing->by == c && pausing->wants;
}

/** The thread for which a mutex may be held; 0: it may not. */
static pid_t may_hold_for(const struct prba_connection *c)
{
	pid_t worker;

	prba_pause_lock();
	worker = is_wanted(c) ? pausing->holder : 0;
	prba_pause_unlock();
	/*
	 * While the worker is about to take the GIL, the interpreter that it is of does not end. If
	 * that is not known, it is gone with its program, unless that may begin another one.
	 */
	return !held && (prba_life_is_known() || !prba_life_is_embedded()) && !prba_python_refusal()
		       ? worker
		       : 0;
}

static bool is_coming(const struct prba_connection *c)
{
	bool comes;

	prba_pause_lock();
	comes = pausing->by == c && !pausing->held;
	prba_pause_unlock();
	return comes;
}

/**
 * The same, once that thread is seen to wait for the GIL: the addresses are right then, and it may
 * be asked for. The client may be faster than the worker, but not by much.
 */
static pid_t see_waiting(const struct prba_connection *c, const struct prb_wire_hold *hold)
{
	static _Atomic uint32_t nobody;
	int64_t until = prba_pause_now_us() + COME_US;

	while (is_coming(c)) {
		pid_t worker = may_hold_for(c);

		if (worker && prba_gil_is_waited_for(hold, worker))
			return worker;
		if (held || prba_pause_now_us() >= until)
			break;
		prba_wait_for(&nobody, 0, LOOK_US);
	}
	return 0;
}

/** For when the GIL is had: code of others is run then. */
static void note(const struct prba_connection *c, const struct prb_wire_hold *hold)
{
	prba_pause_lock();
	if (pausing->by == c) {
		pausing->gil_is_there &= !memcmp(&pausing->gil, hold, sizeof(*hold));
		pausing->gil = *hold;
	}
	prba_pause_unlock();
}

void prba_pause_hold_mutex(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	struct prb_wire_hold hold;
	_Atomic uint32_t *mutex;
	pid_t worker;
	bool wants;

	if (!prb_wire_get_hold(frame, &hold) || !hold.mutex || !hold.condition)
		return;
	note(c, &hold);
	worker = hold.request ? see_waiting(c, &hold) : may_hold_for(c);
	if (!worker)
		return;
	mutex = (_Atomic uint32_t *)(uintptr_t)hold.mutex;
	if (!lock(mutex))
		return;
	held = mutex;
	held_until_us = prba_pause_now_us() + HOLD_US;
	/* The client waits for whoever was asked; in a moment it tries again. */
	if (hold.request && !prba_gil_request(&hold, worker)) {
		prba_pause_end_hold(false);
		return;
	}
	pthread_cond_broadcast((pthread_cond_t *)(uintptr_t)hold.condition);
	prba_pause_lock();
	/* It may have come to its turn meanwhile, and the client has let all go. */
	wants = is_wanted(c);
	if (wants) {
		pausing->gil_is_there |= hold.request != 0;
		prba_pause_send_freeze(c, PRB_WIRE_FREEZE_WAITING);
	}
	prba_pause_unlock();
	if (!wants)
		prba_pause_end_hold(false);
}

void prba_pause_end_hold(bool gives_way)
{
	if (held) {
		prba_gil_request_end(gives_way);
		unlock(held);
	}
	held = NULL;
}

int prba_pause_look_after(void)
{
	enum { US_OF_MS = 1000 };
	int64_t left = held ? held_until_us - prba_pause_now_us() : -1;

	if (held && left <= 0)
		prba_pause_end_hold(false);
	return held ? (int)(left / US_OF_MS) + 1 : -1;
}

void prba_pause_forget_hold(void)
{
	prba_gil_request_forget();
	held = NULL;
}
