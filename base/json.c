/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

static void put_key(struct prb_json *json, const char *key)
{
	if (json->comma)
		prb_str_putc(json->out, ',');
	json->comma = true;
	if (key) {
		prb_json_quote(json->out, key, strlen(key));
		prb_str_putc(json->out, ':');
	}
}

void prb_json_open(struct prb_json *json, const char *key, char bracket)
{
	put_key(json, key);
	prb_str_putc(json->out, bracket);
	json->comma = false;
}

void prb_json_close(struct prb_json *json, char bracket)
{
	prb_str_putc(json->out, bracket);
	json->comma = true;
}

void prb_json_null(struct prb_json *json, const char *key)
{
	put_key(json, key);
	prb_str_append(json->out, "null", 4);
}

void prb_json_bool(struct prb_json *json, const char *key, bool value)
{
	put_key(json, key);
	prb_str_puts(json->out, value ? "true" : "false");
}

void prb_json_integer(struct prb_json *json, const char *key, int64_t value)
{
	put_key(json, key);
	prb_str_printf(json->out, "%" PRId64, value);
}

void prb_json_natural(struct prb_json *json, const char *key, int64_t value)
{
	if (value < 0)
		prb_json_null(json, key);
	else
		prb_json_integer(json, key, value);
}

void prb_json_signed(struct prb_json *json, const char *key, double value, int digits)
{
	if (!isfinite(value)) {
		prb_json_null(json, key);
		return;
	}
	put_key(json, key);
	prb_str_printf(json->out, "%.*f", digits, value);
}

void prb_json_real(struct prb_json *json, const char *key, double value, int digits)
{
	prb_json_signed(json, key, value >= 0 ? value : NAN, digits);
}

/** A code point that is not plain, as JSON escapes it. */
static void put_escaped(struct prb_str *s, uint32_t c, unsigned char byte)
{
	if (c == PRB_TEXT_INVALID)
		prb_str_printf(s, "\\\\udc%02x", byte);
	else if (c == '"' || c == '\\')
		prb_str_printf(s, "\\%c", (char)c);
	else if (c == '\n')
		prb_str_append(s, "\\n", 2);
	else if (c < 0x10000)
		prb_str_printf(s, "\\u%04x", c);
	else
		prb_str_printf(s, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
			       0xdc00 + ((c - 0x10000) & 0x3ff));
}

void prb_json_quote(struct prb_str *s, const char *text, size_t length)
{
	const char *end = text + length;

	prb_str_putc(s, '"');
	while (text < end) {
		size_t plain = 0;
		uint32_t c;

		while (text + plain < end && text[plain] >= ' ' && text[plain] < 0x7f &&
		       text[plain] != '"' && text[plain] != '\\')
			plain++;
		prb_str_append(s, text, plain);
		text += plain;
		if (text == end)
			break;

		size_t used = prb_text_decode(text, &c);
		put_escaped(s, c, (unsigned char)*text);
		text += used;
	}
	prb_str_putc(s, '"');
}

void prb_json_bytes(struct prb_json *json, const char *key, const char *value, size_t length)
{
	if (!value) {
		prb_json_null(json, key);
		return;
	}
	put_key(json, key);
	prb_json_quote(json->out, value, length);
}

void prb_json_text(struct prb_json *json, const char *key, const char *value)
{
	prb_json_bytes(json, key, value, value ? strlen(value) : 0);
}
