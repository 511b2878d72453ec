/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/flight_ask.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cluster/looks/flight.h"
#include "cluster/jobs/groups.h"
#include "target/target.h"

/*
 * A recorder has a mutex, which a thread may never release: seconds that one rank has for its
 * answer, and all ranks of a machine together.
 */
static const double EACH = 1, ALL = 2;

/** The recorder of gloo does not know the members of groups; torch's Python code does. */
static struct prb_error *add_groups(struct prb_target *target, struct prb_flight *flight)
{
	struct prb_groups groups = {};
	struct prb_error *err = prb_groups_read(target, NULL, &groups);
	const struct prb_group *group;

	prb_vec_each (group, &groups.list)
		if (!err && group->name && group->members)
			err = prb_flight_add_members(flight, group->name, group->members);
	prb_groups_deinit(&groups);
	return err;
}

static struct prb_error *ask_target(struct prb_target *target, struct prb_seen *seen,
				    double seconds)
{
	PRB_TRY(prb_flight_read(target, seconds, &seen->flight, &seen->no_flight));
	return seen->flight ? add_groups(target, seen->flight) : NULL;
}

static struct prb_error *ask(struct prb_watch *watch, struct prb_seen *seen, double seconds)
{
	prb_auto_target struct prb_target *target = NULL;

	if (watch && watch->target)
		return ask_target(watch->target, seen, seconds);

	prb_auto_error struct prb_error *gone = prb_target_open_process(seen->rank->pid, &target);
	if (gone)
		return prb_str_copy(gone->message, &seen->no_flight);
	return ask_target(target, seen, seconds);
}

static bool had_no_agent(const struct prb_seen *seen)
{
	return seen->no_flight && !strcmp(seen->no_flight, PRB_FLIGHT_NO_AGENT);
}

struct prb_error *prb_round_ask_recorders(struct prb_round *round, struct prb_watch *watches,
					  const struct prb_round *before)
{
	double began = prb_clock_seconds();

	for (size_t i = 0; i < round->list.count; i++) {
		struct prb_seen *seen = &round->list.items[i];
		double left = ALL - (prb_clock_seconds() - began);

		if (!seen->main)
			continue;
		/* No thread of it can answer. */
		if (seen->state == 'T' || seen->state == 't')
			PRB_TRY(prb_str_copy("the process is stopped", &seen->no_flight));
		else if (before && had_no_agent(&before->list.items[i]))
			PRB_TRY(prb_str_copy(PRB_FLIGHT_NO_AGENT, &seen->no_flight));
		else if (left <= 0)
			PRB_TRY(prb_str_copy("other ranks took all the time for it",
					     &seen->no_flight));
		else
			PRB_TRY(ask(watches ? &watches[i] : NULL, seen, PRB_MIN(left, EACH)));
	}
	return NULL;
}
