/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file One sample of one thread: its stack, its state, and its counters at that moment.
 *
 * A thread that sleeps is read without being stopped, and proven to have slept on. A running thread
 * is stopped for the time of one copy.
 *
 * Threading: the same thread of ours for all of a recording (a rule of ptrace). Internal to
 * profile/sampler/.
 */
#ifndef PRB_PROFILE_SAMPLER_STACK_H
#define PRB_PROFILE_SAMPLER_STACK_H

#include "target/ptrace/stop.h"
#include "profile/sampler/awaits.h"
#include "profile/sampler/causes.h"
#include "profile/sampler/codes.h"
#include "profile/sampler/pauses.h"
#include "profile/sampler/sample.h"
#include "profile/sampler/subjects.h"

struct prb_stack_reader {
	struct prb_subjects *subjects;
	struct prb_codes *codes;
	struct prb_causes causes;    /**< what threads that sleep wait for */
	struct prb_awaits *awaits;   /**< NULL: without tasks of asyncio */
	struct prb_natives *natives; /**< NULL: Python frames alone */
	struct prb_view *shared; /**< of threads that have slept since before this round, or NULL */
	uint32_t root;		 /**< which all stacks are calls from; 0: none */
	struct prb_py_frames frames;   /**< of the thread that is read, where they are merged */
	int64_t woke;		       /**< when we got our processor for this round of samples */
	struct prb_pauses *pauses;     /**< of each stop; borrowed */
	PRB_VEC(struct prb_stop) late; /**< asked to stop, which they have not done yet */
	uint64_t again;		       /**< stops because the one before came between two frames */
	bool never_stops;	       /**< running threads are sampled in another way */
	bool stale;		       /**< states are not as they were listed */
	pid_t tracer;		       /**< the last that had a thread when it was to be stopped */
	bool tracers;		       /**< there were several */
};

/**
 * Reads the thread number @p index, which was noted just now and has not ended. Errors end the
 * recording: memory, a process that is gone, or that we may not stop threads at all.
 */
struct prb_error *prb_stack_read(struct prb_stack_reader *reader, size_t index,
				 struct prb_stack_sample *ret) PRB_MUST_CHECK;

/** Before a round of samples, of one thread after another. */
void prb_stack_begin_round(struct prb_stack_reader *reader);

/** Frees its members, when the last thread was resumed. */
void prb_stack_end(struct prb_stack_reader *reader);

/**
 * Lets go of the threads that have come to their stop after all: to be called again and again, at
 * intervals of a millisecond, while there are `late` ones. @p all: of all, at the end.
 */
void prb_stack_let_go(struct prb_stack_reader *reader, bool all);

#endif
