/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The processes below one process: whether any of them has run since the last look, and how
 * to end them.
 *
 * A look costs some ten system calls for each process, and stops none. A process is known by its
 * pid and its start, so a pid that is used again is another process.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_RUN_TREE_H
#define PRB_CLI_COMMANDS_RUN_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

struct prb_tree_process {
	pid_t pid, parent;
	uint64_t start_ticks; /**< since boot */
	uint64_t ran;	      /**< processor time of all its threads, ns */
	char state;	      /**< of its first thread, as in stat */
};

/** Starts with the first two members set. */
struct prb_tree {
	pid_t root;
	bool with_root;			       /**< the root is one of the processes */
	PRB_VEC(struct prb_tree_process) list; /**< each after its parent */
	double ran_seconds; /**< processor time between the last two looks, of all of them */
	bool moved;	    /**< between the last two looks one has run, begun or ended */
	unsigned glances;   /**< since the last look, that saw one of them run */
};

/** Looks at all of them. Ended processes that wait for their parent are left out. */
struct prb_error *prb_tree_look(struct prb_tree *tree) PRB_MUST_CHECK;
/**
 * A cheaper look: only at the clocks of those that were there at the last look, one system call for
 * each. New ones are looked for when none of these has run, but one has run before, and now and
 * then: only what runs can begin a process.
 */
struct prb_error *prb_tree_glance(struct prb_tree *tree) PRB_MUST_CHECK;
void prb_tree_deinit(struct prb_tree *tree);
#define prb_auto_tree __attribute__((cleanup(prb_tree_deinit)))

/** The process @p pid of the last look; NULL if it is none of the tree. */
const struct prb_tree_process *prb_tree_find(const struct prb_tree *tree, pid_t pid);

/**
 * Sends a signal to each process that was seen in the last look, is the same process still, and
 * has its parent still; a stopped one is continued afterwards. *count: how many got it.
 */
void prb_tree_signal(const struct prb_tree *tree, int number, size_t *count);

#endif
