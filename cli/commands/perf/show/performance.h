/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The commands `performance` and `flamegraph`: their settings, and showing a recording.
 */
#ifndef PRB_CLI_COMMANDS_PERF_SHOW_PERFORMANCE_H
#define PRB_CLI_COMMANDS_PERF_SHOW_PERFORMANCE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "command/command.h"
#include "profile/recording/diff.h"
#include "profile/formats/format.h"
#include "profile/recording/recording.h"
#include "profile/recording/report.h"

/** Processes that are one recording, with their names. */
struct prb_performance_several {
	const pid_t *pids;
	char *const *names;
	size_t count; /**< at least one */
};

/** How samples are taken. What is 0 or NULL was not given. */
struct prb_performance_sampling {
	double duration;  /**< seconds */
	double ring;	  /**< seconds that are kept */
	const char *when; /**< a condition: what is around it is kept */
	int rate;
	int tid;
	bool all, subprocesses;
	bool cc, tasks, no_source;		       /**< of a recording: shown with it */
	const struct prb_performance_several *several; /**< instead of a target */
};

/** What is shown of a recording. What is 0 or NULL was not given. */
struct prb_performance_view {
	const char *mode;
	const char *threads;
	double from, to;      /**< seconds */
	double last;	      /**< seconds */
	const char *diff;     /**< the recording to compare with */
	const char *annotate; /**< FILE[:FUNCTION] */
	bool lines;
};

/** Where that goes. */
struct prb_performance_output {
	const char *path;   /**< NULL: not given */
	const char *format; /**< NULL: as the name of the path ends */
	bool json;
};

/** Modules of torch. */
struct prb_performance_modules {
	bool on, exact;
	int steps; /**< 0: not given */
};

/** modes.h says which of them go together. */
struct prb_performance_settings {
	struct prb_performance_sampling record;
	struct prb_performance_view show;
	struct prb_performance_output out;
	struct prb_performance_modules torch;
	bool background, stop;
};

/** Their options; ends with an empty one. */
extern const struct prb_option prb_performance_options[];

/** Records, and prints the table or writes a file: in the format @p usual, if it is not NULL, and
 * the settings name no other. */
struct prb_error *prb_performance_run(const struct prb_cli *cli,
				      const struct prb_performance_settings *settings,
				      const struct prb_profile_format *usual) PRB_MUST_CHECK;

/** Checks the settings of prb_performance_show(), before what it shows is there. */
struct prb_error *prb_performance_check(const struct prb_performance_settings *settings)
	PRB_MUST_CHECK;

/** Prints the table of a recording with its runs in order, and writes the file, as
 * prb_performance_run() does. It may be changed. */
struct prb_error *prb_performance_show(struct prb_recording **recording,
				       const struct prb_performance_settings *settings)
	PRB_MUST_CHECK;

/** Whether a .profile is written. */
bool prb_performance_writes_recording(const struct prb_performance_settings *settings);

/** The format of the file that is written; NULL for a table or a .profile. @p usual: without a
 * file that is named, or NULL. */
struct prb_error *prb_performance_find_format(const struct prb_performance_settings *settings,
					      const struct prb_profile_format *usual,
					      const struct prb_profile_format **ret) PRB_MUST_CHECK;

/** Whether it matters when the runs of a recording were. */
bool prb_performance_needs_order(const struct prb_performance_settings *settings,
				 const struct prb_profile_format *format);

/** Whether source lines are recorded. */
bool prb_performance_wants_source(const struct prb_performance_settings *settings,
				  const struct prb_profile_format *format);

/** Writes a .profile as if it had been recorded to it. */
struct prb_error *prb_performance_keep_recording(const struct prb_recording *recording,
						 const char *path) PRB_MUST_CHECK;

/** Writes the file that is named, or one with a name of its own, and says so. */
struct prb_error *prb_performance_write(const struct prb_recording *recording,
					const struct prb_profile_choice *choice,
					const struct prb_performance_output *out,
					const struct prb_profile_format *format) PRB_MUST_CHECK;

