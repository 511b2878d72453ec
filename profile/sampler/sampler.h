/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Makes a recording of a live process, from outside.
 *
 * Only threads that run are stopped, each for tens of microseconds; sleeping threads are read in
 * place, and threads that have not run since the last look are not read at all. Nothing is loaded
 * into the process, nothing stays in it, and when we die at any moment it runs on.
 *
 * Threading: all from the thread that calls. Errors are what prevents a recording from beginning,
 * memory, and the disk; what goes wrong with single threads is in the recording.
 */
#ifndef PRB_PROFILE_SAMPLER_SAMPLER_H
#define PRB_PROFILE_SAMPLER_SAMPLER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "target/target.h"
#include "profile/sampler/live.h"
#include "profile/recording/recording.h"
#include "profile/store/write/store.h"

struct prb_profile_options {
	double seconds;	       /**< how long; 0: until the process ends */
	double rate;	       /**< samples a second of each thread, on average */
	const char *condition; /**< that the store was given, or NULL */
	double around;	       /**< seconds */
	double ring;	       /**< seconds of it that the store keeps, at least; 0: all */
	bool ebpf;    /**< the kernel samples threads that run, without stops: Python frames only */
	bool native;  /**< C frames too, of all threads; Python need not be there */
	bool source;  /**< with the source lines that ran, and some around them */
	bool tasks;   /**< with the tasks of asyncio, for a view of them (tasks_view.h) */
	bool modules; /**< what runs a module of torch is told apart by the module */
	pid_t tid;    /**< only this thread; 0: all */
	const char *command; /**< of the process, for people; NULL if unknown */
	/** Other processes, which are the same recording; borrowed. */
	struct prb_target *const *others;
	size_t others_count;
	/** Their names instead of their command lines, borrowed; or NULL. */
	char *const *names;
	/** Asked for the children of a process from time to time, to be recorded too; or NULL. The
	 * caller frees *ret. */
	struct prb_error *(*children)(void *context, pid_t pid, pid_t **ret, size_t *ret_count);
	/** Where it is written meanwhile, or NULL; the recording has no runs then. */
	struct prb_store *store;
	/** A live viewer, or NULL; the recording has no runs then, and is given also
	 * after an error, since the viewer shares its strings. */
	struct prb_live *live;
	/** With `live`: asked between samples whether C frames are read; or NULL. */
	bool (*wants_native)(void *context);
	/**
	 * Free while no thread is held; its owner may stop threads meanwhile, and the sampler
	 * waits. Or NULL.
	 */
	pthread_mutex_t *gate;
	/** Called once samples are taken, and the store's file can be read; or NULL. */
	void (*begun)(void *context);
	/** Called about once a second, between samples, with the cost so far; or NULL. */
	void (*progress)(const struct prb_recording *recording);
	/** Asked between samples, and when a signal came: whether to end now. */
	bool (*cancelled)(void *context);
	/** Asked when C frames are to get their names at the end, and before each: whether the rest
	 * is to stay without; `unnamed` in the recording says how many that is. NULL: all get one.
	 */
	bool (*give_up_names)(void *context);
	void *context;
};

/** A process that was started for the recording. */
struct prb_profile_program {
	pid_t pid;			  /**< a child of ours, whose end is the caller's to take */
	bool (*has_ended)(void *context); /**< asked when a signal came, and from time to time */
	void (*release)(void *context);	  /**< lets it run, where it is held until we are ready */
	void *context;
};

/**
 * Records until its time is over, it is cancelled, or the process ends. If the process executes
 * another program, that program is recorded too, except in a live view, for one thread, with eBPF,
 * or if it may not be read.
 * PRB_ERROR_UNSUPPORTED if @p target is not alive or no Python that we can read,
 * PRB_ERROR_NO_PROCESS if it has no such thread, PRB_ERROR_PERMISSION if its threads may not be
 * stopped.
 */
struct prb_error *prb_profile_record(struct prb_target *target,
				     const struct prb_profile_options *options,
				     struct prb_recording **ret) PRB_MUST_CHECK;

/** As above, for a program that has just been started. It need not run Python, or not yet,
 * and may have ended before it was looked at.
 */
struct prb_error *prb_profile_record_program(const struct prb_profile_program *program,
					     const struct prb_profile_options *options,
					     struct prb_recording **ret) PRB_MUST_CHECK;

/** False if this program was built without clang or libbpf: it samples by stops alone. */
bool prb_profile_ebpf_built(void);
/** PRB_ERROR_UNSUPPORTED if this build or this machine lacks what samples by the kernel need. The
 * rights for it, and the kernel, are not tried. */
struct prb_error *prb_profile_ebpf_check(void) PRB_MUST_CHECK;

#endif
