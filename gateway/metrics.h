/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Metrics of Python processes, in the text format of Prometheus.
 *
 * Names and labels are few and fixed: a process is its pid and its rank, never a name that it chose
 * itself. What cannot be read has no sample; `probing_up` says so.
 */
#ifndef PRB_GATEWAY_METRICS_H
#define PRB_GATEWAY_METRICS_H

#include "base/error.h"
#include "base/str.h"
#include "command/command.h"

/** Appends the metrics of these targets; of all processes that may be read if there are none. */
struct prb_error *prb_metrics_collect(const struct prb_texts *targets,
				      struct prb_str *ret) PRB_MUST_CHECK;

#endif
