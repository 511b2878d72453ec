/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Threads and programs that only look now and then whether others are done.
 *
 * Threading: any thread.
 */
#ifndef PRB_JUDGE_POLLING_H
#define PRB_JUDGE_POLLING_H

#include <stdbool.h>

#include "dump/model/dump.h"
#include "target/proc/process.h"

/** True if the thread is in a function of a library that only polls. */
bool prb_polling_thread(const struct prb_dump_thread *thread);

/** True for launchers: mpirun, srun. */
bool prb_polling_program(const struct prb_process *process);

#endif
