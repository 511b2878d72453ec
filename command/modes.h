/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which options go with what a command is to do: a table of its modes in place of a check for
 * each pair of options.
 *
 * An option that was given is refused where it means nothing, with the modes that it is for. A new
 * option is refused by all modes that name what they take, until they name it.
 *
 * Threading: none of its own. Errors: PRB_ERROR_USAGE.
 */
#ifndef PRB_COMMAND_MODES_H
#define PRB_COMMAND_MODES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "command/command.h"

/** Names of options are divided by spaces and have no dashes. */
struct prb_mode {
	const char *name;    /**< "--torch", "a program to start": "--X is not for NAME" */
	const char *by;	     /**< the options that choose it when all are given; "": always */
	const char *takes;   /**< the options that it takes; NULL: all but `leaves` */
	const char *leaves;  /**< the options that it does not take, or NULL */
	const char *instead; /**< a hint in place of the modes that an option is for, or NULL */
};

/** Whether an option was given; @p settings is what it was parsed into. */
bool prb_option_is_given(const struct prb_option *option, const void *settings);

/** The first mode that is chosen; the last one that is looked at needs no option. */
size_t prb_mode_find(const struct prb_mode *modes, const struct prb_option *options,
		     const void *settings);

/** Refuses what @p chosen of the @p count modes does not take. */
struct prb_error *prb_mode_check(const struct prb_mode *modes, size_t count, size_t chosen,
				 const struct prb_option *options,
				 const void *settings) PRB_MUST_CHECK;

/** The same of each of the @p count modes that is chosen. */
struct prb_error *prb_mode_check_each(const struct prb_mode *modes, size_t count,
				      const struct prb_option *options,
				      const void *settings) PRB_MUST_CHECK;

#endif
