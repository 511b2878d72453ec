/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Times in SQL: seconds since the epoch, UTC; durations are seconds.
 */
#ifndef PRB_SQL_FUNCTIONS_FUNCTIONS_TIME_H
#define PRB_SQL_FUNCTIONS_FUNCTIONS_TIME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

/**
 * Reads a length of time: "5 minutes", "1 hour 30 min", "90s", "01:30:00", "1 day ago"; a number
 * alone is seconds. PRB_ERROR_USAGE for anything else, months and years among it: those have no
 * fixed length.
 */
struct prb_error *prb_interval_parse(const char *text, size_t length, double *ret) PRB_MUST_CHECK;

/** How many seconds a unit such as "minutes" has; the same errors. */
struct prb_error *prb_interval_unit(const char *word, size_t length, double *ret) PRB_MUST_CHECK;

/**
 * Reads "2026-01-02", "2026-01-02 03:04:05.678", also with a T, and an offset ("Z", "+01:00") at
 * the end; without one it is UTC. False if it is none.
 */
bool prb_timestamp_parse(const char *text, size_t length, double *ret);

/** Appends a time as "2026-01-02T03:04:05.678Z"; false if it is out of range. */
bool prb_timestamp_text(struct prb_str *s, double time);

/** True if @p name is a part that date_part(name, time) knows. */
bool prb_time_part_known(const char *name);

#endif
