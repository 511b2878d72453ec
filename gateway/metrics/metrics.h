/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Metrics of Python processes, also in the text format of Prometheus.
 *
 * Names and labels are few and fixed: a process is its pid and its rank. What it chose itself, its
 * name, is in `probing_process_info` alone, so that a new one does not begin all series anew.
 * Unreadable values have no sample; `probing_up` says so.
 *
 * The caller has read the threads. What it did not read again is not read here either.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_GATEWAY_METRICS_METRICS_H
#define PRB_GATEWAY_METRICS_METRICS_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "dump/dump.h"
#include "gateway/metrics/process.h"
#include "lib/probing.h"
#include "target/proc/process.h"
#include "target/target.h"

/** Its name is without "probing_"; samples have the label besides the process. */
struct prb_metric {
	const char *name, *type, *label, *help;
	/** Its name, label and unit in OpenTelemetry's conventions. NULL: as above, with
	 * "probing_"; as above; none. */
	const char *otel, *otel_label, *unit;
};

struct prb_metric_sample {
	const struct prb_metric *metric;
	char label[24]; /**< one of few words, or a number */
	double value;
};

/** A process, with its samples in the order of the metrics. */
struct prb_metrics_one {
	struct prb_metric_process process;
	PRB_VEC(struct prb_metric_sample) samples;
	uint64_t start_ticks;	 /**< another process has the pid again with others */
	double start;		 /**< since the epoch; 0: unknown */
	double read;		 /**< as in the reading */
	bool seen;		 /**< in this round */
	struct probing *session; /**< open for the next time, or NULL */
};

/** What was read of all processes, also in the rounds before. Starts as {}. */
struct prb_metrics {
	PRB_VEC(struct prb_metrics_one *) list;
};
void prb_metrics_deinit(struct prb_metrics *metrics);
#define prb_auto_metrics __attribute__((cleanup(prb_metrics_deinit)))

/** A process as its threads were read. All is borrowed. */
struct prb_metrics_reading {
	const struct prb_process *process;
	struct prb_target *target;   /**< NULL: it is not open */
	const struct prb_dump *dump; /**< with waits and times of sleep; NULL: it cannot be read */
	const struct prb_pythons *pythons;
	double read; /**< when, monotonic; the same as in the round before: it was not read again */
	bool server; /**< it is a process of an inference server */
	bool steps;  /**< it has recorded training steps */
};

/** Begins a round, at the end of which processes without a reading are forgotten. */
void prb_metrics_begin(struct prb_metrics *metrics);
/** Reads the rest of the process, if its threads were read again. PRB_ERROR_NOMEM. */
struct prb_error *prb_metrics_add(struct prb_metrics *metrics,
				  const struct prb_metrics_reading *reading) PRB_MUST_CHECK;
void prb_metrics_end(struct prb_metrics *metrics);

/** A sample's value @p now (monotonic): who sleeps does so for longer than when it was read. */
double prb_metrics_value(const struct prb_metrics_one *one, const struct prb_metric_sample *sample,
			 double now);

/** Appends the text; reading took @p seconds. */
void prb_metrics_text(const struct prb_metrics *metrics, double seconds, struct prb_str *ret);

/* read.c */

/** The metrics of processes; ends with an entry without a name. */
extern const struct prb_metric prb_metric_families[];
/** Replaces the samples by those of the reading. PRB_ERROR_NOMEM. */
struct prb_error *prb_metrics_read(struct prb_metrics_one *one,
				   const struct prb_metrics_reading *reading) PRB_MUST_CHECK;

#endif
