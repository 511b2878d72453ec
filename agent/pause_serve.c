/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "agent/bootstrap.h"
#include "agent/connection.h"
#include "agent/gil_request.h"
#include "agent/libc.h"
#include "agent/pause.h"
#include "agent/pause_private.h"
#include "agent/python.h"
#include "agent/status.h"

enum { TURN_US = 200, LOOK_US = 50000 };

static struct prba_pausing *const pausing = &prba_pausing;

void prba_pause_open(const struct prba_connection *c)
{
	prba_pause_lock();
	if (pausing->served == c && c->job.serving != PRBA_JOB_RAN)
		prba_pause_open_up();
	prba_pause_unlock();
}

bool prba_pause_note_frozen(struct prba_connection *c, const struct prb_wire_frozen *said)
{
	bool last;

	prba_pause_lock();
	/* Of several, the last one is the answer to what was asked last. */
	last = c->job.unanswered && !--c->job.unanswered && pausing->by == c;
	if (last && pausing->asked) {
		pausing->frozen = true;
		pausing->said = *said;
	}
	prba_pause_changed();
	return last;
}

void prba_pause_send_freeze(struct prba_connection *c, enum prb_wire_freeze which)
{
	uint8_t payload[PRB_WIRE_FREEZE_SIZE];

	c->job.unanswered++;
	prb_wire_put32(payload, which);
	prba_pause_tell(c, PRB_WIRE_FREEZE, payload, sizeof(payload));
}

/** Asks the client to stop the other threads. */
static void ask_to_freeze(struct prba_connection *c, enum prb_wire_freeze which)
{
	bool frozen = false, sent;

	prba_pause_lock();
	sent = !pausing->ends && !pausing->opened;
	if (sent) {
		pausing->asked = true;
		pausing->frozen = false;
		/* Under the lock: the client hears of a thaw after this, if one comes. */
		prba_pause_send_freeze(c, which);
	}
	prba_pause_unlock();
	while (sent && !frozen && !prba_pause_has_to_end()) {
		uint32_t seen = atomic_load(&pausing->wake);

		prba_pause_lock();
		frozen = pausing->frozen;
		prba_pause_unlock();
		if (!frozen && !prba_pause_has_to_end())
			prba_wait(&pausing->wake, seen);
	}
	prba_pause_lock();
	pausing->asked = false;
	prba_pause_unlock();
}

/**
 * Has the client stop the other threads. Those that wait for the GIL are to be stopped where they
 * wait for its mutex, and not in a condition variable: in glibc before 2.41 who signals waits for
 * those that were signalled before. While we hold the mutex they go from the one to the other, when
 * they are woken; those that want the GIL do so without it, too, after each switch interval.
 */
void prba_pause_freeze(struct prba_connection *c)
{
	pthread_mutex_t *mutex;
	pthread_cond_t *wait = NULL, *gave_away;

	prba_pause_lock();
	pausing->said = (struct prb_wire_frozen){.running = 1}; /* at least, until it is known */
	prba_pause_unlock();
	if (!c->job.freezes)
		return;
	ask_to_freeze(c, PRB_WIRE_FREEZE_ALL);
	prba_pause_lock();
	mutex = (pthread_mutex_t *)(uintptr_t)pausing->said.mutex;
	gave_away = (pthread_cond_t *)(uintptr_t)pausing->said.condition;
	/* The client has seen somebody wait there. */
	if (mutex && pausing->gil.mutex == pausing->said.mutex) {
		pausing->gil_is_there = true;
		wait = (pthread_cond_t *)(uintptr_t)pausing->gil.condition;
	}
	prba_pause_unlock();
	if (!mutex)
		return;
	pthread_mutex_lock(mutex);
	if (gave_away)
		pthread_cond_broadcast(gave_away);
	if (wait)
		pthread_cond_broadcast(wait);
	ask_to_freeze(c, PRB_WIRE_FREEZE_ALL_HELD);
	pthread_mutex_unlock(mutex);
}

void prba_pause_set_state(struct prba_connection *c, int state)
{
	prba_pause_lock();
	c->job.serving = state;
	prba_pause_changed();
}

static void wait_for_state(struct prba_connection *c, int state)
{
	bool reached = false;

	while (!reached) {
		uint32_t seen = atomic_load(&pausing->wake);

		prba_pause_lock();
		reached = c->job.serving == state;
		prba_pause_unlock();
		if (!reached)
			prba_wait(&pausing->wake, seen);
	}
}

/** False if it is not known where that is. */
static bool take_request_back(void)
{
	struct prb_wire_hold gil;
	pthread_mutex_t *mutex;
	bool known, taken, looks = false;

	prba_pause_lock();
	gil = pausing->gil;
	known = pausing->gil_is_there && gil.request;
	prba_pause_unlock();
	if (!known)
		return false;
	mutex = (pthread_mutex_t *)(uintptr_t)gil.mutex;
	pthread_mutex_lock(mutex);
	taken = prba_gil_take_back(&gil, &looks);
	pthread_mutex_unlock(mutex);
	if (looks)
		prba_bootstrap_startle();
	return taken;
}

