/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Metrics and spans for OpenTelemetry: requests of OTLP, as Protocol Buffers.
 *
 * Spans come from probing.span(), once they have ended; a trace is a span with all that are in it.
 * Events belong to the span that they happened in. All is read from outside, out of rings. Metrics
 * come from gateway/metrics/metrics.h.
 */
#ifndef PRB_GATEWAY_METRICS_OTLP_H
#define PRB_GATEWAY_METRICS_OTLP_H

#include <stdint.h>

#include "base/error.h"
#include "base/otlp.h"
#include "base/str.h"
#include "base/vec.h"
#include "command/command.h"
#include "gateway/metrics/process.h"
#include "judge/finding.h"

/** The requests to send; starts as {}. */
struct prb_otlp {
	struct prb_str metrics, traces; /**< the body of a request each; empty: nothing */
	size_t samples, spans;
};
void prb_otlp_deinit(struct prb_otlp *otlp);

/** Spans that ended after `since`, and not after `until`; both since the epoch. */
struct prb_otlp_time {
	double since, until;
};

/**
 * Reads these targets, or all processes that may be read, with the spans of that time.
 * Processes that cannot be read have the sample "up" alone.
 */
struct prb_error *prb_otlp_collect(const struct prb_texts *targets,
				   const struct prb_otlp_time *time,
				   struct prb_otlp *ret) PRB_MUST_CHECK;

/**
 * Appends a gauge "probing_finding" of a process: 1 for each of its findings, with rule and
 * confidence. None is nothing.
 */
void prb_otlp_put_findings(pid_t pid, const struct prb_findings *findings, struct prb_otlp *ret);

/** The members of a JSON object, as attributes. */
void prb_otlp_put_members(struct prb_str *s, unsigned field, const char *json);

/** The resource of a process; @p rank of -1: none; @p process is what it is called, or NULL. */
void prb_otlp_put_resource(struct prb_str *s, pid_t pid, long rank,
			   const struct prb_metric_process *process);

struct prb_otlp_process {
	pid_t pid;
	long rank;				/**< -1: none */
	double start;				/**< since the epoch; 0: unknown */
	const struct prb_metric_process *names; /**< or NULL */
};

/** Appends the spans of one process, with its resource. */
struct prb_error *prb_otlp_put_spans(const struct prb_otlp_process *process,
				     const struct prb_otlp_time *time,
				     struct prb_otlp *ret) PRB_MUST_CHECK;

#endif
