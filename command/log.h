/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Sends log messages to stderr. */
#ifndef PRB_COMMAND_LOG_H
#define PRB_COMMAND_LOG_H

#include "base/error.h"

/** Logging is set up only if it was asked for: by @p verbose (0 to 3) or by $PROBING_LOG. */
struct prb_error *prb_log_start(unsigned verbose) PRB_MUST_CHECK;

#endif
