/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file States of threads of this process, read from /proc. Any thread may call this. */
#ifndef PRB_AGENT_INSIDE_STATUS_H
#define PRB_AGENT_INSIDE_STATUS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	PRBA_STATUS_VALUE = 64, /* more than any that is asked for */
	PRBA_STATUS_PROCESS = 0,
	PRBA_STATUS_CALL = 200,
};

/**
 * The value of @p field ("State") of thread @p tid of this process, or of its first one; "" and
 * false if it is not known.
 */
bool prba_status_read(int tid, const char *field, char ret[PRBA_STATUS_VALUE]);

/** The system call in which thread @p tid waits for a lock, with its arguments; "": it does not. */
void prba_status_wait(int tid, char ret[PRBA_STATUS_CALL]);

/** Reads the beginning of a file into @p text, which gets terminated; "" if it cannot be read. */
void prba_status_text(const char *path, char *text, size_t size);

#endif
