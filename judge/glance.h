/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A cheap look at a process that another one waits for: what the kernel says of its threads.
 * It only excludes: who waits for a process that goes on by itself is not stuck. So the rules need
 * not search for all processes that can end a wait.
 *
 * Each process is looked at once; make a new list for each moment. Threading: one thread at a time.
 */
#ifndef PRB_JUDGE_GLANCE_H
#define PRB_JUDGE_GLANCE_H

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "judge/judge.h"
#include "target/task.h"

struct prb_glance {
	pid_t pid;
	bool seen;  /**< it was looked at, and not only noted as idle */
	bool moves; /**< a thread runs, or a clock or somebody unknown ends its wait */
	bool waits; /**< its main thread waits for its own process, without a limit of time */
	bool polls; /**< its main thread runs, or sleeps for a time: it may ask again and again */
	bool idle;  /**< a thread runs, or a clock or somebody outside of the program ends its wait,
		       or that of a process that it waits for */
};

/** Memory that processes share, and whether one of these goes on. */
struct prb_glance_memory {
	struct prb_shared_word word;
	bool moves; /**< as prb_glances_at_memory() says */
};

/** Starts as {}. */
struct prb_glances {
	PRB_VEC(struct prb_glance) list;
	struct prb_number_map places; /**< in the list, by pid */
	PRB_VEC(struct prb_glance_memory) memory;
	struct prb_number_map servers; /**< of a server's process: in whose case it is judged */
};
void prb_glances_deinit(struct prb_glances *glances);
#define prb_auto_glances __attribute__((cleanup(prb_glances_deinit)))

/** Looks at the process @p pid, unless that was done. What cannot be read is neither. */
struct prb_error *prb_glances_at(struct prb_glances *glances, pid_t pid,
				 struct prb_glance *ret) PRB_MUST_CHECK;

/**
 * *ret: a process that has the word in its memory goes on, or so many have it that not all of them
 * can be known to wait. All processes are looked for once for
 * each word: hundreds of a pool wait for the same one.
 */
struct prb_error *prb_glances_at_memory(struct prb_glances *glances,
					const struct prb_shared_word *word,
					bool *ret) PRB_MUST_CHECK;

/** Notes that a rule has followed the waits of the process @p pid, and somebody may end them. */
struct prb_error *prb_glances_note_idle(struct prb_glances *glances, pid_t pid) PRB_MUST_CHECK;

/** Notes that the server that the process @p pid belongs to is judged in the case of @p owner. */
struct prb_error *prb_glances_note_server(struct prb_glances *glances, pid_t pid,
					  pid_t owner) PRB_MUST_CHECK;
/** True if that is the case of another process than itself. */
bool prb_glances_judged_elsewhere(const struct prb_glances *glances, pid_t pid);

#endif
