/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The threads of a process that is sampled: which there are, and which Python states they
 * run.
 *
 * Threads and their states start and exit. prb_subjects_refresh() finds the changes; the sampler
 * calls it when there are signs of some (see prb_subjects_changed()).
 *
 * Threading: one thread at a time. Internal to profile/sampler/. Borrows the target and the
 * recording.
 */
#ifndef PRB_PROFILE_SAMPLER_SUBJECTS_H
#define PRB_PROFILE_SAMPLER_SUBJECTS_H

#include "base/error.h"
#include "base/vec.h"
#include "python/python.h"
#include "target/mem/view.h"
#include "target/target.h"
#include "dump/tasks/tasks.h"
#include "profile/native/natives.h"
#include "profile/recording/recording.h"

/** A state that a thread runs Python with; it may have one in each of several interpreters. */
struct prb_subject_state {
	struct prb_python *py;
	struct prb_py_thread thread;
	uint64_t kept_at; /**< where the thread keeps it; 0 if unknown */
};

/** A thread, with its counters at its last sample. */
struct prb_subject {
	pid_t tid;
	uint32_t number; /**< in the recording */
	PRB_VEC(struct prb_subject_state) states;
	struct prb_view *view; /**< of its stack; NULL until it is needed */
	unsigned reads;	       /**< through that view */
	struct prb_native_thread native;
	bool asleep;	       /**< it was, for certain, when its counters were noted */
	bool held;	       /**< it was stopped when its counters were noted */
	bool unmoved;	       /**< they are still the same for this sample, as is known already */
	bool watched;	       /**< its counters are looked at for each sample (quiet.h), */
	int64_t watched_until; /**< for so long */
	bool ended;
	bool refused; /**< another tracer had it at the last attempt to stop it */
	struct prb_task_times times;
	int64_t seen;		/**< when it was sampled last */
	int64_t unplaced;	/**< time on a processor that no sample has yet */
	int64_t unplaced_queue; /**< the same of time in the run queue */
	int64_t queued;	  /**< time in the run queue that samples have, and counters had not yet */
	size_t run;	  /**< its last run in the recording, plus one; 0: none */
	uint32_t stack;	  /**< of its last sample; 0: there was none */
	uint32_t wait;	  /**< what it waited for then */
	bool gil;	  /**< it held the GIL then */
	uint32_t drained; /**< samples by the kernel that are there, and not added yet, */
	int64_t drained_ran; /**< and `times.ran` at the last of them */
	enum prb_run_state state;
	bool ran;	      /**< a sample found it on a processor */
	uint32_t cpu_stack;   /**< the last that did */
	uint32_t queue_stack; /**< the last that found it in the run queue; 0: none did */
	struct prb_subject_before {
		int64_t at; /**< when the sample was added */
		struct prb_task_times times;
		int64_t unplaced, unplaced_queue, queued;
	} before; /**< as it was before its last sample, which may be worth nothing */
};

struct prb_subjects {
	struct prb_target *target;
	struct prb_recording *recording;
	uint32_t process; /**< its number there */
	struct prb_modules *modules;
	struct prb_pythons pythons;
	struct prb_view *view; /**< of what all threads share */
	struct prb_tasks tasks;
	PRB_VEC(struct prb_subject) list; /**< of the same length and order as the tasks */
	int folder;			  /**< /proc/PID/task */
	bool begun;			  /**< threads that are new from now on began now */
	bool starts;			  /**< the process began just now: Python may come later */
	int64_t since;			  /**< when it began, if so */
	int64_t search_at;		  /**< when it is looked for again */
	uint64_t changes;		  /**< how often the list was not the same as before */
	bool shares;	 /**< there were very many threads: later ones have one row, */
	uint32_t shared; /**< with this number in the recording */
};

/** Finds Python, which there need not be where C frames are recorded, and all threads, and notes
 * their counters. The result is to be ended always. */
struct prb_error *prb_subjects_begin(struct prb_subjects *subjects, struct prb_target *target,
				     struct prb_recording *recording,
				     uint32_t process) PRB_MUST_CHECK;

/** As above, for a process that was started for this: all that its threads use from their beginning
 * on counts, and Python need not be there yet. */
struct prb_error *prb_subjects_begin_started(struct prb_subjects *subjects,
					     struct prb_target *target,
					     struct prb_recording *recording,
					     uint32_t process) PRB_MUST_CHECK;
void prb_subjects_end(struct prb_subjects *subjects);

/** True if there are more or fewer threads than are known. Costs one system call. */
bool prb_subjects_changed(const struct prb_subjects *subjects);

/** True if it is time to look for Python again, which may come later and was not there yet. */
bool prb_subjects_search_is_due(const struct prb_subjects *subjects, int64_t now);

/** Lists threads and their states anew. PRB_ERROR_NO_PROCESS if the process is gone. */
struct prb_error *prb_subjects_refresh(struct prb_subjects *subjects, int64_t now) PRB_MUST_CHECK;

/** Some time after it began, and before the first sample: threads and their counters as they are
 * now. */
struct prb_error *prb_subjects_renew(struct prb_subjects *subjects) PRB_MUST_CHECK;

#endif
