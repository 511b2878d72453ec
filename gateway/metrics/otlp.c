/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/metrics/otlp.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/protobuf.h"
#include "gateway/metrics/metrics.h"

/* Fields of the messages, by their names in opentelemetry/proto. */
enum {
	REQUEST_RESOURCE_METRICS = 1,
	RESOURCE_METRICS_SCOPE_METRICS = 2,
	SCOPE_METRICS_METRICS = 2,
	METRIC_NAME = 1,
	METRIC_DESCRIPTION = 2,
	METRIC_UNIT = 3,
	METRIC_GAUGE = 5,
	METRIC_SUM = 7,
	POINTS = 1, /* of a gauge, and of a sum */
	SUM_TEMPORALITY = 2,
	SUM_MONOTONIC = 3,
	POINT_START = 2,
	POINT_TIME = 3,
	POINT_DOUBLE = 4,
	POINT_ATTRIBUTES = 7,
	CUMULATIVE = 2,
};

void prb_otlp_deinit(struct prb_otlp *otlp)
{
	prb_str_deinit(&otlp->metrics);
	prb_str_deinit(&otlp->traces);
}

static void put_member(struct prb_str *s, unsigned field, const char *key, const json_t *value)
{
	struct prb_str any = {};

	if (json_is_string(value)) {
		prb_proto_bytes(&any, PRB_OTLP_ANY_STRING, json_string_value(value),
				json_string_length(value));
	} else if (json_is_integer(value)) {
		prb_otlp_put_integer(s, field, key, json_integer_value(value));
		return;
	} else if (json_is_real(value)) {
		prb_proto_double(&any, PRB_OTLP_ANY_DOUBLE, json_real_value(value));
	} else if (json_is_boolean(value)) {
		prb_proto_varint(&any, PRB_OTLP_ANY_BOOL << 3);
		prb_proto_varint(&any, json_is_true(value));
	} else {
		char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

		prb_proto_text(&any, PRB_OTLP_ANY_STRING, text);
		free(text);
	}
	prb_otlp_put_attribute(s, field, key, &any);
}

void prb_otlp_put_members(struct prb_str *s, unsigned field, const char *json)
{
	json_t *object = json ? json_loads(json, JSON_ALLOW_NUL, NULL) : NULL;
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) put_member(s, field, key, value);
	/* Attributes that were too long for their row and were cut. */
	if (json && !object)
		prb_otlp_put_text(s, field, "attributes", json);
	json_decref(object);
}

