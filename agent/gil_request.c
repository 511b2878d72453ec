/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Why this does no harm. Whoever gives the GIL away on request waits until another thread has taken
 * it: for ever if none does. So nothing may be asked for that nobody takes.
 *
 * - The mutex is held from before the request until after its end. So the word `locked` does not
 *   change, nobody takes the GIL, and who wants to give it away comes to wait for the mutex.
 * - Our worker sleeps in the condition variable of those that wait for it. So it is not the holder,
 *   and it takes the GIL as soon as that is free, whoever has it before. What it was asked for in
 *   general the interpreter forgets when a thread takes the GIL, and what one thread was asked for
 *   when that gives it away or takes it again.
 * - Only an interpreter that ends lets a thread go that waits for its GIL: after its switch
 *   interval, without the GIL, and what we asked for would remain. So the request ends with the
 *   mutex, unless who has the GIL waits for that and the interpreter does not end. It cannot begin
 *   to, since only who has the GIL can have it do so. That thread gives it away next, and then our
 *   worker, or another one, takes it.
 *
 * The same bits are set that a thread sets that has waited for long enough, under the same mutex,
 * and in the interpreter of our worker, as it would itself, or in the state of who has the GIL.
 *
 * What others have asked for is taken back while our thread has the GIL, before code of clients
 * runs on it and they stand: it would wait for them. That does no harm either. Who asked waits for
 * the GIL, not for an answer: it is woken when the GIL is given away, and asks again after a switch
 * interval in which nobody was given it. The mutex is held, so that none of them asks just then.
 */
#include "agent/gil_request.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/python.h"
#include "agent/status.h"

enum { BIT = 1 };

/* What was asked for, and what tells whether a thread has the GIL still; NULL: nothing was. */
static _Atomic uint32_t *asked, *locked;

bool prba_gil_is_waited_for(const struct prb_wire_hold *hold, pid_t worker)
{
	enum { HEXADECIMAL = 16 };
	char call[PRBA_STATUS_CALL];
	uint64_t futex;

	prba_status_wait(worker, call);
	futex = strtoull(call + strcspn(call, " "), NULL, HEXADECIMAL);
	return futex >= hold->condition && futex - hold->condition < sizeof(pthread_cond_t);
}

/** Where it is to be set; NULL: nowhere. */
static _Atomic uint32_t *find_word(const struct prb_wire_hold *hold)
{
	uint64_t state = 0;

	if (hold->holder) {
		state = atomic_load((_Atomic uint64_t *)(uintptr_t)hold->holder);
		if (!state)
			return NULL;
	}
	return (_Atomic uint32_t *)(uintptr_t)(state + hold->request);
}

bool prba_gil_request(const struct prb_wire_hold *hold, pid_t worker)
{
	_Atomic uint32_t *word;

	locked = (_Atomic uint32_t *)(uintptr_t)hold->locked;
	if (!hold->request || !locked || !prba_gil_is_waited_for(hold, worker) ||
	    atomic_load(locked) != 1 || prba_python_refusal())
		return false;
	word = find_word(hold);
	if (!word)
		return false;
	if (!(atomic_fetch_or(word, BIT) & BIT))
		asked = word;
	if (hold->breaker)
		atomic_fetch_or((_Atomic uint32_t *)(uintptr_t)hold->breaker, BIT);
	return true;
}

void prba_gil_request_end(bool gives_way)
{
	bool stays = gives_way && !prba_python_refusal();

	/* With the GIL of an interpreter that has ended, the word is gone, too. */
	if (asked && !stays && atomic_load(locked) == 1)
		atomic_fetch_and(asked, ~(uint32_t)BIT);
	asked = NULL;
}

bool prba_gil_take_back(const struct prb_wire_hold *hold, bool *looks)
{
	_Atomic uint32_t *word = find_word(hold);

	if (!word || atomic_load((_Atomic uint32_t *)(uintptr_t)hold->locked) != 1)
		return false;
	*looks = (atomic_fetch_and(word, ~(uint32_t)BIT) & BIT) && hold->breaker;
	return true;
}

void prba_gil_request_forget(void)
{
	asked = NULL;
}
