/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A session of the prompt of `probing debug`: the target, the thread and frame that are
 * selected, and what a line of the user does. Results go to stdout.
 */
#ifndef PRB_CLI_COMMANDS_DEBUG_SESSION_H
#define PRB_CLI_COMMANDS_DEBUG_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/str.h"
#include "base/vec.h"
#include "cli/commands/eval/console.h"
#include "control/drive/drive.h"
#include "dump/model/dump.h"
#include "target/target.h"

/** Lines that run when a breakpoint is reached. */
struct prb_debug_commands {
	unsigned number;
	struct prb_str lines; /**< each with its line feed */
};

enum prb_debug_mode {
	PRB_DEBUG_COMMANDS,  /**< lines are commands of ours, */
	PRB_DEBUG_COLLECTS,  /**< of a breakpoint, up to "end", */
	PRB_DEBUG_INTERACTS, /**< or Python */
};

struct prb_debug {
	struct prb_target *target; /**< owned */
	struct prb_drive *drive;   /**< NULL: it is only read */
	double max;		   /**< seconds that a pause may last */
	int ends[2];		   /**< readable after that, and that or the drive's; or -1 */
	struct prb_eval_console console;
	struct prb_dump *dump; /**< of this stop, without variables; NULL: to be made */
	pid_t tid;
	unsigned frame; /**< number of the Python frame that is selected */
	int32_t listed; /**< last line that was listed; 0: none of this frame */
	enum prb_debug_mode mode;
	PRB_VEC(struct prb_debug_commands) commands;
	struct prb_str text; /**< Python of several lines so far */
	struct prb_str last; /**< command that an empty line repeats */
	bool over;	     /**< the user wants no more, or */
	bool ended;	     /**< … the process has ended */
};

/** A command of the prompt; the last one has no name. */
struct prb_debug_command {
	const char *name, *aliases; /**< words, divided by spaces; or NULL */
	const char *argument, *does;
	bool drives; /**< needs a process that is paused by us */
	struct prb_error *(*run)(struct prb_debug *d, const char *rest);
};
extern const struct prb_debug_command prb_debug_all[];

/** Opens a session with the target, which is taken over: pauses it if it is a process. */
struct prb_error *prb_debug_begin(struct prb_target *t, double within, double max,
				  struct prb_debug *ret) PRB_MUST_CHECK;
void prb_debug_end(struct prb_debug *d);

/** Runs a line. The error is to be shown; `over` says whether the session goes on. */
struct prb_error *prb_debug_line(struct prb_debug *d, const char *line) PRB_MUST_CHECK;

/** Something can be read from `ends[1]`; true if the session is over, and why was printed. */
bool prb_debug_happened(struct prb_debug *d);

/** The dump of this stop; the thread and frame that are selected in it. */
struct prb_error *prb_debug_look(struct prb_debug *d) PRB_MUST_CHECK;
struct prb_error *prb_debug_thread(struct prb_debug *d,
				   const struct prb_dump_thread **ret) PRB_MUST_CHECK;
struct prb_error *prb_debug_frame(struct prb_debug *d,
				  const struct prb_dump_frame **ret) PRB_MUST_CHECK;

/** The process runs, or has stopped again: what was read of it is forgotten. */
struct prb_error *prb_debug_runs(struct prb_debug *d) PRB_MUST_CHECK;
struct prb_error *prb_debug_stopped(struct prb_debug *d,
				    const struct prb_drive_stop *stop) PRB_MUST_CHECK;

/** Prints where the selected frame is, with its line. */
struct prb_error *prb_debug_place(struct prb_debug *d) PRB_MUST_CHECK;
/** Appends "loader-0 (4250) in load at demo.py:29". */
void prb_debug_put_place(struct prb_str *s, const struct prb_dump_thread *thread,
			 const struct prb_dump_frame *frame);

/** Runs Python in the selected frame; what it prints is printed. */
struct prb_error *prb_debug_python(struct prb_debug *d, const char *code) PRB_MUST_CHECK;

/** Evaluates an expression, by code or from outside, and prints it by @p format of its text, as
 * "print(repr((%s)))". */
struct prb_error *prb_debug_value(struct prb_debug *d, const char *expression,
				  bool pretty) PRB_MUST_CHECK;

/* The commands that look, and those that drive; help. */
#define PRB_DEBUG_RUN(name) \
	struct prb_error *prb_debug_##name(struct prb_debug *d, const char *rest) PRB_MUST_CHECK
PRB_DEBUG_RUN(where);
PRB_DEBUG_RUN(up);
PRB_DEBUG_RUN(down);
PRB_DEBUG_RUN(select);
PRB_DEBUG_RUN(threads);
PRB_DEBUG_RUN(thread_command);
PRB_DEBUG_RUN(locals);
PRB_DEBUG_RUN(arguments);
PRB_DEBUG_RUN(print);
PRB_DEBUG_RUN(pretty);
PRB_DEBUG_RUN(list);
PRB_DEBUG_RUN(step);
PRB_DEBUG_RUN(next);
PRB_DEBUG_RUN(until);
PRB_DEBUG_RUN(return );
PRB_DEBUG_RUN(raise);
PRB_DEBUG_RUN(continue);
PRB_DEBUG_RUN(break);
PRB_DEBUG_RUN(tbreak);
PRB_DEBUG_RUN(catch);
PRB_DEBUG_RUN(clear);
PRB_DEBUG_RUN(condition);
PRB_DEBUG_RUN(ignore);
PRB_DEBUG_RUN(enable);
PRB_DEBUG_RUN(disable);
PRB_DEBUG_RUN(commands);
PRB_DEBUG_RUN(interact);

/** Reads FILE:LINE, FUNCTION or MODULE:FUNCTION, then a condition behind "if" or a comma; the texts
 * of @p ret point into @p words, which is changed. */
struct prb_error *prb_debug_read_place(char *words, struct prb_drive_place *ret) PRB_MUST_CHECK;

/** Prints breakpoints, one a line. */
struct prb_error *prb_debug_show_breaks(const struct prb_drive_breaks *breaks) PRB_MUST_CHECK;

#endif
