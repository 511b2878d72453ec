/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/freeze.h"

#include "control/client.h"
#include "target/target.h"

/** The agent has sent more: it waits for no answer, since the pause ends or the code is opened. */
static bool agent_goes_on(void *agent)
{
	return prb_agent_has_more(agent);
}

void prb_freeze_stop(struct prb_freeze *f, const struct prb_wire_frame *frame,
		     uint8_t at[PRB_WIRE_FROZEN_SIZE])
{
	struct prb_wire_frozen frozen = {.running = 1};
	struct prb_wire_freeze freeze = {.how = PRB_WIRE_FREEZE_ALL};
	bool mutex_is_held, hold;

	(void)prb_wire_get_freeze(frame, &freeze);
	mutex_is_held = freeze.how == PRB_WIRE_FREEZE_ALL_HELD;
	hold = !mutex_is_held && prb_stop_threads_waits_for_gil(f->target->pid, &f->gil);

	prb_stop_threads_end(&f->stopped);
	f->stopped.is_over = agent_goes_on;
	f->stopped.context = f->agent;
	f->stopped.ours = freeze.ids;
	f->stopped.ours_count = freeze.count;
	if (!hold)
		frozen.running =
			prb_stop_threads_waiting(&f->stopped, f->target, &f->gil, mutex_is_held);
	if (!hold && !mutex_is_held && frozen.running && f->stopped.at_gil) {
		prb_stop_threads_end(&f->stopped);
		hold = true;
	}
	if (hold) {
		frozen.mutex = f->gil.mutex;
		frozen.condition = f->gil.condition;
		frozen.switch_condition = f->gil.switch_condition;
	}
	prb_wire_put_frozen(at, &frozen);
}

void prb_freeze_thaw(struct prb_freeze *f)
{
	prb_stop_threads_end(&f->stopped);
}
