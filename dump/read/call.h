/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The system call that a thread sleeps in, and what it waits for. Internal to dump/. */
#ifndef PRB_DUMP_READ_CALL_H
#define PRB_DUMP_READ_CALL_H

#include "dump/read/reader.h"
#include "target/ptrace/stop.h"

/** Reads the system call that a thread sleeps in, and its registers as shown in /proc. */
struct prb_error *prb_read_call(struct prb_reader *r,
				struct prb_reader_thread *thread) PRB_MUST_CHECK;

/**
 * Fills waits_for from that call. @p mem: the target's memory, or a view of an instant at which the
 * thread slept in the call.
 */
struct prb_error *prb_read_wait(struct prb_reader *r, struct prb_reader_thread *thread,
				struct prb_mem *mem) PRB_MUST_CHECK;

/**
 * Repeats the two if the thread's state is newer than the call that was read. A thread that still
 * sleeps in the same call (in the registers of @p stop: slept) is not read twice. @p stop: NULL if
 * it is not stopped.
 */
struct prb_error *prb_read_moment(struct prb_reader *r, struct prb_reader_thread *thread,
				  const struct prb_stop *stop) PRB_MUST_CHECK;

#endif
