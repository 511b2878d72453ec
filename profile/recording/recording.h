/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A recording: what the threads of a process did over some time, in runs.
 *
 * A run is one or more samples in a row of one thread that found the same stack in the same state.
 * Each sample has weights, which are no guesses but differences of counters: the time since the
 * thread's last sample, and how long the thread had a processor and waited for one since then, as
 * the kernel counts. CPU time that a thread used between samples, before it was found asleep or
 * waiting for a processor, is kept for its next sample on a processor: random moments on the clock
 * are random moments of the time on a processor too, so each function gets its share. The sums over
 * a thread are exact, whatever the rate.
 *
 * Threading: one thread at a time. A recording owns all it has. Times are nanoseconds; `begin` of
 * runs counts from the start of the recording.
 */
#ifndef PRB_PROFILE_RECORDING_RECORDING_H
#define PRB_PROFILE_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"
#include "profile/recording/tree.h"

/** The scheduling state of a thread at the moment of a sample. */
enum prb_run_state {
	PRB_RUN_ON_CPU,	   /**< it had one */
	PRB_RUN_QUEUED,	   /**< it waited for one */
	PRB_RUN_ASLEEP,	   /**< it waited for something else */
	PRB_RUN_IN_KERNEL, /**< the same, and nothing can wake it: mostly a disk */
	PRB_RUN_HELD,	   /**< stopped by job control or a debugger */
	PRB_RUN_STATES,
};

/** "on a processor", "waits for a processor", … */
const char *prb_run_state_name(enum prb_run_state state);

/** The cause of a wait. */
enum prb_wait_kind {
	PRB_WAIT_NONE, /**< nothing that is known */
	PRB_WAIT_GIL,
	PRB_WAIT_LOCK,	     /**< or a condition, an event, a queue of Python's own */
	PRB_WAIT_DESCRIPTOR, /**< a file, socket, pipe; or several */
	PRB_WAIT_CHILD,	     /**< the end of a process */
	PRB_WAIT_TIME,	     /**< a sleep */
	PRB_WAIT_OTHER,
	PRB_WAIT_KINDS,
};

/** "gil", "lock", …; NULL for none. */
const char *prb_wait_kind_name(enum prb_wait_kind kind);

struct prb_profile_wait {
	enum prb_wait_kind kind;
	char *what;	/**< "socket 7 → 10.0.0.3:29500"; NULL if the kind says all */
	uint32_t owner; /**< number of the thread that holds it, plus one; 0: unknown */
};

struct prb_run {
	uint32_t thread, stack;
	enum prb_run_state state;
	uint32_t wait; /**< what for, in the `waits` of the recording; 0: nothing that is known */
	enum prb_wait_kind wait_kind; /**< of that wait */
	bool gil;		      /**< it holds the GIL of its interpreter */
	uint32_t samples;	      /**< all of them */
	uint32_t reads; /**< samples that read the stack, rather than finding it unchanged */
	int64_t begin;
	int64_t wall, cpu, queue;
	double cpu_squares; /**< sum of the squares of the CPU weights: how many samples they equal
			     */
	/** Of several runs that became one: the same of `wall` and `queue`; else 0. */
	double wall_squares, queue_squares;
};

/** Sum of the squares of the samples' wall weights, which within a run are taken for equal. */
static inline double prb_run_wall_squares(const struct prb_run *run)
{
	double wall = (double)run->wall;

	if (run->wall_squares > 0 || !run->samples)
		return run->wall_squares;
	return wall * wall / run->samples;
}

/** As above, for their waits for a processor. */
static inline double prb_run_queue_squares(const struct prb_run *run)
{
	double queue = (double)run->queue;

	if (run->queue_squares > 0 || !run->samples)
		return run->queue_squares;
	return queue * queue / run->samples;
}

struct prb_profile_process {
	pid_t pid;
	char *command, *python; /**< as those of a recording */
	int64_t cpu;
};

struct prb_profile_thread {
	uint32_t process; /**< 0: the first; else one of the others, plus one */
	pid_t tid;
	char *name;    /**< Python's; NULL if it has none */
	char *os_name; /**< the kernel's */
	int64_t cpu;   /**< what its runs sum up to */
	bool ended;
};

/** Why a recording ended. */
enum prb_profile_end {
	PRB_PROFILE_DONE,	 /**< its time is over */
	PRB_PROFILE_INTERRUPTED, /**< the user ended it */
	PRB_PROFILE_TARGET_ENDED,
	PRB_PROFILE_THREAD_ENDED, /**< the only one that was sampled */
	PRB_PROFILE_TARGET_EXEC,  /**< the process runs another program */
	PRB_PROFILE_CUT_OFF,	  /**< the recorder was killed, or still records */
};

/** "the process ended"; NULL for an end that is not worth a word. */
const char *prb_profile_end_text(enum prb_profile_end end);

/** The cost and the quality of a recording. */
struct prb_profile_cost {
	uint64_t stops;
	double pause_p50, pause_p99, pause_max, pause_total; /**< µs */
	int64_t own_cpu;
	uint64_t times;	     /**< at which samples were taken */
	uint64_t late;	     /**< of them, those more than half a mean gap late */
	uint64_t missed;     /**< times that passed unused */
	uint64_t unreadable; /**< samples whose stack could not be read */
	uint64_t again;	     /**< stops because the one before came between two frames */
	int64_t duration; /**< of all that was recorded for it: of a part of that, no cost is known
			   */
	uint64_t unstopped; /**< samples that the kernel took, without a stop */
	bool ebpf;	    /**< running threads were sampled so, and not by stops */
};

