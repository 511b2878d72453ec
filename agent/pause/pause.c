/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/pause/pause.h"

#include <stdio.h>
#include <string.h>

#include "agent/client/connection.h"
#include "agent/inside/export.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/pause/private.h"
#include "agent/trace/stepping.h"

struct prba_pausing prba_pausing = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct prba_pausing *const pausing = &prba_pausing;

/** For readers of this process's memory. */
PRBA_EXPORT struct prb_wire_paused probing_agent_pause = {.version = PRB_WIRE_PAUSED_VERSION};

static int64_t real_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/** Under the lock: the program is stopped, and is to stay so. */
static bool stands(void)
{
	return pausing->held && !pausing->ends;
}

/** Publishes the state to other processes: under the lock, after each change of it. */
static void publish(void)
{
	__atomic_store_n(&probing_agent_pause.paused, 0, __ATOMIC_SEQ_CST);
	if (!stands())
		return;
	probing_agent_pause.pid = pausing->by->pid;
	probing_agent_pause.since_us = pausing->begun_us;
	__atomic_store_n(&probing_agent_pause.paused, 1, __ATOMIC_SEQ_CST);
}

void prba_pause_changed(void)
{
	prba_pause_unlock();
	prba_wake(&pausing->wake);
}

/** Under the lock. */
static void begin_claim(struct prba_connection *c)
{
	pausing->by = c;
	pausing->ends = false;
}

/** Its client does not wait for the pause any more, and it will not begin. */
static bool is_given_up(const struct prba_connection *c)
{
	return atomic_load(&c->job.state) == PRBA_CANCELLED;
}

static void name_client(const struct prba_connection *c, char *ret, size_t size)
{
	if (c->pid > 0)
		snprintf(ret, size, "process %d", (int)c->pid);
	else
		snprintf(ret, size, "a process outside its container");
}

void prba_pause_describe_code(const struct prba_connection *other, char ret[PRBA_PAUSE_REASON])
{
	char name[40];

	name_client(other, name, sizeof(name));
	snprintf(ret, PRBA_PAUSE_REASON, "code of %s is running", name);
}

const char *prba_pause_claim(struct prba_connection *c)
{
	static char text[PRBA_PAUSE_REASON];
	char name[40];
	const char *why = NULL;

	prba_pause_lock();
	if (!pausing->by) {
		begin_claim(c);
	} else if (!pausing->ends && !is_given_up(pausing->by) &&
		   !atomic_load(&pausing->by->gone)) {
		name_client(pausing->by, name, sizeof(name));
		snprintf(text, sizeof(text),
			 pausing->held ? "the process is paused by %s" : "%s is about to pause it",
			 name);
		why = text;
	}
	prba_pause_unlock();
	return why;
}

bool prba_pause_await(struct prba_connection *c)
{
	atomic_store(&c->job.also_wake, &pausing->wake);
	for (;;) {
		uint32_t seen = atomic_load(&pausing->wake);
		bool own;

		prba_pause_lock();
		if (!pausing->by || (!pausing->held && is_given_up(pausing->by)))
			begin_claim(c);
		own = pausing->by == c;
		prba_pause_unlock();
		if (own || is_given_up(c))
			return own;
		prba_wait(&pausing->wake, seen);
	}
}

void prba_pause_disclaim(struct prba_connection *c)
{
	bool had;

	prba_pause_lock();
	had = pausing->by == c;
	if (had)
		pausing->by = NULL;
	prba_pause_unlock();
	if (had)
		prba_wake(&pausing->wake);
}

void prba_pause_explain(const struct prba_connection *c, char ret[PRBA_PAUSE_REASON])
{
	const struct prba_connection *other;
	char name[40];

	*ret = '\0';
	prba_pause_lock();
	other = prba_pause_others_code(c);
	if (other) {
		prba_pause_describe_code(other, ret);
	} else if (c->job.asked == PRBA_PAUSES && pausing->by && pausing->by != c) {
		name_client(pausing->by, name, sizeof(name));
		snprintf(ret, PRBA_PAUSE_REASON, "the pause of %s has not ended", name);
	}
	prba_pause_unlock();
}

void prba_pause_tell(struct prba_connection *c, uint16_t type, const void *data, size_t length)
{
	if (prba_connection_send(c, type, c->job.request, data, length) == PRBA_FULL)
		prba_connection_give_up(c);
}

void prba_pause_open_up(void)
{
	if (!pausing->served || pausing->opened)
		return;
	pausing->opened = true;
	pausing->opened_us = prba_pause_now_us();
	/* A thread that ran now could keep the GIL for its switch interval. */
	pausing->thaw_is_due = pausing->lends;
	if (!pausing->thaw_is_due)
		prba_pause_tell(pausing->by, PRB_WIRE_THAW, NULL, 0);
}

