/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A line on the terminal while a command takes long: what it does, for how long already, and
 * how much is left.
 *
 * A thread of its own prints, so that a slow terminal delays nothing. It blocks all signals. There
 * is one line at a time: a begin within another one changes nothing, and so does its end.
 *
 * Threading: begin and end on one thread, the others from any. Errors: without a terminal on
 * stderr, or a thread, there is no line.
 */
#ifndef PRB_COMMAND_WAITING_H
#define PRB_COMMAND_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { PRB_WAITING_AFTER = 2 /**< seconds; what is over sooner needs no line */ };

/**
 * Shows @p what, which is copied, after PRB_WAITING_AFTER seconds. @p at_most: seconds that it
 * takes at most, or 0 if that is not known.
 */
void prb_waiting_begin(const char *what, double at_most);

/** True between begin and end on a terminal: it is worth to make a text. */
bool prb_waiting_shows(void);

/** Appends "12 s left"; false, and nothing, if that is not known. */
bool prb_waiting_left(struct prb_str *s);

/** @p done of @p total are done, such as hosts that have answered. */
void prb_waiting_count(size_t done, size_t total);

/** Shows @p text in place of all that, at once; it is copied, and cut to the terminal's width. */
void prb_waiting_say(const char *text);

/** Ends and erases the line. Results are printed after that. */
void prb_waiting_end(void);

static inline void prb_waiting_guard(const int *unused)
{
	(void)unused;
	prb_waiting_end();
}
/** Begins, and ends with the block. */
#define PRB_WAITING(what, at_most)                                                \
	__attribute__((cleanup(prb_waiting_guard), unused)) int prb_waiting_now = \
		(prb_waiting_begin(what, at_most), 0)

#endif
