/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Sends log messages to stderr. */
#ifndef PRB_COMMAND_LOG_H
#define PRB_COMMAND_LOG_H

#include "base/error.h"

/**
 * Warnings are always printed, and what @p verbose (0 to 3) and $PROBING_LOG ask for.
 * PRB_ERROR_USAGE if the latter cannot be understood.
 */
struct prb_error *prb_log_start(unsigned verbose) PRB_MUST_CHECK;

#endif
