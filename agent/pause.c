/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/pause.h"

#include <string.h>

#include "agent/connection.h"
#include "agent/libc.h"
#include "agent/pause_private.h"
#include "agent/python.h"

struct prba_pausing prba_pausing = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct prba_pausing *const pausing = &prba_pausing;

void prba_pause_changed(void)
{
	prba_pause_unlock();
	prba_wake(&pausing->wake);
}

bool prba_pause_claim(struct prba_connection *c)
{
	bool claimed;

	prba_pause_lock();
	claimed = !pausing->by;
	if (claimed) {
		pausing->by = c;
		pausing->ends = false;
		pausing->gil = (struct prb_wire_hold){};
		pausing->gil_is_there = false;
	}
	prba_pause_unlock();
	return claimed;
}

void prba_pause_disclaim(struct prba_connection *c)
{
	prba_pause_lock();
	if (pausing->by == c)
		pausing->by = NULL;
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
	prba_pause_tell(pausing->by, PRB_WIRE_THAW, NULL, 0);
}

bool prba_pause_end(const struct prba_connection *c, enum prb_wire_outcome how)
{
	bool ends;

	prba_pause_lock();
	/* Its own client may be tired of it before it stands. */
	ends = c ? pausing->by == c : pausing->held;
	if (ends && !pausing->ends) {
		pausing->ends = true;
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
	held = pausing->held ? prba_pause_now_us() - pausing->since_us - pausing->ran_us : -1;
	prba_pause_unlock();
	return held;
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
		prba_pause_end_hold(prba_pause_note_frozen(c, &said) && said.gives_way);
	prba_pause_hold_mutex(c, frame);
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

enum prb_wire_outcome prba_pause_hold(struct prba_connection *c)
{
	uint8_t payload[PRB_WIRE_RESUMED_SIZE];
	int64_t held;
	bool taken;

	prba_pause_lock();
	pausing->held = true;
	pausing->since_us = prba_pause_now_us();
	pausing->ran_us = pausing->until_us = 0;
	prba_pause_unlock();
	if (c->job.eval.total_ms)
		atomic_store(&c->job.end_by, prba_now_ms() + c->job.eval.total_ms);
	prba_job_notify();
	prba_pause_tell(c, PRB_WIRE_PAUSED, NULL, 0);
	taken = stand(c);
	prba_pause_lock();
	pausing->held = false;
	if (!taken)
		pausing->how = PRB_WIRE_REFUSED;
	prba_pause_changed();
	/* Who gives the GIL away may wait until another thread has it, which must not stand then.
	 */
	if (taken && c->job.freezes)
		prba_pause_tell(c, PRB_WIRE_THAW, NULL, 0);
	held = (pausing->until_us ? pausing->until_us : prba_pause_now_us()) - pausing->since_us -
	       pausing->ran_us;
	if (taken)
		prba_python_end_pause(c);
	prb_wire_put64(payload, (uint64_t)held);
	prba_pause_tell(c, PRB_WIRE_RESUMED, payload, sizeof(payload));
	return pausing->how;
}

void prba_pause_forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	memset(pausing, 0, sizeof(*pausing));
	prba_pause_forget_hold();
	pausing->lock = fresh;
}
