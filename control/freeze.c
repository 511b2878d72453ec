/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/freeze.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "control/agent_client.h"
#include "base/checked.h"

/* When it is looked again: soon while nobody was seen to wait. Who is woken begins anew to wait for
 * 5 ms before it asks for the GIL, so later once some were stopped, and each time by more where
 * nobody else does so for it. */
enum { SOON_NS = 1000000, LATER_NS = 8000000, LATEST_NS = 100000000 };

/* For how long threads stand aside: if it takes longer, they may be what is waited for. */
static const double ASIDE_SECONDS = 0.5;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/** 0: not at all. */
static void look_after(struct prb_freeze *f, long ns)
{
	struct itimerspec when = {.it_value.tv_nsec = ns};

	if (f->timer >= 0)
		timerfd_settime(f->timer, 0, &when, NULL);
}

struct prb_error *prb_freeze_open(struct prb_freeze *f)
{
	f->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return f->timer < 0 ? prb_error_os(errno, "cannot make a timer") : NULL;
}

void prb_freeze_want(struct prb_freeze *f)
{
	f->wanted = now();
	f->delay_ns = SOON_NS;
}

/** Whether who has the GIL can be asked for it; writes the request to hold its mutex. */
static bool put_hold(struct prb_freeze *f, uint8_t at[PRB_WIRE_HOLD_SIZE])
{
	const struct prb_gil_words *words = &f->gil.words;
	struct prb_wire_hold hold = {.mutex = f->gil.mutex, .condition = f->gil.condition};
	bool can_request = f->agent_requests && prb_gil_can_request(words, f->target->mem);

	if (can_request) {
		hold.locked = words->locked;
		hold.request = words->request;
		hold.breaker = words->breaker;
		hold.holder = words->breaker ? 0 : words->holder;
	}
	prb_wire_put_hold(at, &hold);
	return can_request;
}

/** Whether others wait for it, who has it. */
static bool has_to_be_held(struct prb_freeze *f)
{
	pid_t holder;

	return prb_still_others_wait(&f->still, f->target->pid, &f->gil) &&
	       prb_gil_holder(&f->gil.words, f->target, &f->tasks, &holder);
}

bool prb_freeze_prepare(struct prb_freeze *f, uint8_t at[PRB_WIRE_HOLD_SIZE])
{
	pid_t holder;

	/* Whose threads are listed here need not be while the mutex is held. */
	return put_hold(f, at) && prb_gil_holder(&f->gil.words, f->target, &f->tasks, &holder);
}

bool prb_freeze_look(struct prb_freeze *f, uint8_t at[PRB_WIRE_HOLD_SIZE])
{
	if (f->wanted == 0 || now() - f->wanted > ASIDE_SECONDS) {
		prb_freeze_thaw(f);
		return false;
	}
	look_after(f, f->delay_ns);
	/* One that comes too early, or while the agent holds it, does nothing. */
	if (put_hold(f, at))
		return true;
	f->delay_ns = PRB_MIN(f->delay_ns * 2, LATEST_NS);
	if (!has_to_be_held(f))
		return false;
	look_after(f, LATER_NS);
	return true;
}

/** It does not wait for an answer any more: the pause ends, or the threads are to run for code. */
static bool agent_goes_on(void *agent)
{
	return prb_agent_has_more(agent);
}

/** Looks for a while whether a thread waits for the GIL: one that runs for an instant does not. */
static bool is_waited_for(const struct prb_freeze *f)
{
	enum { LOOKS = 5, NAP_NS = 500000 };

	for (int i = 0; i < LOOKS; i++) {
		if (prb_still_waits_for_gil(f->target->pid, &f->gil))
			return true;
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	}
	return false;
}

/** Stops the other threads, or has the agent see to it first that they can be. */
static struct prb_wire_frozen stop_all(struct prb_freeze *f, bool mutex_is_held)
{
	pid_t pid = f->target->pid;
	bool hold = !mutex_is_held && prb_still_waits_for_gil(pid, &f->gil);
	uint32_t running = 1;

	prb_still_end(&f->still);
	f->still.is_over = agent_goes_on;
	f->still.context = f->agent;
	if (!hold)
		running = prb_still_waiting(&f->still, pid, &f->gil, mutex_is_held);
	if (!hold && !mutex_is_held && running && is_waited_for(f)) {
		prb_still_end(&f->still);
		hold = true;
	}
	return (struct prb_wire_frozen){running, hold ? f->gil.mutex : 0,
					hold ? f->gil.switch_condition : 0};
}

void prb_freeze_stop(struct prb_freeze *f, enum prb_wire_freeze which,
		     uint8_t at[PRB_WIRE_FROZEN_SIZE])
{
	struct prb_wire_frozen frozen = {};

	if (which == PRB_WIRE_FREEZE_WAITING) {
		f->delay_ns = PRB_MAX(f->delay_ns, LATER_NS);
		look_after(f, f->delay_ns);
		/* The agent may have it by now: who is stopped then would stand for nothing. */
		if (f->wanted == 0 || !prb_still_aside(&f->still, f->target, &f->tasks, &f->gil))
			prb_freeze_thaw(f); /* as it is without us */
		frozen.gives_way = f->still.gives_way;
	} else {
		frozen = stop_all(f, which == PRB_WIRE_FREEZE_ALL_HELD);
	}
	prb_wire_put_frozen(at, &frozen);
}

void prb_freeze_thaw(struct prb_freeze *f)
{
	f->wanted = 0;
	look_after(f, 0);
	prb_still_end(&f->still);
}

void prb_freeze_deinit(struct prb_freeze *f)
{
	prb_still_end(&f->still);
	prb_tasks_deinit(&f->tasks);
	if (f->timer >= 0)
		close(f->timer);
	f->timer = -1;
}
