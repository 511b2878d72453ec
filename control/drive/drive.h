/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Drives a live process as a debugger does: holds it paused, has it run to lines and
 * breakpoints, and evaluates code in its frames. It runs on, without breakpoints, when the drive
 * ends, or this process.
 *
 * Breakpoints belong to the pause and are kept by the agent (agent/trace/pausing.py).
 *
 * Threading: one thread, since threads of the target are stopped by ptrace while code is evaluated.
 */
#ifndef PRB_CONTROL_DRIVE_DRIVE_H
#define PRB_CONTROL_DRIVE_DRIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "control/eval.h"
#include "target/target.h"

struct prb_drive_how {
	double within; /**< seconds in which the pause has to begin; 0: two */
	double max;    /**< seconds that the whole drive may last; 0: as long as this process */
	/** Asked some times a second while the process runs, or code: how often the user has wanted
	 * it to end; negative: to leave it. */
	int (*interruptions)(void *context);
	void *context;
};

struct prb_drive;

/** Pauses the process @p t, which is borrowed; loads the agent first if it is not there. */
struct prb_error *prb_drive_create(struct prb_target *t, const struct prb_drive_how *how,
				   struct prb_drive **ret) PRB_MUST_CHECK;
/** Removes the breakpoints, and the process runs on. NULL is allowed. */
void prb_drive_destroy(struct prb_drive *drive);

/** To poll while nothing is asked: prb_drive_check() does what the agent wants then. */
int prb_drive_descriptor(const struct prb_drive *drive);

/** The pause has ended, by its limit, by 'probing resume' or with the process: an error says so. */
struct prb_error *prb_drive_check(struct prb_drive *drive) PRB_MUST_CHECK;

/** Where the process is paused again. */
struct prb_drive_stop {
	unsigned breakpoint;	/**< number of the one that was reached; 0: none was */
	pid_t tid;		/**< thread that stopped; 0: no certain one */
	struct prb_str problem; /**< what a condition raised, or the exception */
};
void prb_drive_stop_deinit(struct prb_drive_stop *stop);

/** Thread @p tid goes on to a line, by @p stride of enum prb_wire_stride: at least @p line. */
struct prb_error *prb_drive_step(struct prb_drive *drive, pid_t tid, uint32_t stride, uint32_t line,
				 struct prb_drive_stop *ret) PRB_MUST_CHECK;

/** All threads go on to a breakpoint; without one in @p ret, the user has interrupted it. */
struct prb_error *prb_drive_continue(struct prb_drive *drive,
				     struct prb_drive_stop *ret) PRB_MUST_CHECK;

/** A breakpoint, as the agent describes it. */
struct prb_drive_break {
	unsigned number, line, hits, ignore, places;
	bool enabled;
	char *words; /**< of the agent, escaped: "train.py:22 if x in epoch" */
};
struct prb_drive_breaks {
	PRB_VEC(struct prb_drive_break) list;
};
void prb_drive_breaks_deinit(struct prb_drive_breaks *breaks);

/** What a breakpoint is made of; texts without line feeds, NULL is "". */
struct prb_drive_place {
	const char *file; /**< or module of a function, or NULL */
	unsigned line;	  /**< 0: of a function, or of exceptions */
	const char *name; /**< of a function, or a class of exceptions: "" is all of them */
	bool catches, uncaught;
	const char *condition, *hits; /**< Python; the second sees `hits`, how often it was met */
	bool once;
	bool waits; /**< for a function to be loaded, or at the next line that has code */
	pid_t tid;  /**< 0: in any thread */
};
struct prb_error *prb_drive_add(struct prb_drive *drive, const struct prb_drive_place *place,
				struct prb_drive_breaks *ret) PRB_MUST_CHECK;

/** @p what: "enable", "disable", "ignore" or "condition", with its value. */
struct prb_error *prb_drive_change(struct prb_drive *drive, unsigned number, const char *what,
				   const char *value, struct prb_drive_breaks *ret) PRB_MUST_CHECK;

/** Removes one, or all (0). */
struct prb_error *prb_drive_delete(struct prb_drive *drive, unsigned number,
				   struct prb_drive_breaks *ret) PRB_MUST_CHECK;

/** The thread, which has come to a line, raises the exception there when it goes on. */
struct prb_error *prb_drive_raise(struct prb_drive *drive, pid_t tid,
				  const char *expression) PRB_MUST_CHECK;
struct prb_error *prb_drive_list(struct prb_drive *drive,
				 struct prb_drive_breaks *ret) PRB_MUST_CHECK;

/**
 * Runs code with the variables of Python frame @p depth of thread @p tid; without @p put what it
 * prints is kept in @p ret, which the caller ends. How the code ended is no error.
 * @p timeout: seconds that it may take; 0: as long as the user likes.
 */
struct prb_error *prb_drive_eval(struct prb_drive *drive, pid_t tid, unsigned depth,
				 const char *code, double timeout,
				 struct prb_error *(*put)(void *, enum prb_wire_type, const void *,
							  size_t),
				 struct prb_eval_result *ret) PRB_MUST_CHECK;

#endif
