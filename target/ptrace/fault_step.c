/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/ptrace/fault_step.h"

#ifdef PRB_FAULT_STEPS
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

static long number(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

void prb_fault_step(void)
{
	static long step;

	if (++step != number("PROBING_FAULT_STEP", 0))
		return;
	prb_log("inject", 1, "this is fault step %ld", step);
	kill((pid_t)number("PROBING_FAULT_PID", getpid()),
	     (int)number("PROBING_FAULT_SIGNAL", SIGKILL));
}
#endif
