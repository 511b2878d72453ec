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
#include "gateway/metrics/metrics.h"
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

/** The findings about one process; borrowed. Starts as {}. */
struct prb_otlp_findings {
	PRB_VEC(const struct prb_finding *) list;
};

/** Puts the samples of a process, the gauge "probing_finding", 1 for each, and its spans. */
struct prb_error *prb_otlp_put_process(const struct prb_metrics_one *one,
				       const struct prb_otlp_findings *findings,
				       const struct prb_otlp_time *time,
				       struct prb_otlp *ret) PRB_MUST_CHECK;

/** The members of a JSON object, as attributes. */
void prb_otlp_put_members(struct prb_str *s, unsigned field, const char *json);

/** The resource of a process. */
void prb_otlp_put_resource(struct prb_str *s, const struct prb_metric_process *process);

/** Appends the spans of one process, with its resource. */
struct prb_error *prb_otlp_put_spans(const struct prb_metrics_one *process,
				     const struct prb_otlp_time *time,
				     struct prb_otlp *ret) PRB_MUST_CHECK;

#endif
