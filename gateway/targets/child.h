/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A command that answers a request: this program itself, as a child.
 *
 * Whatever a target does to the code that reads it, it does to a child: that is bounded in time,
 * can be killed, and its answer is bytes. The child's stdin is a text that is given to it; its
 * stdout is read by the caller, who gets a descriptor that does not block; its stderr is collected.
 *
 * Threading: all children are started, tended and reaped by one thread, and die with it.
 */
#ifndef PRB_GATEWAY_TARGETS_CHILD_H
#define PRB_GATEWAY_TARGETS_CHILD_H

#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "command/words.h"

struct prb_child {
	pid_t pid;	    /**< 0: it was not started, or has been reaped */
	int out;	    /**< its stdout, or its terminal; -1 once that has ended */
	int err;	    /**< its stderr; -1 once that has ended */
	struct prb_str log; /**< what it wrote to stderr, or the first 64 KiB of that */
	double until;	    /**< it is killed then, by the monotonic clock; 0: never */
	double killed;	    /**< when it was asked to end; 0: it was not */
	double ended_by;    /**< prb_child_deinit() waits for it until then; 0: it was not killed */
	bool late;	    /**< its deadline has passed */
	int status;	    /**< once it has been reaped: as waitpid() gives it */
	bool ended;	    /**< it has been reaped */
};

/**
 * Starts "probing WORDS…". @p input is what it reads from stdin, at most 2 MiB; NULL: nothing.
 * @p out: where its stdout goes, -1: to a pipe that child->out is the end of.
 */
struct prb_error *prb_child_start(struct prb_child *child, struct prb_words *words,
				  const struct prb_str *input, int out) PRB_MUST_CHECK;

/**
 * Starts it in a new terminal of that size: what is written to child->out is typed there, and what
 * it shows is read there. Ctrl-C is for the command; no key stops it or makes it write a core.
 */
struct prb_error *prb_child_start_terminal(struct prb_child *child, const struct prb_words *words,
					   const struct winsize *size) PRB_MUST_CHECK;

/** Starts it with stdin and stdout at the other end of child->out. */
struct prb_error *prb_child_start_talk(struct prb_child *child,
				       const struct prb_words *words) PRB_MUST_CHECK;

/** Appends what it has printed to stdout; no more is read once @p ret has @p most bytes. */
void prb_child_receive(struct prb_child *child, size_t most, struct prb_str *ret);

/** Reads stderr, kills a late one, and reaps it if it has ended. To be called now and then. */
void prb_child_tend(struct prb_child *child, double now);

/** Asks it to end; prb_child_tend() kills it 2 s later. */
void prb_child_kill(struct prb_child *child, double now);

/** Kills it if it runs, without waiting: of several, each takes a moment to die. */
void prb_child_end(struct prb_child *child);

/** Kills it if it runs, waits for it unless it hangs in the kernel, and frees all. */
void prb_child_deinit(struct prb_child *child);

/** Judges its end: NULL if it succeeded, else the error that it printed. */
struct prb_error *prb_child_judge(const struct prb_child *child) PRB_MUST_CHECK;

/** Appends the warnings that it printed, a line for each. */
void prb_child_warnings(const struct prb_child *child, struct prb_str *ret);

#endif
