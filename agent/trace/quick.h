/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Measuring calls from Python 3.12 on: when each of them begins and ends is noted here, and
 * Python code of ours runs only for those that took long. agent/trace/monitoring.py has the use.
 *
 * Threading: the interpreter's threads call in, with the GIL or, in free-threaded builds, without.
 */
#ifndef PRB_AGENT_TRACE_QUICK_H
#define PRB_AGENT_TRACE_QUICK_H

#include "agent/inside/python_table.h"

enum { PRBA_QUICK_METHODS = 4 };

/** quick_watch(), quick_guard(), quick_end(), quick_counts(): see monitoring.py. */
extern struct prba_method prba_quick_methods[PRBA_QUICK_METHODS];

/** In a child after fork(): the threads that were in here are gone. */
void prba_quick_forked(void);

#endif