bool prba_pause_end(const struct prba_connection *c, enum prb_wire_outcome how)
{
	bool ends;

	prba_pause_lock();
	/* Its own client may end it before the program is paused. */
	ends = c ? pausing->by == c : stands();
	if (ends && !pausing->ends) {
		pausing->ends = true;
		publish();
		pausing->how = how;
		prba_pause_open_up();
		pausing->until_us = pausing->served ? pausing->opened_us : 0;
	}
	prba_pause_changed();
	return ends;
}

int64_t prba_pause_held_us(void)
{
	int64_t held;

	prba_pause_lock();
	held = stands() ? prba_pause_now_us() - pausing->since_us - pausing->ran_us : -1;
	prba_pause_unlock();
	return held;
}

bool prba_pause_who(int32_t *ret_pid, int64_t *ret_since_us)
{
	bool paused;

	prba_pause_lock();
	paused = stands();
	if (paused) {
		*ret_pid = pausing->by->pid;
		*ret_since_us = pausing->begun_us;
	}
	prba_pause_unlock();
	return paused;
}

bool prba_pause_has_to_end(void)
{
	bool ends;

	prba_pause_lock();
	ends = pausing->ends;
	prba_pause_unlock();
	return ends;
}

const char *prba_pause_request(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	uint8_t payload[PRB_WIRE_RESUMED_SIZE];
	struct prb_wire_frozen said;
	int64_t held = prba_pause_held_us();

	if (prb_wire_get_frozen(frame, &said))
		prba_pause_note_frozen(c, &said);
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

/** Does what is asked for until it has to end; false if Python could not be taken again. */
static bool stand(struct prba_connection *c)
{
	for (;;) {
		uint32_t seen = atomic_load(&pausing->wake);
		bool ends, steps, wanted, taken = true;

		prba_pause_lock();
		ends = pausing->ends;
		steps = pausing->steps && !pausing->stepped;
		wanted = pausing->first != NULL;
		prba_pause_unlock();
		if (ends)
			return true;
		if (steps)
			taken = prba_pause_make_step(c);
		else if (wanted)
			prba_pause_serve_all(c);
		else
			prba_wait(&pausing->wake, seen);
		if (!taken)
			return false;
	}
}

/**
 * Drops the GIL at the end of a pause. A connection that did nothing else has nothing left in the
 * interpreter then: it would have to acquire the GIL again for that, in the way of a pause that
 * begins.
 */
static void let_go(struct prba_connection *c)
{
	if (__atomic_load_n(&c->job.serial, __ATOMIC_SEQ_CST) != 1) {
		prba_python_let_go(&c->job.python);
		return;
	}
	if (prba_python_stops_world())
		prba_python_start_world();
	prba_python_drop(&c->job.python);
	atomic_store(&c->job.present, false);
}

enum prb_wire_outcome prba_pause_hold(struct prba_connection *c)
{
	uint8_t payload[PRB_WIRE_RESUMED_SIZE];
	int64_t held;
	bool taken;

	prba_pause_lock();
	pausing->held = true;
	pausing->holder = (pid_t)syscall(SYS_gettid);
	pausing->since_us = prba_pause_now_us();
	pausing->begun_us = real_us();
	pausing->ran_us = pausing->until_us = 0;
	publish();
	prba_pause_unlock();
	prba_stepping_own(true);
	if (c->job.eval.total_ms)
		atomic_store(&c->job.end_by, prba_now_ms() + c->job.eval.total_ms);
	prba_job_notify();
	prba_pause_tell(c, PRB_WIRE_PAUSED, NULL, 0);
	taken = stand(c);
	prba_stepping_own(false);
	prba_pause_lock();
	pausing->held = false;
	publish();
	if (!taken)
		pausing->how = PRB_WIRE_REFUSED;
	prba_pause_changed();
	/*
	 * Dropping the GIL may wait until another thread has acquired it, so resume the threads
	 * first.
	 */
	if (taken && c->job.freezes)
		prba_pause_tell(c, PRB_WIRE_THAW, NULL, 0);
	held = (pausing->until_us ? pausing->until_us : prba_pause_now_us()) - pausing->since_us -
	       pausing->ran_us;
	if (taken)
		let_go(c);
	prb_wire_put64(payload, (uint64_t)held);
	prba_pause_tell(c, PRB_WIRE_RESUMED, payload, sizeof(payload));
	return pausing->how;
}

void prba_pause_forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	memset(pausing, 0, sizeof(*pausing));
	probing_agent_pause.paused = 0;
	pausing->lock = fresh;
}
