/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The rows of agent/trace/logpoints.py and agent/trace/calls.py: functions that append one to
 * the rings python.trace_variables and python.trace_event.
 *
 * Threading: the caller holds the GIL.
 */
#ifndef PRB_AGENT_TRACE_LOGPOINTS_H
#define PRB_AGENT_TRACE_LOGPOINTS_H

#include "agent/inside/python_table.h"

enum { PRBA_LOGPOINTS_METHODS = 4 };

/** put_row(function, file, line, name, value, type) and put_span(): False if there can be no ring;
 * span_number(), span_parent(). agent/trace/calls.py says more. */
extern struct prba_method prba_logpoints_methods[PRBA_LOGPOINTS_METHODS];

#endif
