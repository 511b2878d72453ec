/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The parts of OpenTelemetry's messages that metrics, spans and profiles share: attributes,
 * the service and the instrumentation scope. They are appended to a message (base/protobuf.h).
 */
#ifndef PRB_BASE_OTLP_H
#define PRB_BASE_OTLP_H

#include <stdint.h>

#include "base/str.h"

/** Fields of the messages, by their names in opentelemetry/proto. */
enum {
	PRB_OTLP_RESOURCE = 1,		  /**< of what is sent about one resource */
	PRB_OTLP_RESOURCE_ATTRIBUTES = 1, /**< of the resource itself */
	PRB_OTLP_ANY_STRING = 1,
	PRB_OTLP_ANY_BOOL = 2,
	PRB_OTLP_ANY_INT = 3,
	PRB_OTLP_ANY_DOUBLE = 4,
};

/** A text; broken UTF-8, which receivers refuse, becomes U+FFFD. NULL is nothing. */
void prb_otlp_put_utf8(struct prb_str *s, unsigned field, const char *text);

/** An integer as AnyValue, also if it is zero: zero is a value, too. */
void prb_otlp_put_any_integer(struct prb_str *any, int64_t value);

/** One attribute, as @p field of @p s; frees the AnyValue @p value. */
void prb_otlp_put_attribute(struct prb_str *s, unsigned field, const char *key,
			    struct prb_str *value);
void prb_otlp_put_text(struct prb_str *s, unsigned field, const char *key, const char *value);
void prb_otlp_put_integer(struct prb_str *s, unsigned field, const char *key, int64_t value);

/** The attribute service.name of a resource: $OTEL_SERVICE_NAME, or "python". */
void prb_otlp_put_service(struct prb_str *resource);

/** The instrumentation scope. */
void prb_otlp_put_scope(struct prb_str *s);

#endif
