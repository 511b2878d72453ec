/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What the kernel says of our threads in their status files. Any thread. */
#ifndef PRB_AGENT_STATUS_H
#define PRB_AGENT_STATUS_H

#include <stdbool.h>

enum {
	PRBA_STATUS_VALUE = 64, /* more than any that is asked for */
	PRBA_STATUS_PROCESS = 0,
};

/**
 * The value of @p field ("State") of thread @p tid of this process, or of its first one; "" and
 * false if it is not known.
 */
bool prba_status_read(int tid, const char *field, char ret[PRBA_STATUS_VALUE]);

#endif
