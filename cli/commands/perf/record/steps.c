/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/record/steps.h"

#include "base/cleanup.h"
#include "rings/last_step.h"
#include "target/spec/target_spec.h"

bool prb_performance_steps(pid_t pid, int64_t since, struct prb_store_step *ret)
{
	prb_auto_error struct prb_error *err = NULL;
	struct prb_last_step last = {.number = -1};
	prb_auto_target struct prb_target *target = NULL;

	err = prb_target_open_process(pid, &target);
	if (err)
		return false;
	err = prb_last_step(target, since, &last);
	*ret = (struct prb_store_step){last.number, last.ended, last.longest};
	return !err && last.number >= 0;
}
