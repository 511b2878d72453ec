/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/age.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

/* The kernel notes a thread's start in ticks; the threads go on when the agent has begun. */
static const double NEAR = 1;

/** Seconds since what the stat file is of was started; negative: unknown. */
static double age_of(const char *stat)
{
	struct prb_stat parsed;

	return prb_stat_parse(stat, &parsed) ? prb_proc_age(parsed.start_ticks) : -1;
}

double prb_agent_age(struct prb_target *t)
{
	static const char name[] = "(probing-agent)";
	prb_auto_str struct prb_str threads = {};
	double age = -1;
	char *end;

	if (!t->live || !t->local)
		return -1;
	prb_error_destroy(prb_target_list(t, &threads, "task"));
	for (const char *at = prb_str_text(&threads); *at && age < 0; at = *end ? end + 1 : end) {
		prb_auto_str struct prb_str stat = {};

		prb_error_destroy(
			prb_target_read_file(t, &stat, "task/%ld/stat", strtol(at, &end, 10)));
		if (strstr(prb_str_text(&stat), name))
			age = age_of(prb_str_text(&stat));
	}
	return age;
}

bool prb_agent_interrupted(struct prb_target *t, double age, double idle)
{
	prb_auto_str struct prb_str stat = {};

	if (age < 0 || idle < 0 || idle > age + NEAR || idle < age - NEAR)
		return false;
	prb_error_destroy(prb_target_read_file(t, &stat, "stat"));
	return age_of(prb_str_text(&stat)) > age + 2 * NEAR;
}
