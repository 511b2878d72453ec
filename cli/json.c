/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/json.h"

#include "cli/text.h"
#include "dwarf/base/str.h"

json_t *prb_json_text(const char *text)
{
	prb_auto_str struct prb_str clean = {};

	if (!text)
		return json_null();

	json_t *json = json_string(text);
	if (json)
		return json;
	while (*text) {
		uint32_t c;
		size_t length = prb_text_decode(text, &c);

		if (c == PRB_TEXT_INVALID)
			c = 0xdc00U + (unsigned char)*text;
		prb_str_put_utf8(&clean, c);
		text += length;
	}
	return clean.failed ? NULL : json_string(prb_str_text(&clean));
}

static struct prb_error *write_value(json_t *value, size_t flags, FILE *out)
{
	if (!value)
		return prb_error_nomem();

	int rc = json_dumpf(value, out,
			    JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(16) | flags);
	json_decref(value);
	return rc && !ferror(out) ? prb_error_nomem() : NULL;
}

struct prb_error *prb_json_write(json_t *value, FILE *out)
{
	return write_value(value, JSON_ENCODE_ANY, out);
}

struct prb_error *prb_json_write_members(json_t *object, FILE *out)
{
	return write_value(object, JSON_EMBED, out);
}
