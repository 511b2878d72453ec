/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/pause.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "agent/connection.h"
#include "agent/libc.h"
#include "agent/python.h"

enum { TURN_US = 200 };

/** How far a job is that was handed over. */
enum { NOT_HANDED, QUEUED, TAKES_TURN, TOOK_TURN, RUNS, SERVED };

static struct {
	_Atomic uint32_t wake; /* changes with all that follows */
	pthread_mutex_t lock;
	struct prba_connection *by;		/* who pauses, or is about to */
	struct prba_connection *first, *served; /* that wait to be served, and the one that is */
	bool held;
	bool asked, frozen; /* the client, to stop the other threads; it did what it could */
	uint32_t running;   /* threads that it could not stop */
	uint64_t mutex;	    /* that it wants to be held while it stops them; 0: none */
	bool opened;	    /* they were let go while code ran */
	bool ends;
	enum prb_wire_outcome how;
	uint32_t step_us;
	uint32_t steps; /* so many are through */
	int64_t since_us, ran_us, until_us;
} pausing = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void lock(void)
{
	pthread_mutex_lock(&pausing.lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&pausing.lock);
}

static void changed(void)
{
	unlock();
	prba_wake(&pausing.wake);
}

bool prba_pause_claim(struct prba_connection *c)
{
	bool claimed;

	lock();
	claimed = !pausing.by;
	if (claimed) {
		pausing.by = c;
		pausing.ends = false;
		pausing.step_us = 0;
	}
	unlock();
	return claimed;
}

void prba_pause_disclaim(struct prba_connection *c)
{
	lock();
	if (pausing.by == c)
		pausing.by = NULL;
	unlock();
}

static void tell(struct prba_connection *c, uint16_t type, const void *data, size_t length)
{
	if (prba_connection_send(c, type, c->job.request, data, length) == PRBA_FULL)
		prba_connection_give_up(c);
}

/** Under the lock: the program may run although the holder is at work. */
static void open_up(void)
{
	if (!pausing.served || pausing.opened)
		return;
	pausing.opened = true;
	if (prba_python_stops_world())
		prba_python_start_world();
	else
		tell(pausing.by, PRB_WIRE_THAW, NULL, 0);
}

void prba_pause_open(const struct prba_connection *c)
{
	lock();
	if (pausing.served == c)
		open_up();
	unlock();
}

bool prba_pause_end(const struct prba_connection *c, enum prb_wire_outcome how)
{
	bool ends;

	lock();
	/* Its own client may be tired of it before it stands. */
	ends = c ? pausing.by == c : pausing.held;
	if (ends && !pausing.ends) {
		pausing.ends = true;
		pausing.how = how;
		pausing.until_us = pausing.served ? now_us() : 0;
		open_up();
	}
	changed();
	return ends;
}

int64_t prba_pause_held_us(void)
{
	int64_t held;

	lock();
	held = pausing.held ? now_us() - pausing.since_us - pausing.ran_us : -1;
	unlock();
	return held;
}

/** What the client that pauses says of the other threads. */
static void note_frozen(struct prba_connection *c, const uint8_t *payload)
{
	lock();
	if (pausing.by == c && pausing.asked) {
		pausing.frozen = true;
		pausing.running = prb_wire_get32(payload);
		pausing.mutex = prb_wire_get64(payload + 4);
	}
	changed();
}

static bool has_to_end(void)
{
	bool ends;

	lock();
	ends = pausing.ends;
	unlock();
	return ends;
}

const char *prba_pause_request(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	uint8_t payload[PRB_WIRE_RESUMED_SIZE];
	int64_t held = prba_pause_held_us();

	if (frame->type == PRB_WIRE_FROZEN && frame->length >= PRB_WIRE_FROZEN_SIZE)
		note_frozen(c, frame->payload);
	if (frame->type != PRB_WIRE_RESUME)
		return NULL;
	if (!prba_pause_end(NULL, PRB_WIRE_OK))
		return "the process is not paused";
	prb_wire_put64(payload, (uint64_t)(held > 0 ? held : 0));
	if (prba_connection_send(c, PRB_WIRE_RESUMED, frame->request, payload, sizeof(payload)) ==
	    PRBA_FULL)
		prba_connection_give_up(c);
	return NULL;
}

/** Under the lock, so that the client hears of a thaw after this, if one comes. */
static bool send_freeze(struct prba_connection *c, bool held)
{
	uint8_t payload[PRB_WIRE_FREEZE_SIZE];

	if (pausing.ends || pausing.opened)
		return false;
	pausing.asked = true;
	pausing.frozen = false;
	pausing.mutex = 0;
	prb_wire_put32(payload, held);
	tell(c, PRB_WIRE_FREEZE, payload, sizeof(payload));
	return true;
}

