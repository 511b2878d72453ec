/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/gil_locks.h"

#include <pthread.h>

/* One structure since 3.7; before that, static variables that only symbols locate. */
struct prb_gil_locks prb_gil_locks(const struct prb_python *py, const struct prb_interp *interp)
{
	enum {
		CONDITION = 32,
		MUTEX = CONDITION + sizeof(pthread_cond_t),
		SWITCH_CONDITION = MUTEX + sizeof(pthread_mutex_t),
		SWITCH_MUTEX = SWITCH_CONDITION + sizeof(pthread_cond_t),
	};
	uint64_t gil = interp->gil;

	if (py->layout.free_threaded)
		return (struct prb_gil_locks){.known = true};
	if (gil)
		return (struct prb_gil_locks){true, gil + CONDITION, gil + MUTEX,
					      gil + SWITCH_CONDITION, gil + SWITCH_MUTEX};
	if (!py->gil_cond || !py->gil_mutex || !py->switch_cond || !py->switch_mutex)
		return (struct prb_gil_locks){};
	return (struct prb_gil_locks){true, py->gil_cond, py->gil_mutex, py->switch_cond,
				      py->switch_mutex};
}
