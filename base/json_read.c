/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/json_read.h"

#include <ctype.h>
#include <string.h>

#include "base/checked.h"

static void pass_spaces(struct prb_json_reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' ||
				  *r->at == '\r' || *r->at == ','))
		r->at++;
}

static bool fail(struct prb_json_reader *r)
{
	r->failed = true;
	r->at = r->end;
	return false;
}

/** Passes @p c if it comes next. */
static bool pass(struct prb_json_reader *r, char c)
{
	pass_spaces(r);
	if (r->at >= r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

bool prb_json_enter(struct prb_json_reader *r, char bracket)
{
	if (pass(r, bracket))
		return true;
	prb_json_skip(r, NULL);
	return false;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/** Four digits; -1 if they are not there. */
static int32_t code_unit(struct prb_json_reader *r)
{
	int32_t value = 0;

	if (r->end - r->at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_digit(*r->at++);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

enum { HIGH = 0xd800, LOW = 0xdc00, SURROGATES_END = 0xe000, PLANE = 0x10000, UNKNOWN = 0xfffd };

static bool put_unit(struct prb_json_reader *r, struct prb_str *ret)
{
	int32_t one = code_unit(r), other;

	if (one < 0)
		return fail(r);
	if (one >= HIGH && one < LOW && r->end - r->at >= 6 && r->at[0] == '\\' &&
	    r->at[1] == 'u') {
		r->at += 2;
		other = code_unit(r);
		if (other < 0)
			return fail(r);
		one = other >= LOW && other < SURROGATES_END
			      ? PLANE + ((one - HIGH) << 10) + (other - LOW)
			      : UNKNOWN;
	}
	if (one >= HIGH && one < SURROGATES_END)
		one = UNKNOWN;
	/* What is read is text for C. */
	prb_str_put_utf8(ret, (uint32_t)(one ? one : UNKNOWN));
	return true;
}

static bool put_escape(struct prb_json_reader *r, struct prb_str *ret)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (r->at >= r->end)
		return fail(r);
	if (*r->at == 'u') {
		r->at++;
		return put_unit(r, ret);
	}
	found = memchr(from, *r->at, sizeof(from) - 1);
	if (!found)
		return fail(r);
	prb_str_putc(ret, to[found - from]);
	r->at++;
	return true;
}

/** The rest of a string, behind its quote. @p ret NULL: it is passed. */
static bool take_string(struct prb_json_reader *r, struct prb_str *ret)
{
	while (r->at < r->end && *r->at != '"') {
		const char *from = r->at;

		while (r->at < r->end && *r->at != '"' && *r->at != '\\' && *r->at)
			r->at++;
		if (ret)
			prb_str_append(ret, from, (size_t)(r->at - from));
		if (r->at >= r->end || *r->at == '"')
			break;
		if (!*r->at++)
			continue;
		if (ret ? !put_escape(r, ret) : r->at++ >= r->end)
			return fail(r);
	}
	if (r->at >= r->end)
		return fail(r);
	r->at++;
	return true;
}

bool prb_json_read_text(struct prb_json_reader *r, struct prb_str *ret)
{
	prb_str_truncate(ret, 0);
	if (pass(r, '"'))
		return take_string(r, ret);
	prb_json_skip(r, NULL);
	return false;
}

bool prb_json_member(struct prb_json_reader *r, struct prb_str *key)
{
	if (pass(r, '}'))
		return false;
	prb_str_truncate(key, 0);
	if (!pass(r, '"'))
		return fail(r);
	return take_string(r, key) && (pass(r, ':') || fail(r));
}

bool prb_json_item(struct prb_json_reader *r)
{
	if (pass(r, ']'))
		return false;
	return r->at < r->end || fail(r);
}

/** A number or a word. */
static bool pass_plain(struct prb_json_reader *r)
{
	const char *from = r->at;

	while (r->at < r->end && (isalnum((unsigned char)*r->at) || strchr("+-.", *r->at)) &&
	       *r->at)
		r->at++;
	return r->at > from || fail(r);
}

bool prb_json_skip(struct prb_json_reader *r, struct prb_json_span *ret)
{
	size_t depth = 0;
	const char *from;

	pass_spaces(r);
	from = r->at;
	do {
		pass_spaces(r);
		if (r->at >= r->end)
			return fail(r);
		if (*r->at == '{' || *r->at == '[')
			depth++;
		else if ((*r->at == '}' || *r->at == ']') && depth)
			depth--;
		else if (*r->at != ':' || !depth) {
			bool passed =
				*r->at == '"' ? (r->at++, take_string(r, NULL)) : pass_plain(r);

			if (!passed)
				return false;
			continue;
		}
		r->at++;
	} while (depth);
	if (ret)
		*ret = (struct prb_json_span){from, (size_t)(r->at - from)};
	return true;
}

/** Digits behind the point, as far as @p scale goes. */
static const char *put_fraction(const char *at, const char *end, int64_t scale, int64_t *value)
{
	for (; at < end && isdigit((unsigned char)*at); at++) {
		scale /= 10;
		*value += scale * (*at - '0');
	}
	return at;
}

bool prb_json_read_scaled(struct prb_json_reader *r, int64_t scale, int64_t *ret)
{
	struct prb_json_span span;
	int64_t value = 0;
	const char *at, *end;
	bool negative;

	if (!prb_json_skip(r, &span))
		return false;
	at = span.text;
	end = at + span.length;
	if (at < end && *at == '"') {
		at++;
		end--;
	}
	negative = at < end && *at == '-';
	at += negative;
	if (at >= end || !isdigit((unsigned char)*at))
		return false;
	for (; at < end && isdigit((unsigned char)*at); at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *at - '0', &value))
			return false;
	if (__builtin_mul_overflow(value, scale, &value) || value > INT64_MAX - scale)
		return false;
	if (at < end && *at == '.')
		at = put_fraction(at + 1, end, scale, &value);
	*ret = negative ? -value : value;
	return at == end;
}