/** Asks the client to stop the other threads, and gives the mutex that it wants to be held. */
static pthread_mutex_t *ask_to_freeze(struct prba_connection *c, bool held)
{
	pthread_mutex_t *mutex;
	bool frozen = false, sent;

	lock();
	sent = send_freeze(c, held);
	unlock();
	if (!sent)
		return NULL;
	while (!frozen && !has_to_end()) {
		uint32_t seen = atomic_load(&pausing.wake);

		lock();
		frozen = pausing.frozen;
		unlock();
		if (!frozen && !has_to_end())
			prba_wait(&pausing.wake, seen);
	}
	lock();
	pausing.asked = false;
	mutex = (pthread_mutex_t *)(uintptr_t)pausing.mutex;
	unlock();
	return mutex;
}

/**
 * Has the client stop the other threads. Those that wait for the GIL are to be stopped where they
 * wait for its mutex, and not in a condition variable: in glibc before 2.41 who signals waits for
 * those that were signalled before. While we hold the mutex they go from the one to the other:
 * those that want the GIL look for it each 5 ms, and those that gave it away are woken.
 */
static void freeze(struct prba_connection *c)
{
	pthread_mutex_t *mutex;

	if (!c->job.freezes) {
		pausing.running = 1; /* at least; who knows */
		return;
	}
	mutex = ask_to_freeze(c, false);
	if (!mutex)
		return;
	pthread_mutex_lock(mutex);
	/* What lies behind it: the condition variable of those that gave the GIL away. */
	pthread_cond_broadcast((pthread_cond_t *)(mutex + 1));
	(void)ask_to_freeze(c, true);
	pthread_mutex_unlock(mutex);
}

static void set_state(struct prba_connection *c, int state)
{
	lock();
	c->job.serving = state;
	changed();
}

static void wait_for_state(struct prba_connection *c, int state)
{
	bool reached = false;

	while (!reached) {
		uint32_t seen = atomic_load(&pausing.wake);

		lock();
		reached = c->job.serving == state;
		unlock();
		if (!reached)
			prba_wait(&pausing.wake, seen);
	}
}

/**
 * Somebody may have asked for the GIL before it was stopped, and who is asked waits until somebody
 * else has had it. So the worker of the job has it once, before its code runs.
 */
static void clear_request(struct prba_connection *c)
{
	set_state(c, TAKES_TURN);
	prba_python_let_go(pausing.by);
	wait_for_state(c, TOOK_TURN);
	prba_python_take_back(pausing.by);
}

/** The first job that waits; one that was cancelled meanwhile has left by itself. */
static struct prba_connection *next_job(void)
{
	struct prba_connection *c;

	lock();
	c = pausing.ends ? NULL : pausing.first;
	if (c) {
		pausing.first = c->job.next_served;
		c->job.serving = RUNS;
	}
	pausing.served = c;
	pausing.opened = false;
	unlock();
	return c;
}

static bool was_opened(void)
{
	bool opened;

	lock();
	opened = pausing.opened;
	unlock();
	return opened;
}

bool prba_pause_is_exact(void)
{
	bool exact;

	lock();
	exact = !pausing.opened && (prba_python_stops_world() || !pausing.running);
	unlock();
	return exact;
}

static void serve(struct prba_connection *c)
{
	prba_python_serve(c);
	lock();
	pausing.served = NULL;
	if (pausing.opened && prba_python_stops_world()) {
		unlock();
		prba_python_stop_world();
		lock();
	}
	c->job.serving = SERVED;
	changed();
}

/** Does the jobs that wait, with the other threads stopped. */
static void serve_all(struct prba_connection *c)
{
	struct prba_connection *job;
	bool frozen = false;

	while ((job = next_job())) {
		if (!frozen && !prba_python_stops_world()) {
			freeze(c);
			clear_request(job);
		}
		serve(job);
		frozen = !was_opened();
	}
	if (frozen && !prba_python_stops_world())
		tell(c, PRB_WIRE_THAW, NULL, 0);
}

/** Lets the program run for a while. */
static bool step(struct prba_connection *c, uint32_t us)
{
	int64_t begin = now_us(), end = begin + us, now = begin;
	bool taken;

	prba_python_let_go(c);
	while (now < end) {
		uint32_t seen = atomic_load(&pausing.wake);

		if (has_to_end())
			break;
		prba_wait_for(&pausing.wake, seen, (uint32_t)(end - now));
		now = now_us();
	}
	taken = prba_python_take(c);
	lock();
	pausing.step_us = 0;
	pausing.steps++;
	pausing.ran_us += now_us() - begin;
	changed();
	return taken;
}

