/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/urgent.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

void prb_urgent_begin(struct prb_urgent *ret)
{
	enum { HIGHEST = -20 };

	ret->slack = prctl(PR_GET_TIMERSLACK);
	errno = 0;
	ret->priority = getpriority(PRIO_PROCESS, 0);
	ret->raised = !errno && !setpriority(PRIO_PROCESS, 0, HIGHEST);
	/* Or the kernel would wake us together with whatever it has to wake anyway. */
	prctl(PR_SET_TIMERSLACK, 1);
}

void prb_urgent_end(const struct prb_urgent *urgent)
{
	if (urgent->slack > 0)
		prctl(PR_SET_TIMERSLACK, urgent->slack);
	if (urgent->raised)
		setpriority(PRIO_PROCESS, 0, urgent->priority);
}
