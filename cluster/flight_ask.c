/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cluster/flight.h"
#include "cluster/look.h"
#include "target/target.h"

/* A recorder has a mutex, which a thread may hold for ever: seconds that one rank has for its
 * answer, and all ranks of a machine together. */
static const double EACH = 1, ALL = 2;

static struct prb_error *ask(struct prb_seen *seen, double seconds)
{
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_error struct prb_error *gone = prb_target_open_process(seen->rank->pid, &target);

	if (gone)
		return prb_str_copy(gone->message, &seen->no_flight);
	return prb_flight_read(target, seconds, &seen->flight, &seen->no_flight);
}

struct prb_error *prb_round_ask_recorders(struct prb_round *round)
{
	double began = prb_clock_seconds();
	struct prb_seen *seen;

	prb_vec_each (seen, &round->list) {
		double left = ALL - (prb_clock_seconds() - began);

		if (!seen->main)
			continue;
		/* No thread of it can answer. */
		if (seen->state == 'T' || seen->state == 't')
			PRB_TRY(prb_str_copy("the process is stopped", &seen->no_flight));
		else if (left <= 0)
			PRB_TRY(prb_str_copy("other ranks took all the time for it",
					     &seen->no_flight));
		else
			PRB_TRY(ask(seen, PRB_MIN(left, EACH)));
	}
	return NULL;
}
