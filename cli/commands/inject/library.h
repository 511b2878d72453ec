/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Loads a library, for `probing inject --library` and `probing-inject`.
 */
#ifndef PRB_CLI_COMMANDS_INJECT_LIBRARY_H
#define PRB_CLI_COMMANDS_INJECT_LIBRARY_H

#include "command/command.h"
#include "base/str.h"
#include "injector/inject.h"

struct prb_inject_settings {
	const char *library, *symbol, *argument;
	double timeout;
	bool json;
};

/** The options of both, which are parsed into a struct that begins with these settings. */
#define PRB_INJECT_OPTIONS                                                              \
	{"library",                                                                     \
	 'L',                                                                           \
	 PRB_OPTION_TEXT,                                                               \
	 "PATH",                                                                        \
	 "Load this shared library instead of the agent",                               \
	 PRB_COMPLETE_FILE,                                                             \
	 offsetof(struct prb_inject_settings, library)},                                \
		{"symbol",                                                              \
		 's',                                                                   \
		 PRB_OPTION_TEXT,                                                       \
		 "NAME",                                                                \
		 "Then call this function: intptr_t NAME(const char *)",                \
		 PRB_COMPLETE_NOTHING,                                                  \
		 offsetof(struct prb_inject_settings, symbol)},                         \
		{"arg",                                                                 \
		 0,                                                                     \
		 PRB_OPTION_TEXT,                                                       \
		 "TEXT",                                                                \
		 "Argument of that function",                                           \
		 PRB_COMPLETE_NOTHING,                                                  \
		 offsetof(struct prb_inject_settings, argument)},                       \
		{"timeout",                                                             \
		 0,                                                                     \
		 PRB_OPTION_SECONDS,                                                    \
		 "TIME",                                                                \
		 "Give up after TIME (default: 10s)",                                   \
		 PRB_COMPLETE_NOTHING,                                                  \
		 offsetof(struct prb_inject_settings, timeout),                         \
		 .for_clients = true},                                                  \
	{                                                                               \
		"json", 'j', PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING, \
			offsetof(struct prb_inject_settings, json), .for_clients = true \
	}

/** PRB_ERROR_USAGE if an option is given without the option that it needs. */
struct prb_error *prb_inject_check(const struct prb_inject_settings *settings) PRB_MUST_CHECK;

/** Loads the library, with short waits of ours: the target's thread is stopped meanwhile. */
struct prb_error *prb_inject_library(struct prb_target *t,
				     const struct prb_inject_settings *settings,
				     struct prb_inject_result *ret) PRB_MUST_CHECK;

/** Prints how it went; the settings' `library` is what it is called. */
struct prb_error *prb_inject_print(const struct prb_target *t,
				   const struct prb_inject_settings *settings,
				   const struct prb_inject_result *result) PRB_MUST_CHECK;

#endif
