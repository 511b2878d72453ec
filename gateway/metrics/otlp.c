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

void prb_otlp_put_resource(struct prb_str *s, const struct prb_metric_process *process)
{
	struct prb_str resource = {};
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	prb_otlp_put_service(&resource);
	prb_otlp_put_text(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "host.name", host);
	prb_otlp_put_integer(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "process.pid", process->pid);
	if (process->rank >= 0)
		prb_otlp_put_integer(&resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "rank",
				     process->rank);
	put_process_names(&resource, process);
	prb_proto_message(s, PRB_OTLP_RESOURCE, &resource);
}

static uint64_t nanoseconds(double seconds)
{
	return seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
}

static void put_point(struct prb_str *s, const struct prb_metrics_one *one,
		      const struct prb_metric_sample *sample)
{
	struct prb_str point = {};

	if (!strcmp(sample->metric->type, "counter"))
		prb_proto_fixed64(&point, POINT_START, nanoseconds(one->start));
	prb_proto_fixed64(&point, POINT_TIME, nanoseconds(prb_clock_calendar_seconds()));
	prb_proto_double(&point, POINT_DOUBLE, prb_metrics_value(one, sample, prb_clock_seconds()));
	if (sample->metric->label)
		prb_otlp_put_text(&point, POINT_ATTRIBUTES,
				  sample->metric->otel_label ? sample->metric->otel_label
							     : sample->metric->label,
				  sample->label);
	prb_proto_message(s, POINTS, &point);
}

static void put_metric(struct prb_str *s, const struct prb_metrics_one *one,
		       const struct prb_metric *kind)
{
	struct prb_str metric = {}, points = {};
	bool sum = !strcmp(kind->type, "counter");
	const struct prb_metric_sample *sample;
	char name[64];

	prb_vec_each (sample, &one->samples)
		if (sample->metric == kind)
			put_point(&points, one, sample);
	if (!points.length)
		return;
	snprintf(name, sizeof(name), "%s%s", kind->otel ? "" : "probing_",
		 kind->otel ? kind->otel : kind->name);
	prb_proto_text(&metric, METRIC_NAME, name);
	prb_proto_text(&metric, METRIC_DESCRIPTION, kind->help);
	prb_proto_text(&metric, METRIC_UNIT, kind->unit);
	if (sum) {
		prb_proto_number(&points, SUM_TEMPORALITY, CUMULATIVE);
		prb_proto_number(&points, SUM_MONOTONIC, 1);
	}
	prb_proto_message(&metric, sum ? METRIC_SUM : METRIC_GAUGE, &points);
	prb_proto_message(s, SCOPE_METRICS_METRICS, &metric);
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

static void put_findings(struct prb_str *s, const struct prb_otlp_findings *findings)
{
	struct prb_str metric = {}, points = {};

	if (!findings->list.count)
		return;
	prb_proto_text(&metric, METRIC_NAME, "probing_finding");
	prb_proto_text(&metric, METRIC_DESCRIPTION, PRB_FINDING_HELP);
	for (size_t i = 0; i < findings->list.count; i++)
		put_finding(&points, findings->list.items[i]);
	prb_proto_message(&metric, METRIC_GAUGE, &points);
	prb_proto_message(s, SCOPE_METRICS_METRICS, &metric);
}

struct prb_error *prb_otlp_put_process(const struct prb_metrics_one *one,
				       const struct prb_otlp_findings *findings,
				       const struct prb_otlp_time *time, struct prb_otlp *ret)
{
	struct prb_str resource = {}, scope = {};

	ret->samples += one->samples.count + findings->list.count;
	prb_otlp_put_resource(&resource, &one->process);
	prb_otlp_put_scope(&scope);
	for (const struct prb_metric *kind = prb_metric_families; kind->name; kind++)
		put_metric(&scope, one, kind);
	put_findings(&scope, findings);
	prb_proto_message(&resource, RESOURCE_METRICS_SCOPE_METRICS, &scope);
	prb_proto_message(&ret->metrics, REQUEST_RESOURCE_METRICS, &resource);
	PRB_TRY(prb_otlp_put_spans(one, time, ret));
	return ret->metrics.failed || ret->traces.failed ? prb_error_nomem() : NULL;
}
