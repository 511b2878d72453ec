/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reads data of a running process so that all of it is of one instant.
 *
 * The data is read while the process runs. If a comparison afterwards finds no change, no thread is
 * stopped. Otherwise the running threads are stopped for one copy of the pages that were read, and
 * the data is read from the copy. That is repeated if the data now needs other pages. Data that
 * contradicts itself (PRB_ERROR_BAD_DATA, PRB_ERROR_FAULT) is read again as long as threads run:
 * one of them may have been stopped in the middle of a change.
 */
#ifndef PRB_DUMP_TASKS_CONSISTENT_READ_H
#define PRB_DUMP_TASKS_CONSISTENT_READ_H

#include "base/error.h"
#include "dump/tasks/tasks.h"
#include "target/mem/view.h"
#include "target/target.h"

/** Reads through the view; called several times, each time from the start. */
typedef struct prb_error *prb_read_attempt(void *context);

/**
 * Returns the error of the last attempt. *consistent: the data is of one instant; false if the
 * target keeps changing it, or its threads may not be stopped.
 */
struct prb_error *prb_read_consistent(struct prb_target *t, struct prb_tasks *tasks,
				      struct prb_view *view, prb_read_attempt *attempt,
				      void *context, bool *consistent) PRB_MUST_CHECK;

#endif