/**
 * Somebody may have asked for the GIL before it was stopped, and who is asked waits until somebody
 * else has had it. So that is taken back before the code runs. Where that cannot be, the worker of
 * the job has the GIL once; and so has any other thread that is let go meanwhile, for at least a
 * switch interval.
 */
static void clear_request(struct prba_connection *c)
{
	if (take_request_back())
		return;
	prba_pause_set_state(c, PRBA_JOB_TAKES_TURN);
	prba_python_lend(pausing->by);
	wait_for_state(c, PRBA_JOB_TOOK_TURN);
	prba_python_take_back(pausing->by);
}

/** The first job that waits; one that was cancelled meanwhile has left by itself. */
static struct prba_connection *next_job(void)
{
	struct prba_connection *c;

	prba_pause_lock();
	c = pausing->ends ? NULL : pausing->first;
	if (c) {
		pausing->first = c->job.next_served;
		c->job.serving = PRBA_JOB_TAKEN;
	}
	pausing->served = c;
	pausing->opened = false;
	prba_pause_unlock();
	return c;
}

static bool was_opened(void)
{
	bool opened;

	prba_pause_lock();
	opened = pausing->opened;
	prba_pause_unlock();
	return opened;
}

bool prba_pause_note_ran(struct prba_connection *c)
{
	bool exact;

	prba_pause_lock();
	c->job.serving = PRBA_JOB_RAN;
	exact = !pausing->opened && !pausing->said.running;
	prba_pause_changed();
	return exact;
}

/**
 * Without a GIL the world is started for it, which the stopped threads do not notice: code that
 * stops the world itself, as the garbage collector does, would wait for its own thread else.
 */
static void serve(struct prba_connection *c)
{
	if (prba_python_stops_world())
		prba_python_start_world();
	prba_pause_set_state(c, PRBA_JOB_RUNS);
	prba_python_serve(c);
	if (prba_python_stops_world())
		prba_python_stop_world();
	prba_pause_lock();
	if (pausing->opened && !pausing->ends)
		pausing->ran_us += prba_pause_now_us() - pausing->opened_us;
	pausing->served = NULL;
	c->job.serving = PRBA_JOB_SERVED;
	prba_pause_changed();
}

void prba_pause_serve_all(struct prba_connection *c)
{
	struct prba_connection *job;
	bool frozen = false;

	while ((job = next_job())) {
		if (!frozen)
			prba_pause_freeze(c);
		if (!frozen && !prba_python_stops_world())
			clear_request(job);
		serve(job);
		frozen = !was_opened();
	}
	if (frozen)
		prba_pause_tell(c, PRB_WIRE_THAW, NULL, 0);
}

/** Under the lock. */
static void enqueue(struct prba_connection *c)
{
	struct prba_connection **at = &pausing->first;

	while (*at)
		at = &(*at)->job.next_served;
	*at = c;
	c->job.next_served = NULL;
	c->job.serving = PRBA_JOB_QUEUED;
}

/** Under the lock: takes it out of the queue, where it still is. */
static void dequeue(struct prba_connection *c)
{
	struct prba_connection **at = &pausing->first;

	while (*at && *at != c)
		at = &(*at)->job.next_served;
	if (*at)
		*at = c->job.next_served;
	c->job.serving = PRBA_JOB_NOT_HANDED;
}

static void take_turn(struct prba_connection *c)
{
	/* The holder lets go first, or both would wait. */
	prba_wait_for(&pausing->wake, atomic_load(&pausing->wake), TURN_US);
	prba_python_take_turn(c);
	prba_pause_set_state(c, PRBA_JOB_TOOK_TURN);
}

void prba_pause_watch(struct prba_connection *c, uint32_t seen)
{
	char before[PRBA_STATUS_CALL], now[PRBA_STATUS_CALL];

	prba_status_wait(pausing->holder, before);
	prba_wait_for(&pausing->wake, seen, LOOK_US);
	prba_status_wait(pausing->holder, now);
	if (*now && !strcmp(before, now))
		prba_pause_open(c);
}

enum prba_served prba_pause_serve(struct prba_connection *c)
{
	atomic_store(&c->job.also_wake, &pausing->wake);
	prba_pause_lock();
	if (!pausing->held || pausing->ends) {
		prba_pause_unlock();
		return PRBA_NOT_PAUSED;
	}
	enqueue(c);
	prba_pause_changed();
	for (;;) {
		uint32_t seen = atomic_load(&pausing->wake);
		bool cancelled = atomic_load(&c->job.state) == PRBA_CANCELLED;
		int state;

		prba_pause_lock();
		state = c->job.serving;
		if (state == PRBA_JOB_SERVED ||
		    (state == PRBA_JOB_QUEUED && (cancelled || !pausing->held))) {
			dequeue(c);
			prba_pause_unlock();
			return state == PRBA_JOB_SERVED ? PRBA_SERVED
			       : cancelled		? PRBA_NOT_SERVED
							: PRBA_NOT_PAUSED;
		}
		prba_pause_unlock();
		if (state == PRBA_JOB_TAKES_TURN)
			take_turn(c);
		else if (state == PRBA_JOB_RUNS && prba_python_stops_world())
			prba_pause_watch(c, seen);
		else
			prba_wait(&pausing->wake, seen);
	}
}
