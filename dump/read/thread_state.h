/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The state of a thread: asleep or not, whether it holds the GIL or waits for it, whether it
 * collects garbage. Internal to dump/.
 */
#ifndef PRB_DUMP_READ_THREAD_STATE_H
#define PRB_DUMP_READ_THREAD_STATE_H

#include "dump/read/reader.h"

/** Fills state, gil, gc, in_c and os_name; notes for a snapshot how the thread was read. */
struct prb_error *prb_read_thread_state(struct prb_reader *r,
					struct prb_reader_thread *thread) PRB_MUST_CHECK;

/**
 * Corrects `gc` of the threads of interpreters that collect garbage: if a sleeping thread is found
 * to collect, the present GIL holder is not the collector.
 */
struct prb_error *prb_read_gc_thread(struct prb_reader *r) PRB_MUST_CHECK;

#endif
