/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How who pauses is the next one to have the GIL, of many that want it. */
#include "agent/connection.h"
#include "agent/libc.h"
#include "agent/life.h"
#include "agent/pause.h"
#include "agent/pause_private.h"
#include "agent/python.h"

enum {
	LOCK_US = 10000,
	HOLD_US = 20000, /* who has the GIL may want to give it away, and cannot meanwhile */
	FREE = 0,
	CONTENDED = 2,
};

static struct prba_pausing *const pausing = &prba_pausing;

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

/**
 * Python gives the GIL to any of those that wait for it, each time that one has waited for 5 ms: of
 * 16 that never rest, one has it after 80 ms, if it is lucky. So they are stopped meanwhile. They
 * wait in a condition variable, where none may be stopped: in glibc before 2.41 who signals waits
 * for those that were signalled before. While we hold its mutex those that we wake come to wait for
 * that, and nobody gets or gives away the GIL, so that the client can tell who has it.
 */
void prba_pause_make_way(struct prba_connection *c)
{
	_Atomic uint32_t *mutex = (_Atomic uint32_t *)(uintptr_t)c->job.gil_mutex;
	pthread_cond_t *condition = (pthread_cond_t *)(uintptr_t)c->job.gil_condition;

	if (!mutex || !condition || prba_python_refusal())
		return;
	/* Another one may begin in the same place while we hold what was the last one's. */
	if (!prba_life_is_known() && prba_life_is_embedded())
		return;
	atomic_store(&c->job.also_wake, &pausing->wake);
	if (!lock(mutex))
		return;
	pthread_cond_broadcast(condition);
	prba_pause_ask_to_freeze(c, PRB_WIRE_FREEZE_WAITING, HOLD_US);
	unlock(mutex);
}

void prba_pause_end_way(struct prba_connection *c)
{
	if (c->job.gil_mutex)
		prba_pause_tell(c, PRB_WIRE_THAW, NULL, 0);
}