/** Does what is asked for until it has to end; false if Python could not be taken again. */
static bool stand(struct prba_connection *c)
{
	for (;;) {
		uint32_t seen = atomic_load(&pausing.wake), us;
		bool ends, wanted, taken = true;

		lock();
		ends = pausing.ends;
		us = pausing.step_us;
		wanted = pausing.first != NULL;
		unlock();
		if (ends)
			return true;
		if (us)
			taken = step(c, us);
		else if (wanted)
			serve_all(c);
		else
			prba_wait(&pausing.wake, seen);
		if (!taken)
			return false;
	}
}

enum prb_wire_outcome prba_pause_hold(struct prba_connection *c)
{
	uint8_t payload[PRB_WIRE_RESUMED_SIZE];
	int64_t held;
	bool taken;

	lock();
	pausing.held = true;
	pausing.since_us = now_us();
	pausing.ran_us = pausing.until_us = 0;
	unlock();
	if (c->job.eval.total_ms)
		atomic_store(&c->job.end_by, prba_now_ms() + c->job.eval.total_ms);
	prba_job_notify();
	tell(c, PRB_WIRE_PAUSED, NULL, 0);
	taken = stand(c);
	lock();
	pausing.held = false;
	if (!taken)
		pausing.how = PRB_WIRE_REFUSED;
	changed();
	/* Who gives the GIL away may wait until another thread has it, which must not stand then.
	 */
	if (taken && c->job.freezes)
		tell(c, PRB_WIRE_THAW, NULL, 0);
	if (taken)
		prba_python_let_go(c);
	held = (pausing.until_us ? pausing.until_us : now_us()) - pausing.since_us - pausing.ran_us;
	prb_wire_put64(payload, (uint64_t)held);
	tell(c, PRB_WIRE_RESUMED, payload, sizeof(payload));
	return pausing.how;
}

bool prba_pause_step(uint32_t us)
{
	uint32_t before = 0, seen;
	bool held, through;

	lock();
	held = pausing.held && !pausing.ends && !pausing.step_us;
	if (held) {
		pausing.step_us = us ? us : 1;
		before = pausing.steps;
	}
	changed();
	through = !held;
	while (!through) {
		seen = atomic_load(&pausing.wake);
		lock();
		held = pausing.held && !pausing.ends;
		through = pausing.steps != before || !held;
		unlock();
		if (!through)
			prba_wait(&pausing.wake, seen);
	}
	return held;
}

/** Under the lock. */
static void enqueue(struct prba_connection *c)
{
	struct prba_connection **at = &pausing.first;

	while (*at)
		at = &(*at)->job.next_served;
	*at = c;
	c->job.next_served = NULL;
	c->job.serving = QUEUED;
}

/** Under the lock: takes it out of the queue, where it still is. */
static void dequeue(struct prba_connection *c)
{
	struct prba_connection **at = &pausing.first;

	while (*at && *at != c)
		at = &(*at)->job.next_served;
	if (*at)
		*at = c->job.next_served;
	c->job.serving = NOT_HANDED;
}

static void take_turn(struct prba_connection *c)
{
	/* The holder lets go first, or both would wait. */
	prba_wait_for(&pausing.wake, atomic_load(&pausing.wake), TURN_US);
	prba_python_take_turn(c);
	set_state(c, TOOK_TURN);
}

enum prba_served prba_pause_serve(struct prba_connection *c)
{
	atomic_store(&c->job.also_wake, &pausing.wake);
	lock();
	if (!pausing.held || pausing.ends) {
		unlock();
		return PRBA_NOT_PAUSED;
	}
	enqueue(c);
	changed();
	for (;;) {
		uint32_t seen = atomic_load(&pausing.wake);
		bool cancelled = atomic_load(&c->job.state) == PRBA_CANCELLED;
		int state;

		lock();
		state = c->job.serving;
		if (state == SERVED || (state == QUEUED && (cancelled || !pausing.held))) {
			dequeue(c);
			unlock();
			return state == SERVED ? PRBA_SERVED
			       : cancelled     ? PRBA_NOT_SERVED
					       : PRBA_NOT_PAUSED;
		}
		unlock();
		if (state == TAKES_TURN)
			take_turn(c);
		else
			prba_wait(&pausing.wake, seen);
	}
}

void prba_pause_forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	memset(&pausing, 0, sizeof(pausing));
	pausing.lock = fresh;
}