/** The chosen part of a recording; ends with free() of what `threads` points to. */
struct prb_performance_choice {
	struct prb_profile_choice choice;
	bool *threads;
};
void prb_performance_choice_deinit(struct prb_performance_choice *choice);

/** Checks the settings that a choice is made from. */
struct prb_error *prb_performance_check_choice(const struct prb_performance_settings *settings)
	PRB_MUST_CHECK;

/**
 * PRB_ERROR_NO_PROCESS if no thread is chosen. *ret is to be ended also after an error.
 */
struct prb_error *prb_performance_choose(const struct prb_recording *recording,
					 const struct prb_performance_settings *settings,
					 struct prb_performance_choice *ret) PRB_MUST_CHECK;

/** Appends what people read: a head, a table of functions, and what it cost. */
struct prb_error *prb_performance_text(const struct prb_recording *recording,
				       const struct prb_profile_choice *choice,
				       const struct prb_report *report,
				       struct prb_str *s) PRB_MUST_CHECK;

/** Appends who waited for the GIL and for whom, or what threads waited for; where the mode is about
 * that. */
struct prb_error *prb_performance_waits_text(const struct prb_recording *recording,
					     const struct prb_profile_choice *choice,
					     struct prb_str *s) PRB_MUST_CHECK;

/** The members of an object that say what a thread waited for: for, what, owner. */
void prb_performance_json_wait(struct prb_json *json, const struct prb_recording *recording,
			       const struct prb_profile_wait *wait);

/** As above, for programs. */
struct prb_error *prb_performance_waits_json(const struct prb_recording *recording,
					     const struct prb_profile_choice *choice,
					     struct prb_json *json) PRB_MUST_CHECK;

/** As above, for programs, as docs/json.md has it. */
struct prb_error *prb_performance_json(const struct prb_recording *recording,
				       const struct prb_profile_choice *choice,
				       const struct prb_report *report,
				       struct prb_str *s) PRB_MUST_CHECK;

/** Of a recording of the ranks of a job: appends which of them does something else than the others,
 * and what; nothing of other recordings, and if no rank stands out. */
struct prb_error *prb_performance_ranks_text(const struct prb_recording *recording,
					     struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_performance_ranks_json(const struct prb_recording *recording,
					     struct prb_json *json) PRB_MUST_CHECK;

/** Appends what changed between two recordings that are joined, as a table or as JSON. */
struct prb_error *prb_performance_diff(const struct prb_recording *joined,
				       const struct prb_profile_choice *choice, bool as_json,
				       struct prb_str *s) PRB_MUST_CHECK;

/** Appends the source of @p what, FILE[:FUNCTION], with the time of each line.
 * PRB_ERROR_NOT_FOUND if no samples are there. */
struct prb_error *prb_performance_annotate(const struct prb_recording *recording,
					   const struct prb_profile_choice *choice,
					   const char *what, bool as_json,
					   struct prb_str *s) PRB_MUST_CHECK;

/* What these have in common. */

/** "Python 3.12.1 · 10.0 s · 9 threads · 986 samples · 9.94 s on a processor (99 %)". */
void prb_performance_put_amounts(const struct prb_recording *recording,
				 const struct prb_report *report,
				 const struct prb_profile_choice *choice, size_t threads,
				 struct prb_str *s);
/** The members of an object that say which function, or line of one, it is about. */
void prb_performance_json_function(struct prb_json *json, const struct prb_tree_function *function,
				   bool lines, int32_t line);

/** The members of an object that say which parts of it a recording of --when has. */
void prb_performance_json_windows(struct prb_json *json, const struct prb_recording *recording);

/** Prints that a file was written, how much there is in it, and what it cost. */
struct prb_error *prb_performance_tell_file(const struct prb_recording *recording,
					    const char *path) PRB_MUST_CHECK;

#endif
