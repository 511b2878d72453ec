/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reading something of a process that runs so that all of it is of one instant.
 *
 * It is read while the process runs; if what was read has not changed when it is looked at again,
 * that was it, and nothing was stopped. Else the threads that run are stopped for the time of one
 * copy of the pages that were read, and it is read from those, some times if it leads elsewhere by
 * then. Data that contradicts itself (PRB_ERROR_BAD_DATA, PRB_ERROR_FAULT) is read again as long as
 * threads run: one of them may have been caught half-way through a change.
 */
#ifndef PRB_DUMP_TASKS_CONSISTENT_READ_H
#define PRB_DUMP_TASKS_CONSISTENT_READ_H

#include "base/error.h"
#include "dump/tasks/tasks.h"
#include "target/mem/view.h"
#include "target/target.h"

/** Reads through the view; called several times, each call anew. */
typedef struct prb_error *prb_read_attempt(void *context);

/**
 * Gives the error of the last attempt. *consistent: it is of one instant; false where the target
 * goes on changing what is read, or its threads may not be stopped.
 */
struct prb_error *prb_read_consistent(struct prb_target *t, struct prb_tasks *tasks,
				      struct prb_view *view, prb_read_attempt *attempt,
				      void *context, bool *consistent) PRB_MUST_CHECK;

#endif
