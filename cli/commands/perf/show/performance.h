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

struct prb_performance_settings {
	double duration;  /**< seconds; 0: not given */
	double ring;	  /**< seconds that are kept; 0: not given */
	const char *when; /**< NULL: not given */
	double last;	  /**< seconds that are looked at; 0: not given */
	int rate;	  /**< 0: not given */
	const char *output;
	const char *format;   /**< NULL: as the name of the output ends */
	const char *mode;     /**< NULL: not given */
	int tid;	      /**< 0: not given */
	const char *threads;  /**< NULL: not given */
	const char *diff;     /**< the recording to compare with; NULL: none */
	const char *annotate; /**< FILE[:FUNCTION]; NULL: not given */
	double from, to;      /**< seconds; 0: not given */
	bool all;
	bool background, stop;
	bool subprocesses;
	bool cc;
	bool tasks;
	bool lines;
	bool no_source;
	bool json;
	bool torch;
	bool exact;
	int steps;				       /**< 0: not given */
	const struct prb_performance_several *several; /**< instead of a target; or NULL */
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

struct prb_performance_targets;
struct prb_performance_note;
/** Records to the .profile that the settings name; @p note: NULL, or has it noted. *ret has no
 * samples. */
struct prb_error *prb_performance_keep(const struct prb_performance_targets *targets,
				       const struct prb_performance_settings *settings,
				       struct prb_performance_note *note,
				       struct prb_recording **ret) PRB_MUST_CHECK;

/** Writes the file that the settings name, or one with a name of its own, and says so. */
struct prb_error *prb_performance_write(const struct prb_recording *recording,
					const struct prb_profile_choice *choice,
					const struct prb_performance_settings *settings,
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