/** A line of source. */
struct prb_profile_line {
	const char *file; /**< the tree's */
	int32_t line;
	char *text;
};

/** A part of a recording, from its start. */
struct prb_profile_window {
	int64_t begin, end;
};

struct prb_recording {
	pid_t pid;
	char *command;	/**< its command line, as a shell would take it; NULL if unknown */
	char *python;	/**< version; NULL if it is none that can be read */
	double started; /**< seconds since the epoch */
	int64_t begun;	/**< the same moment, CLOCK_MONOTONIC */
	int64_t duration;
	int64_t ring;	 /**< only so much of it is kept, at least; 0: all */
	char *condition; /**< only what is around moments at which it held is kept; or NULL */
	int64_t around;	 /**< so much of it, before and after */
	PRB_VEC(struct prb_profile_window) windows; /**< that were kept, in their order */
	double rate;				    /**< that was asked for */
	bool native;				    /**< with C frames */
	/**
	 * Of allocations: `cpu` is bytes that were allocated, `queue` bytes still alive at the end,
	 * `rate` the bytes for each sample.
	 */
	bool bytes;
	bool tasks; /**< with the tasks of asyncio (awaits.h) */
	pid_t tid;  /**< the only thread that was sampled; 0: all were */
	enum prb_profile_end end;
	int64_t unseen_children; /**< time on a processor of children that ended before they were
				  * found, ns; at least */
	int64_t process_cpu;	 /**< of the whole process meanwhile; < 0 if unknown */
	/** Besides the one above: each process is the outermost frame of its stacks then. */
	PRB_VEC(struct prb_profile_process) others;
	PRB_VEC(char *) retired; /**< texts that were replaced, and may still be written */
	struct prb_tree *tree;
	PRB_VEC(struct prb_profile_thread) threads;
	PRB_VEC(struct prb_profile_wait) waits; /**< each once; the first is none */
	struct prb_number_map wait_numbers;	/**< by their hash */
	PRB_VEC(struct prb_run) runs;
	PRB_VEC(struct prb_profile_line) lines; /**< file by file, in their order */
	struct prb_profile_cost cost;
	uint64_t unnamed; /**< places in C code without a name, as naming them was given up */
	int64_t step;	  /**< what a thread did within so long is put together; 0: nothing is */
	/** Two recordings as one (join.h): the facts of the one that this is compared with, and how
	 * many of the threads, the first ones, are of it; else NULL and 0. */
	struct prb_recording *before;
	size_t before_threads;
};

/** How much time it has samples of: its duration, or that of its windows. */
static inline int64_t prb_recording_covered(const struct prb_recording *recording)
{
	const struct prb_profile_window *window;
	int64_t covered = 0;

	if (!recording->condition)
		return recording->duration;
	prb_vec_each (window, &recording->windows)
		covered += window->end - window->begin;
	return covered;
}

struct prb_error *prb_recording_create(struct prb_recording **ret) PRB_MUST_CHECK;
void prb_recording_destroy(struct prb_recording *recording);

/** Where the version of Python, or the command line, of a process by its number is. */
static inline char **prb_recording_python(struct prb_recording *recording, uint32_t process)
{
	return process ? &recording->others.items[process - 1].python : &recording->python;
}
static inline char **prb_recording_command(struct prb_recording *recording, uint32_t process)
{
	return process ? &recording->others.items[process - 1].command : &recording->command;
}

/** The command line of a process by its number, NULL if that is unknown; and its pid. */
static inline const char *prb_recording_command_line(const struct prb_recording *recording,
						     uint32_t process)
{
	return process ? recording->others.items[process - 1].command : recording->command;
}
static inline pid_t prb_recording_pid(const struct prb_recording *recording, uint32_t process)
{
	return process ? recording->others.items[process - 1].pid : recording->pid;
}

/** Replaces a text of the recording, which another thread may be about to write, by a copy. */
struct prb_error *prb_recording_replace(struct prb_recording *recording, char **text,
					const char *by) PRB_MUST_CHECK;
/** Appends a copy of a thread of another recording, as one of @p process. */
struct prb_error *prb_recording_copy_thread(struct prb_recording *recording,
					    const struct prb_profile_thread *thread,
					    uint32_t process) PRB_MUST_CHECK;
/** Appends copies of the source lines of another recording. */
struct prb_error *prb_recording_copy_lines(struct prb_recording *recording,
					   const struct prb_recording *from) PRB_MUST_CHECK;
/** Forgets the source lines. */
void prb_recording_drop_lines(struct prb_recording *recording);

/** The number of such a wait; @p what is copied. */
struct prb_error *prb_recording_wait(struct prb_recording *recording,
				     const struct prb_profile_wait *wait,
				     uint32_t *ret) PRB_MUST_CHECK;

static inline void prb_recording_guard(struct prb_recording **recording)
{
	prb_recording_destroy(*recording);
}
#define prb_auto_recording __attribute__((cleanup(prb_recording_guard)))

#endif
