/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The commands `performance` and `flamegraph`: their settings, and showing a recording.
 */
#ifndef PRB_CLI_COMMANDS_PERFORMANCE_H
#define PRB_CLI_COMMANDS_PERFORMANCE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "command/command.h"
#include "profile/format.h"
#include "profile/recording.h"
#include "profile/report.h"

struct prb_performance_settings {
	double duration; /**< seconds; 0: not given */
	double ring;	 /**< seconds that are kept; 0: not given */
	double last;	 /**< seconds that are looked at; 0: not given */
	int rate;	 /**< 0: not given */
	const char *output;
	const char *format;  /**< NULL: as the name of the output ends */
	const char *mode;    /**< NULL: not given */
	int tid;	     /**< 0: not given */
	const char *threads; /**< NULL: not given */
	bool all;
	bool subprocesses;
	bool cc;
	bool lines;
	bool no_source;
	bool json;
};

/** Their options; ends with an empty one. */
extern const struct prb_option prb_performance_options[];

/** Records, and prints the table or writes a file: in the format @p usual, if it is not NULL, and
 * the settings name no other. */
struct prb_error *prb_performance_run(const struct prb_cli *cli,
				      const struct prb_performance_settings *settings,
				      const struct prb_profile_format *usual) PRB_MUST_CHECK;

/** What of a recording was asked for; ends with free() of what `threads` points to. */
struct prb_performance_choice {
	struct prb_profile_choice choice;
	bool *threads;
};
void prb_performance_choice_deinit(struct prb_performance_choice *choice);

/** Whether the settings that a choice is made from make sense. */
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

/** The same for programs. */
struct prb_error *prb_performance_waits_json(const struct prb_recording *recording,
					     const struct prb_profile_choice *choice,
					     struct prb_json *json) PRB_MUST_CHECK;

/** The same for programs, as docs/json.md has it. */
struct prb_error *prb_performance_json(const struct prb_recording *recording,
				       const struct prb_profile_choice *choice,
				       const struct prb_report *report,
				       struct prb_str *s) PRB_MUST_CHECK;

/** Prints that a file was written, how much there is in it, and what it cost. */
struct prb_error *prb_performance_tell_file(const struct prb_recording *recording,
					    const char *path) PRB_MUST_CHECK;

#endif
