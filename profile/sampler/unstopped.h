/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Samples of running threads that the kernel took without stopping them (ebpf/ebpf.h): which
 * threads have a clock, and what is believed of a record.
 *
 * A record holds the frames of one instant. The names of its functions are read from the process
 * some milliseconds later, and only where the code object still is the one that the record
 * describes. A stack that fails a check is unreadable, and counted.
 *
 * Threading: one thread at a time. Internal to profile/sampler/. Borrows the reader and what it
 * borrows.
 */
#ifndef PRB_PROFILE_SAMPLER_UNSTOPPED_H
#define PRB_PROFILE_SAMPLER_UNSTOPPED_H

#include "base/error.h"
#include "profile/sampler/ebpf/ebpf.h"
#include "profile/sampler/quiet.h"
#include "profile/sampler/stack.h"

struct prb_unstopped;

/**
 * Starts the clocks of all threads, which tick @p rate times in a second of processor time.
 * PRB_ERROR_UNSUPPORTED where the kernel, this build or that Python does not allow it, with what.
 */
struct prb_error *prb_unstopped_create(struct prb_stack_reader *reader, struct prb_quiet *quiet,
				       double rate, struct prb_unstopped **ret) PRB_MUST_CHECK;
void prb_unstopped_destroy(struct prb_unstopped *unstopped);

/** Adds to the recording what came since the last call; *ret_any: there was something. */
struct prb_error *prb_unstopped_drain(struct prb_unstopped *unstopped, int64_t now,
				      bool *ret_any) PRB_MUST_CHECK;

#endif
