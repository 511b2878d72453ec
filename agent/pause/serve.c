/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "agent/client/connection.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/inside/status.h"
#include "agent/inside/thread.h"
#include "agent/pause/pause.h"
#include "agent/pause/private.h"

enum { LOOK_US = 50000 };

static struct prba_pausing *const pausing = &prba_pausing;

void prba_pause_open(const struct prba_connection *c)
{
	prba_pause_lock();
	if (pausing->served == c && c->job.serving != PRBA_JOB_RAN)
		prba_pause_open_up();
	prba_pause_unlock();
}

void prba_pause_note_frozen(struct prba_connection *c, const struct prb_wire_frozen *said)
{
	bool last;

	prba_pause_lock();
	/* Each request is answered once, in order: only the last answer is to the last request. */
	last = c->job.unanswered && !--c->job.unanswered && pausing->by == c;
	if (last && pausing->asked) {
		pausing->frozen = true;
		pausing->said = *said;
	}
	prba_pause_changed();
}

/** Under the lock. */
static void send_freeze(struct prba_connection *c, enum prb_wire_freeze_how how)
{
	uint8_t payload[PRB_WIRE_FREEZE_SIZE];
	struct prb_wire_freeze freeze = {.how = how};

	c->job.unanswered++;
	freeze.ids = (uint64_t)(uintptr_t)prba_thread_ids(&freeze.count);
	prb_wire_put_freeze(payload, &freeze);
	prba_pause_tell(c, PRB_WIRE_FREEZE, payload, sizeof(payload));
}

/** Asks the client to stop the other threads. */
static void ask_to_freeze(struct prba_connection *c, enum prb_wire_freeze_how how)
{
	bool frozen = false, sent;

	prba_pause_lock();
	sent = !pausing->ends && !pausing->opened;
	if (sent) {
		pausing->asked = true;
		pausing->frozen = false;
		/* Under the lock: the client hears of a thaw after this, if one comes. */
		send_freeze(c, how);
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

static void signal_all(uint64_t condition)
{
	if (condition)
		pthread_cond_broadcast((pthread_cond_t *)(uintptr_t)condition);
}

/**
 * Makes the client stop the other threads. A thread must not be stopped in a condition variable of
 * the GIL: in glibc before 2.41 a signal waits for threads that were signalled before. While we
 * hold the GIL's mutex, the waiters that we wake come out of the condition variables and wait for
 * the mutex, where they can be stopped. CPython takes that for a spurious wakeup.
 */
void prba_pause_freeze(struct prba_connection *c)
{
	struct prb_wire_frozen said;
	pthread_mutex_t *mutex;

	prba_pause_lock();
	pausing->said = (struct prb_wire_frozen){.running = 1}; /* at least, until it is known */
	prba_pause_unlock();
	if (!c->job.freezes)
		return;
	ask_to_freeze(c, PRB_WIRE_FREEZE_ALL);
	prba_pause_lock();
	said = pausing->said;
	prba_pause_unlock();
	if (!said.mutex)
		return;
	mutex = (pthread_mutex_t *)(uintptr_t)said.mutex;
	pthread_mutex_lock(mutex);
	signal_all(said.switch_condition);
	signal_all(said.condition);
	ask_to_freeze(c, PRB_WIRE_FREEZE_ALL_HELD);
	pthread_mutex_unlock(mutex);
}

void prba_pause_set_state(struct prba_connection *c, int state)
{
	prba_pause_lock();
	c->job.serving = state;
	prba_pause_changed();
}

/** Waits until the job has left @p state; returns the state that it has then. */
static int wait_past(struct prba_connection *c, int state)
{
	int now = state;

	while (now == state) {
		uint32_t seen = atomic_load(&pausing->wake);

		prba_pause_lock();
		now = c->job.serving;
		prba_pause_unlock();
		if (now == state)
			prba_wait(&pausing->wake, seen);
	}
	return now;
}

/**
 * Before the GIL is lent: from now on no stopped thread is resumed, if all are stopped. False if
 * they were resumed already.
 */
static bool begin_to_lend(void)
{
	bool opened;

	prba_pause_lock();
	opened = pausing->opened;
	pausing->lends = !opened && !pausing->said.running;
	prba_pause_unlock();
	return !opened;
}

static void end_lending(void)
{
	prba_pause_lock();
	pausing->lends = false;
	if (pausing->thaw_is_due)
		prba_pause_tell(pausing->by, PRB_WIRE_THAW, NULL, 0);
	pausing->thaw_is_due = false;
	prba_pause_unlock();
}

/**
 * A thread may have set gil_drop_request before it was stopped. CPython would wait, when the code
 * drops the GIL, until another thread has acquired it, and clears the request then. So the worker
 * of the job acquires the GIL once before the code runs. A thread that could not be stopped may
 * acquire it as well.
 */
static void clear_request(struct prba_connection *c)
{
	if (!begin_to_lend())
		return;
	prba_pause_set_state(c, PRBA_JOB_ENTERS);
	if (wait_past(c, PRBA_JOB_ENTERS) == PRBA_JOB_ENTERED) {
		prba_python_lend(&pausing->by->job.python);
		wait_past(c, PRBA_JOB_ENTERED);
		prba_python_take_back(&pausing->by->job.python);
	} else {
		prba_pause_lock();
		prba_pause_open_up();
		prba_pause_unlock();
	}
	end_lending();
}

/** The first waiting job; a job that was cancelled meanwhile has left the queue by itself. */
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
	c->job.serve(c);
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
	bool entered = prba_python_enter(&c->job.python);

	prba_pause_set_state(c, entered ? PRBA_JOB_ENTERED : PRBA_JOB_SHUT_OUT);
	if (!entered)
		return;
	prba_python_take_turn(&c->job.python);
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

enum prba_served prba_pause_serve(struct prba_connection *c, void (*run)(struct prba_connection *c))
{
	atomic_store(&c->job.also_wake, &pausing->wake);
	prba_pause_lock();
	if (!pausing->held || pausing->ends) {
		prba_pause_unlock();
		return PRBA_NOT_PAUSED;
	}
	c->job.serve = run;
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
		if (state == PRBA_JOB_ENTERS)
			take_turn(c);
		else if (state == PRBA_JOB_RUNS && prba_python_stops_world())
			prba_pause_watch(c, seen);
		else
			prba_wait(&pausing->wake, seen);
	}
}
