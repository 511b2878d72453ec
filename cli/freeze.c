/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/freeze.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* For how long threads are set aside: if it takes longer, they may be what is waited for. */
enum { ASIDE_NS = 250000000 };

static void limit(struct prb_freeze *f, long ns)
{
	struct itimerspec when = {.it_value.tv_nsec = ns};

	if (f->limit >= 0)
		timerfd_settime(f->limit, 0, &when, NULL);
}

struct prb_error *
prb_freeze_offer(struct prb_freeze *f, uint8_t at[PRB_WIRE_PAUSE_GIL_SIZE - PRB_WIRE_PAUSE_SIZE])
{
	pid_t holder;

	memset(at, 0, PRB_WIRE_PAUSE_GIL_SIZE - PRB_WIRE_PAUSE_SIZE);
	if (!prb_still_waits_for_gil(f->target->pid, &f->gil) ||
	    !prb_gil_holder(&f->gil.words, f->target, &f->tasks, &holder))
		return NULL;
	f->limit = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (f->limit < 0)
		return prb_error_os(errno, "cannot set a limit for stopped threads");
	prb_wire_put64(at, f->gil.mutex);
	prb_wire_put64(at + 8, f->gil.condition);
	return NULL;
}

/** Stops the other threads, or has the agent see to it first that they can be. */
static struct prb_wire_frozen stop_all(struct prb_freeze *f, bool mutex_is_held)
{
	enum { TRIES = 5 }; /* who runs for an instant is not seen to wait */
	pid_t pid = f->target->pid;
	bool hold = false;
	uint32_t running = 1;

	for (int i = 0; running && !hold && i < TRIES; i++) {
		prb_still_end(&f->still);
		hold = !mutex_is_held && prb_still_waits_for_gil(pid, &f->gil);
		if (!hold)
			running = prb_still_waiting(&f->still, pid, &f->gil, mutex_is_held);
	}
	return (struct prb_wire_frozen){running, hold ? f->gil.mutex : 0,
					hold ? f->gil.switch_condition : 0};
}

void prb_freeze_stop(struct prb_freeze *f, enum prb_wire_freeze which,
		     uint8_t at[PRB_WIRE_FROZEN_SIZE])
{
	struct prb_wire_frozen frozen = {};

	if (which == PRB_WIRE_FREEZE_WAITING) {
		prb_still_end(&f->still);
		limit(f, ASIDE_NS);
		prb_still_aside(&f->still, f->target, &f->tasks, &f->gil);
	} else {
		frozen = stop_all(f, which == PRB_WIRE_FREEZE_ALL_HELD);
	}
	prb_wire_put_frozen(at, &frozen);
}

void prb_freeze_thaw(struct prb_freeze *f)
{
	limit(f, 0);
	prb_still_end(&f->still);
}

void prb_freeze_deinit(struct prb_freeze *f)
{
	prb_still_end(&f->still);
	prb_tasks_deinit(&f->tasks);
	if (f->limit >= 0)
		close(f->limit);
	f->limit = -1;
}
