/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Logging by domain: how an engineer sees what we tried, without it ever reaching stdout.
 *
 * Libraries print nothing; they log to the sink that the face (command line, debugger) has set,
 * and nothing happens while none is set. A domain is the name of a part ("elf", "unwind",
 * "python", "stop", …). Levels: 0 what the user should know, always; 1 what was decided, 2 what was
 * tried, 3 every step.
 *
 * Threading: prb_log_set() before any other thread of ours starts; prb_log() from anywhere.
 */
#ifndef PRB_BASE_LOG_H
#define PRB_BASE_LOG_H

#include "base/error.h"

typedef void prb_log_sink(void *context, const char *domain, int level, const char *message);

/**
 * Sets the sink and what passes: @p filter is "DOMAIN=LEVEL,…", a plain number for all domains,
 * or NULL for none. PRB_ERROR_USAGE if it cannot be understood.
 */
struct prb_error *prb_log_set(prb_log_sink *sink, void *context, const char *filter) PRB_MUST_CHECK;

/** The level that passes for @p domain, 0 when nothing does: guards costly arguments. */
int prb_log_level(const char *domain);

void prb_log(const char *domain, int level, const char *format, ...) PRB_PRINTF(3, 4);

#endif
