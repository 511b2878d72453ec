/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/otlp.h"

#include <stdlib.h>

#include "base/protobuf.h"
#include "base/text.h"

/* Fields of the messages, by their names in opentelemetry/proto. */
enum {
	SCOPE = 1, /* of what is sent about one scope */
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
};

void prb_otlp_put_utf8(struct prb_str *s, unsigned field, const char *text)
{
	prb_auto_str struct prb_str right = {};

	for (const char *at = text ? text : ""; *at;) {
		uint32_t code_point;
		size_t length = prb_text_decode(at, &code_point);

		if (code_point == PRB_TEXT_INVALID)
			prb_str_puts(&right, "\xef\xbf\xbd");
		else
			prb_str_append(&right, at, length);
		at += length;
	}
	if (text)
		prb_proto_bytes(s, field, prb_str_text(&right), right.length);
	s->failed |= right.failed;
}

void prb_otlp_put_any_integer(struct prb_str *any, int64_t value)
{
	prb_proto_varint(any, PRB_OTLP_ANY_INT << 3);
	prb_proto_varint(any, (uint64_t)value);
}

void prb_otlp_put_attribute(struct prb_str *s, unsigned field, const char *key,
			    struct prb_str *value)
{
	struct prb_str attribute = {};

	prb_proto_text(&attribute, KEY_VALUE_KEY, key);
	prb_proto_message(&attribute, KEY_VALUE_VALUE, value);
	prb_proto_message(s, field, &attribute);
}

void prb_otlp_put_text(struct prb_str *s, unsigned field, const char *key, const char *value)
{
	struct prb_str any = {};

	prb_otlp_put_utf8(&any, PRB_OTLP_ANY_STRING, value);
	prb_otlp_put_attribute(s, field, key, &any);
}

void prb_otlp_put_integer(struct prb_str *s, unsigned field, const char *key, int64_t value)
{
	struct prb_str any = {};

	prb_otlp_put_any_integer(&any, value);
	prb_otlp_put_attribute(s, field, key, &any);
}

void prb_otlp_put_service(struct prb_str *resource)
{
	const char *service = getenv("OTEL_SERVICE_NAME");

	prb_otlp_put_text(resource, PRB_OTLP_RESOURCE_ATTRIBUTES, "service.name",
			  service && *service ? service : "python");
}

void prb_otlp_put_scope(struct prb_str *s)
{
	struct prb_str scope = {};

	prb_proto_text(&scope, SCOPE_NAME, "probing");
	prb_proto_text(&scope, SCOPE_VERSION, PRB_VERSION);
	prb_proto_message(s, SCOPE, &scope);
}
