/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The rows of agent/logpoints.py: a function that appends one to the ring
 * python.trace_variables.
 *
 * Threading: the caller holds the GIL.
 */
#ifndef PRB_AGENT_LOGPOINTS_H
#define PRB_AGENT_LOGPOINTS_H

#include "agent/python_table.h"

/** put_row(function, file, line, name, value, type): False if there can be no ring. */
extern struct prba_method prba_logpoints_method;

#endif
