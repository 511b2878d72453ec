/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file One process that is sampled, as its present program and its earlier ones.
 *
 * Threading: the same thread of ours for all of a recording (a rule of ptrace). Internal to
 * profile/sampler/. Errors are what prevents its recording, memory, and the disk.
 */
#ifndef PRB_PROFILE_SAMPLER_PROCESS_H
#define PRB_PROFILE_SAMPLER_PROCESS_H

#include <time.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"
#include "profile/sampler/quiet.h"
#include "profile/recording/recording.h"
#include "profile/sampler/stack.h"
#include "profile/sampler/unstopped.h"

/** An earlier program of the process, for the names of its functions. */
struct prb_sampled_past {
	struct prb_target *target; /**< NULL: borrowed */
	struct prb_natives *natives;
};

struct prb_sampled {
	/* Set by the caller. */
	struct prb_recording *recording;
	uint32_t number;  /**< of the process in the recording */
	pid_t pid;	  /**< of the process */
	pid_t tid;	  /**< only this thread; 0: all */
	bool native;	  /**< C frames too */
	double ebpf_rate; /**< of samples by the kernel; 0: threads that run are stopped */
	bool live;	  /**< there is a live view: C frames get their names at once */
	bool tasks;	  /**< with the tasks of asyncio */
	bool modules;	  /**< modules of torch are told apart */
	bool starts;	  /**< it began just now: all it uses counts, Python may come later */
	bool follows;	  /**< another program that it runs is sampled further */
	bool named;	  /**< it is the outermost frame of its stacks */
	bool descends;	  /**< another one of the recording is its parent, or a parent of that */
	unsigned *images; /**< numbers for images, of all processes of the recording */
	struct prb_pauses *pauses;
	struct prb_target *borrowed; /**< NULL: one is opened */

	struct prb_target *target;
	PRB_VEC(struct prb_sampled_past) past;
	struct prb_subjects subjects;
	struct prb_quiet quiet;
	struct prb_codes *codes;
	struct prb_awaits *awaits;	 /**< NULL: without tasks */
	struct prb_natives *natives;	 /**< NULL: Python frames alone */
	struct prb_unstopped *unstopped; /**< NULL: threads that run are stopped */
	struct prb_stack_reader reader;
	int64_t refresh_from, refresh_until; /**< when the next listing may be, and must be */
	bool ran_any, ended_any, stateless_ran, drained; /**< in this round */
	bool over;					 /**< no more of it is sampled */
	bool left_out;					 /**< it runs, but could not be read */
	clockid_t clock;
	int64_t cpu_begin, cpu_now;	      /**< of the whole process; begin < 0: unknown */
	int64_t children_begin, children_now; /**< of the children that it has waited for */
};

/** Notes its command line. A process that has ended has none: what was noted before stays. */
struct prb_error *prb_sampled_name(struct prb_sampled *p) PRB_MUST_CHECK;

/** Looks at it, and notes its counters. The result is to be ended always. */
struct prb_error *prb_sampled_begin(struct prb_sampled *p) PRB_MUST_CHECK;

/** It could not begin: from now on only its clock is read, while it runs. */
void prb_sampled_leave_out(struct prb_sampled *p);

/** Some time later: notes its threads and all counters anew. */
struct prb_error *prb_sampled_renew(struct prb_sampled *p) PRB_MUST_CHECK;

/** For a process that was left out: notes its CPU time, and whether it has ended. */
void prb_sampled_note_left_out(struct prb_sampled *p);

/** Notes what its children have used that it has waited for, all of which have ended. */
void prb_sampled_note_children(struct prb_sampled *p);

/** The recording begins at @p now. */
void prb_sampled_start(struct prb_sampled *p, int64_t now);

enum prb_sampled_state { PRB_SAMPLED_RUNS, PRB_SAMPLED_ENDED, PRB_SAMPLED_EXEC };

/** Samples all its threads once; @p woke is when we got our processor for that. */
struct prb_error *prb_sampled_round(struct prb_sampled *p, int64_t woke,
				    enum prb_sampled_state *ret) PRB_MUST_CHECK;

/** From now on C frames are read too, or not any more. */
struct prb_error *prb_sampled_switch_native(struct prb_sampled *p, bool native) PRB_MUST_CHECK;

/** The recording is to have all samples that were taken. */
struct prb_error *prb_sampled_settle(struct prb_sampled *p) PRB_MUST_CHECK;

/** Attributes CPU time without a sample to the last place of each thread. */
struct prb_error *prb_sampled_finish(struct prb_sampled *p) PRB_MUST_CHECK;

/** Lets go of its threads; what names are made from stays. */
void prb_sampled_stop(struct prb_sampled *p);

/** Moves the C code that it was met in to @p places. */
struct prb_error *prb_sampled_hand_over(struct prb_sampled *p,
					struct prb_native_places *places) PRB_MUST_CHECK;

/** After that, when it is over: ends all that no names are made from. */
void prb_sampled_shrink(struct prb_sampled *p);
void prb_sampled_end(struct prb_sampled *p);

#endif
