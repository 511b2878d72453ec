/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What threads of autograd do while the thread that trains waits for them: on a GPU, backward
 * is computed by them.
 *
 * Threading: one thread at a time. Ownership: runs are copied.
 */
#ifndef PRB_PROFILE_RECORDING_WORKERS_H
#define PRB_PROFILE_RECORDING_WORKERS_H

#include "profile/recording/recording.h"

/** Their runs, each with the stack that it has in the new recording. */
struct prb_workers {
	PRB_VEC(struct prb_run) runs;
};

/** Whether it is such a thread: torch names them. */
bool prb_worker_is(const struct prb_profile_thread *thread);

/** For prb_workers_split(), when all were added. */
void prb_workers_sort(struct prb_workers *workers);

/**
 * Adds @p run to @p runs. Where a worker ran meanwhile, the piece of time has the worker's stack
 * and its time on a processor.
 */
struct prb_error *prb_workers_split(const struct prb_workers *workers, const struct prb_run *run,
				    struct prb_recording *to) PRB_MUST_CHECK;

void prb_workers_deinit(struct prb_workers *workers);

#endif