/** Attributes by OpenTelemetry's conventions. */
static void put_process_names(struct prb_str *resource, const struct prb_metric_process *process)
{
	const struct {
		const char *key, *value;
	} names[] = {
		{"process.owner", process->user},
		{"process.executable.name", process->executable},
		{"script", process->script},
		{"job", process->job},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (names[i].value)
			prb_otlp_put_text(resource, PRB_OTLP_RESOURCE_ATTRIBUTES, names[i].key,
					  names[i].value);
}

void prb_otlp_put_resource(struct prb_str *s, pid_t pid, long rank,
			   const struct prb_metric_process *process)
{
	struct prb_str resource = {};
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	prb_otlp_put_service(&resource);
	prb_otlp_put_text(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "host.name", host);
	prb_otlp_put_integer(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "process.pid", pid);
	if (rank >= 0)
		prb_otlp_put_integer(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "rank", rank);
	if (process)
		put_process_names(&resource, process);
	prb_proto_message(s, PRB_OTLP_RESOURCE, &resource);
}

static uint64_t nanoseconds(double seconds)
{
	return seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
}

static void put_point(struct prb_str *s, const struct prb_metric_sample *sample, double start,
		      double now)
{
	struct prb_str point = {};

	if (!strcmp(sample->metric->type, "counter"))
		prb_proto_fixed64(&point, POINT_START, nanoseconds(start));
	prb_proto_fixed64(&point, POINT_TIME, nanoseconds(now));
	prb_proto_double(&point, POINT_DOUBLE, sample->value);
	if (sample->metric->label)
		prb_otlp_put_text(&point, POINT_ATTRIBUTES,
				  sample->metric->otel_label ? sample->metric->otel_label
							     : sample->metric->label,
				  sample->label);
	prb_proto_message(s, POINTS, &point);
}

/** The samples from @p at on that are of one metric. */
static size_t put_metric(struct prb_str *s, const struct prb_metrics *metrics, size_t at,
			 double start, double now)
{
	const struct prb_metric_sample *first = &metrics->samples.items[at];
	const struct prb_metric *kind = first->metric;
	struct prb_str metric = {}, points = {};
	bool sum = !strcmp(kind->type, "counter");
	char name[64];

	snprintf(name, sizeof(name), "%s%s", kind->otel ? "" : "probing_",
		 kind->otel ? kind->otel : kind->name);
	prb_proto_text(&metric, METRIC_NAME, name);
	prb_proto_text(&metric, METRIC_DESCRIPTION, kind->help);
	prb_proto_text(&metric, METRIC_UNIT, kind->unit);
	for (; at < metrics->samples.count && metrics->samples.items[at].metric == kind &&
	       metrics->samples.items[at].pid == first->pid;
	     at++)
		put_point(&points, &metrics->samples.items[at], start, now);
	if (sum) {
		prb_proto_number(&points, SUM_TEMPORALITY, CUMULATIVE);
		prb_proto_number(&points, SUM_MONOTONIC, 1);
	}
	prb_proto_message(&metric, sum ? METRIC_SUM : METRIC_GAUGE, &points);
	prb_proto_message(s, SCOPE_METRICS_METRICS, &metric);
	return at;
}

/** The start of the process from its samples; 0 if unknown. */
static double start_of(const struct prb_metrics *metrics, pid_t pid)
{
	const struct prb_metric_sample *sample;

	prb_vec_each (sample, &metrics->samples)
		if (sample->pid == pid && !strcmp(sample->metric->name, "start_time_seconds"))
			return sample->value;
	return 0;
}

/** All samples of one process, from @p at on. */
static size_t put_process(struct prb_str *s, const struct prb_metrics *metrics, size_t at,
			  double now)
{
	const struct prb_metric_sample *first = &metrics->samples.items[at];
	struct prb_str resource = {}, scope = {};
	double start = start_of(metrics, first->pid);

	prb_otlp_put_resource(&resource, first->pid, first->rank,
			      prb_metrics_process(metrics, first->pid));
	prb_otlp_put_scope(&scope);
	while (at < metrics->samples.count && metrics->samples.items[at].pid == first->pid)
		at = put_metric(&scope, metrics, at, start, now);
	prb_proto_message(&resource, RESOURCE_METRICS_SCOPE_METRICS, &scope);
	prb_proto_message(s, REQUEST_RESOURCE_METRICS, &resource);
	return at;
}

static void put_finding(struct prb_str *s, const struct prb_finding *finding)
{
	struct prb_str point = {};

	prb_proto_fixed64(&point, POINT_TIME, nanoseconds(prb_clock_calendar_seconds()));
	prb_proto_double(&point, POINT_DOUBLE, 1);
	prb_otlp_put_text(&point, POINT_ATTRIBUTES, "rule", finding->rule);
	prb_otlp_put_text(&point, POINT_ATTRIBUTES, "confidence",
			  prb_confidence_name(finding->confidence));
	prb_proto_message(s, POINTS, &point);
}

void prb_otlp_put_findings(pid_t pid, const struct prb_findings *findings, struct prb_otlp *ret)
{
	struct prb_str resource = {}, scope = {}, metric = {}, points = {};
	struct prb_metric_process process;
	struct prb_finding *const *finding;

	if (!findings->list.count)
		return;
	prb_error_destroy(prb_metric_process_read(pid, &process));
	prb_otlp_put_resource(&resource, pid, process.rank, &process);
	prb_metric_process_deinit(&process);
	prb_otlp_put_scope(&scope);
	prb_proto_text(&metric, METRIC_NAME, "probing_finding");
	prb_proto_text(&metric, METRIC_DESCRIPTION, PRB_FINDING_HELP);
	prb_vec_each (finding, &findings->list) {
		if (prb_findings_is_repeated(findings, (size_t)(finding - findings->list.items)))
			continue;
		put_finding(&points, *finding);
		ret->samples++;
	}
	prb_proto_message(&metric, METRIC_GAUGE, &points);
	prb_proto_message(&scope, SCOPE_METRICS_METRICS, &metric);
	prb_proto_message(&resource, RESOURCE_METRICS_SCOPE_METRICS, &scope);
	prb_proto_message(&ret->metrics, REQUEST_RESOURCE_METRICS, &resource);
}

struct prb_error *prb_otlp_collect(const struct prb_texts *targets,
				   const struct prb_otlp_time *time, struct prb_otlp *ret)
{
	struct prb_metrics metrics = {};
	struct prb_error *err = prb_metrics_read(targets, &metrics);

	ret->samples = metrics.samples.count;
	for (size_t at = 0; !err && at < metrics.samples.count;) {
		const struct prb_metric_sample *first = &metrics.samples.items[at];
		const struct prb_otlp_process process = {first->pid, first->rank,
							 start_of(&metrics, first->pid),
							 prb_metrics_process(&metrics, first->pid)};

		at = put_process(&ret->metrics, &metrics, at, prb_clock_calendar_seconds());
		err = prb_otlp_put_spans(&process, time, ret);
	}
	prb_metrics_deinit(&metrics);
	if (!err && (ret->metrics.failed || ret->traces.failed))
		return prb_error_nomem();
	return err;
}
