/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Finds the thread that collects garbage while it sleeps. Internal to dump/. */
#ifndef PRB_DUMP_READ_GC_THREAD_H
#define PRB_DUMP_READ_GC_THREAD_H

#include "dump/read/reader.h"

/**
 * Corrects `gc` of the threads of interpreters that collect garbage: where a sleeping thread is
 * found to be the one, no other thread is, although it may hold the GIL by now.
 */
struct prb_error *prb_read_gc_thread(struct prb_reader *r) PRB_MUST_CHECK;

#endif
