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

/** Named processes that are recorded together. */
struct prb_performance_several {
	const pid_t *pids;
	char *const *names;
	size_t count; /**< at least one */
};

/** How samples are taken. 0 or NULL: not given. */
struct prb_performance_sampling {
	double duration;  /**< seconds */
	double ring;	  /**< seconds to keep */
	const char *when; /**< a condition: the time around it is kept */
	int rate;
	int tid;
	bool all, subprocesses;
	const char *source;			       /**< "stops" or "ebpf" */
	bool cc, tasks, no_source;		       /**< of a recording: shown with it */
	const struct prb_performance_several *several; /**< instead of a target */
};

/** The part of a recording to show. 0 or NULL: not given. */
struct prb_performance_view {
	const char *mode;
	const char *threads;
	double from, to;      /**< seconds */
	double last;	      /**< seconds */
	const char *diff;     /**< the recording to compare with */
	const char *slowest;  /**< "1% of FUNCTION" */
	const char *annotate; /**< FILE[:FUNCTION] */
	bool lines, by_library;
};

/** The output. */
struct prb_performance_output {
	const char *path;   /**< NULL: not given */
	const char *format; /**< NULL: by the extension of the path */
	bool json;
};

/** Modules of torch. */
struct prb_performance_modules {
	bool on, exact, ops;
	int steps; /**< 0: not given */
};

/** modes.h has the valid combinations. */
struct prb_performance_settings {
	struct prb_performance_sampling record;
	struct prb_performance_view show;
	struct prb_performance_output out;
	struct prb_performance_modules torch;
	bool background, stop;
};

/** The options of these settings; ends with an empty one. */
extern const struct prb_option prb_performance_options[];

/**
 * Records, and prints the table or writes a file. @p usual: default format of the file, or NULL.
 */
struct prb_error *prb_performance_run(const struct prb_cli *cli,
				      const struct prb_performance_settings *settings,
				      const struct prb_profile_format *usual) PRB_MUST_CHECK;

/** Checks the settings for prb_performance_show(), before there is a recording. */
struct prb_error *prb_performance_check(const struct prb_performance_settings *settings)
	PRB_MUST_CHECK;

/**
 * Prints the table of a recording with its runs in order, and writes the file, like
 * prb_performance_run(). May change the recording.
 */
struct prb_error *prb_performance_show(struct prb_recording **recording,
				       const struct prb_performance_settings *settings)
	PRB_MUST_CHECK;

/** True if a .profile is written. */
bool prb_performance_writes_recording(const struct prb_performance_settings *settings);

/**
 * The format of the file; NULL for a table or a .profile. @p usual: the format if no file is named,
 * or NULL.
 */
struct prb_error *prb_performance_find_format(const struct prb_performance_settings *settings,
					      const struct prb_profile_format *usual,
					      const struct prb_profile_format **ret) PRB_MUST_CHECK;

/** True if the order of runs matters. */
bool prb_performance_needs_order(const struct prb_performance_settings *settings,
				 const struct prb_profile_format *format);

/** True if source lines are recorded. */
bool prb_performance_wants_source(const struct prb_performance_settings *settings,
				  const struct prb_profile_format *format);

/** Writes a .profile as if it had been recorded into that file. */
struct prb_error *prb_performance_keep_recording(const struct prb_recording *recording,
						 const char *path) PRB_MUST_CHECK;

/** Writes the named file, or one with a default name, and prints its name. */
struct prb_error *prb_performance_write(const struct prb_recording *recording,
					const struct prb_profile_choice *choice,
					const struct prb_performance_output *out,
					const struct prb_profile_format *format) PRB_MUST_CHECK;

/** The chosen part of a recording; the deinit function frees `threads`. */
struct prb_performance_choice {
	struct prb_profile_choice choice;
	bool *threads;
};
void prb_performance_choice_deinit(struct prb_performance_choice *choice);

/** Checks the settings of a choice. */
struct prb_error *prb_performance_check_choice(const struct prb_performance_settings *settings)
	PRB_MUST_CHECK;

/** PRB_ERROR_NO_PROCESS if no thread is chosen. Deinit *ret also after an error. */
struct prb_error *prb_performance_choose(const struct prb_recording *recording,
					 const struct prb_performance_settings *settings,
					 struct prb_performance_choice *ret) PRB_MUST_CHECK;

/** Appends the text report: a head, a table of functions, and the cost. */
struct prb_error *prb_performance_text(const struct prb_recording *recording,
				       const struct prb_profile_choice *choice,
				       const struct prb_report *report,
				       struct prb_str *s) PRB_MUST_CHECK;

/**
 * Appends the waits for the GIL and its holders, or the waits of threads, if the mode is about
 * waits.
 */
struct prb_error *prb_performance_waits_text(const struct prb_recording *recording,
					     const struct prb_profile_choice *choice,
					     struct prb_str *s) PRB_MUST_CHECK;

/** Members of a JSON object that describe a wait: for, what, owner. */
void prb_performance_json_wait(struct prb_json *json, const struct prb_recording *recording,
			       const struct prb_profile_wait *wait);

/** As prb_performance_waits_text(), as JSON. */
struct prb_error *prb_performance_waits_json(const struct prb_recording *recording,
					     const struct prb_profile_choice *choice,
					     struct prb_json *json) PRB_MUST_CHECK;

/** The report as JSON, described in docs/json.md. */
struct prb_error *prb_performance_json(const struct prb_recording *recording,
				       const struct prb_profile_choice *choice,
				       const struct prb_report *report,
				       struct prb_str *s) PRB_MUST_CHECK;

/**
 * Of a recording of the ranks of a job: appends the rank that does something else than the others,
 * and its functions. Appends nothing to other recordings, or if no rank stands out.
 */
struct prb_error *prb_performance_ranks_text(const struct prb_recording *recording,
					     struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_performance_ranks_json(const struct prb_recording *recording,
					     struct prb_json *json) PRB_MUST_CHECK;

/** Appends the changes between two joined recordings, as a table or as JSON. */
struct prb_error *prb_performance_diff(const struct prb_recording *joined,
				       const struct prb_profile_choice *choice, bool as_json,
				       struct prb_str *s) PRB_MUST_CHECK;

/**
 * Appends the source of @p what, FILE[:FUNCTION], with the time of each line. PRB_ERROR_NOT_FOUND
 * without samples there.
 */
struct prb_error *prb_performance_annotate(const struct prb_recording *recording,
					   const struct prb_profile_choice *choice,
					   const char *what, bool as_json,
					   struct prb_str *s) PRB_MUST_CHECK;

/* Parts shared by several reports. */

/** "Python 3.12.1 · 10.0 s · 9 threads · 986 samples · 9.94 s on a processor (99 %)". */
void prb_performance_put_amounts(const struct prb_recording *recording,
				 const struct prb_report *report,
				 const struct prb_profile_choice *choice, size_t threads,
				 struct prb_str *s);
/** Members of a JSON object that name its function, or line of a function. */
void prb_performance_json_function(struct prb_json *json, const struct prb_tree_function *function,
				   bool lines, int32_t line);

/** Members of a JSON object that list the windows of a recording of --when. */
void prb_performance_json_windows(struct prb_json *json, const struct prb_recording *recording);

/** Prints the name of the written file, what it lacks, and the cost. */
struct prb_error *prb_performance_tell_file(const struct prb_recording *recording,
					    const struct prb_profile_choice *choice,
					    const char *path) PRB_MUST_CHECK;

#endif
