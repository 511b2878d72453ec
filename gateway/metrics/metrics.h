/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Metrics of Python processes, also in the text format of Prometheus.
 *
 * Names and labels are few and fixed: a process is its pid and its rank. What it chose itself, its
 * name, is in `probing_process_info` alone, so that a new one does not begin all series anew.
 * Unreadable values have no sample; `probing_up` says so.
 */
#ifndef PRB_GATEWAY_METRICS_METRICS_H
#define PRB_GATEWAY_METRICS_METRICS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "command/command.h"
#include "gateway/metrics/process.h"

/** Its name is without "probing_"; samples have the label besides the process. */
struct prb_metric {
	const char *name, *type, *label, *help;
	/** Its name, label and unit in OpenTelemetry's conventions. NULL: as above, with
	 * "probing_"; as above; none. */
	const char *otel, *otel_label, *unit;
};

struct prb_metric_sample {
	const struct prb_metric *metric;
	pid_t pid;
	long rank;	/**< -1: none */
	char label[24]; /**< one of few words, or a number */
	double value;
};

/** Samples of one process follow each other. Starts as {}. */
struct prb_metrics {
	PRB_VEC(struct prb_metric_sample) samples;
	PRB_VEC(struct prb_metric_process) processes;
};
void prb_metrics_deinit(struct prb_metrics *metrics);
/** What a process of the samples is called. */
const struct prb_metric_process *prb_metrics_process(const struct prb_metrics *metrics, pid_t pid);

/** Reads these targets; all processes that may be read if there are none. */
struct prb_error *prb_metrics_read(const struct prb_texts *targets,
				   struct prb_metrics *ret) PRB_MUST_CHECK;

/** Appends the metrics of these targets; of all processes that may be read if there are none. */
struct prb_error *prb_metrics_collect(const struct prb_texts *targets,
				      struct prb_str *ret) PRB_MUST_CHECK;

#endif
