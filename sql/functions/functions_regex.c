/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Regular expressions in SQL. A pattern that is the same in each row is compiled once. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/functions/functions_private.h"
#include "base/regex.h"

/** Kept with the pattern of a call from row to row. */
struct compiled {
	struct prb_regex *regex;
	bool everywhere; /* flag g: all matches, not the first */
};

static void compiled_destroy(void *data)
{
	struct compiled *compiled = data;

	prb_regex_destroy(compiled->regex);
	free(compiled);
}

/** One call; what it compiled is SQLite's to keep when it is over. */
struct call {
	sqlite3_context *context;
	sqlite3_value **values;
	int pattern, flags; /* arguments; flags -1: there are none */
	struct compiled *compiled;
	bool fresh;
};

static void call_end(struct call *call)
{
	static char same_flags;

	if (!call->fresh)
		return;
	sqlite3_set_auxdata(call->context, call->pattern, call->compiled, compiled_destroy);
	/* Kept only while the flags are the same in each row. */
	if (call->flags >= 0)
		sqlite3_set_auxdata(call->context, call->flags, &same_flags, NULL);
}

static struct prb_error *read_flags(const char *text, unsigned *flags, bool *everywhere)
{
	for (; *text; text++) {
		switch (*text) {
		case 'i':
			*flags |= PRB_REGEX_CASELESS;
			break;
		case 'm':
			*flags |= PRB_REGEX_MULTILINE;
			break;
		case 's':
			*flags |= PRB_REGEX_DOTALL;
			break;
		case 'x':
			*flags |= PRB_REGEX_EXTENDED;
			break;
		case 'c':
			*flags &= ~PRB_REGEX_CASELESS;
			break;
		case 'g':
			*everywhere = true;
			break;
		default:
			return prb_error_create(PRB_ERROR_USAGE,
						"'%c' is not a flag of a regular expression; "
						"use i, c, m, s, x or g",
						*text > ' ' && *text < 0x7f ? *text : '?');
		}
	}
	return NULL;
}

static struct prb_error *compile(const struct call *call, struct compiled *compiled)
{
	sqlite3_value *pattern = call->values[call->pattern];
	const char *text = (const char *)sqlite3_value_text(pattern), *letters = "";
	unsigned flags = 0;

	if (call->flags >= 0)
		letters = (const char *)sqlite3_value_text(call->values[call->flags]);
	if (!text || !letters)
		return prb_error_nomem();
	PRB_TRY(read_flags(letters, &flags, &compiled->everywhere));
	return prb_regex_compile(text, (size_t)sqlite3_value_bytes(pattern), flags,
				 &compiled->regex);
}

/** Begins a call of @p count arguments; false if one is NULL or, which is reported, wrong. */
static bool call_begin(struct call *call, int count)
{
	struct prb_error *err;

	for (int i = 0; i < count; i++)
		if (sqlite3_value_type(call->values[i]) == SQLITE_NULL)
			return false;
	call->compiled = sqlite3_get_auxdata(call->context, call->pattern);
	if (call->compiled && (call->flags < 0 || sqlite3_get_auxdata(call->context, call->flags)))
		return true;
	call->compiled = calloc(1, sizeof(*call->compiled));
	err = call->compiled ? compile(call, call->compiled) : prb_error_nomem();
	if (err) {
		free(call->compiled);
		prb_function_fail(call->context, err);
		return false;
	}
	call->fresh = true;
	return true;
}

#define auto_call __attribute__((cleanup(call_end))) struct call

static void result_matches(struct call *call, sqlite3_value *value)
{
	const char *text;
	struct prb_error *err;
	size_t length;
	bool found;

	if (!prb_function_bytes(call->context, value, &text, &length))
		return;
	err = prb_regex_match(call->compiled->regex, text, length, 0, &found);
	if (err)
		prb_function_fail(call->context, err);
	else
		sqlite3_result_int(call->context, found);
}

/** regexp(pattern, text): what `text REGEXP pattern` calls */
static void call_regexp(sqlite3_context *context, int count, sqlite3_value **values)
{
	auto_call call = {context, values, 0, -1};

	if (call_begin(&call, count))
		result_matches(&call, values[1]);
}

/** regexp_like(text, pattern [, flags]) */
static void call_like(sqlite3_context *context, int count, sqlite3_value **values)
{
	auto_call call = {context, values, 1, count > 2 ? 2 : -1};

	if (call_begin(&call, count))
		result_matches(&call, values[0]);
}

/** regexp_substr(text, pattern [, group]): NULL if there is no match */
static void call_substr(sqlite3_context *context, int count, sqlite3_value **values)
{
	auto_call call = {context, values, 1, -1};
	struct prb_regex_span span;
	sqlite3_int64 group = 0;
	struct prb_error *err;
	const char *text;
	size_t length;
	bool found;

	if (!call_begin(&call, count) || !prb_function_bytes(context, values[0], &text, &length))
		return;
	if (count > 2)
		group = sqlite3_value_int64(values[2]);
	err = prb_regex_match(call.compiled->regex, text, length, 0, &found);
	if (err)
		prb_function_fail(context, err);
	else if (found && group >= 0 && group <= prb_regex_group_count(call.compiled->regex) &&
		 prb_regex_group(call.compiled->regex, (unsigned)group, &span))
		sqlite3_result_text64(context, text + span.start, span.end - span.start,
				      SQLITE_TRANSIENT, SQLITE_UTF8);
}

/** Appends a replacement: \1 to \9 are groups, \& is all of the match, \\ a backslash. */
static void put_replacement(struct prb_str *s, const struct prb_regex *regex, const char *text,
			    const char *replacement, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		struct prb_regex_span span;
		char next = i + 1 < length ? replacement[i + 1] : '\0';

		if (replacement[i] != '\\' || !next) {
			prb_str_putc(s, replacement[i]);
			continue;
		}
		i++;
		if (next != '&' && !(next >= '0' && next <= '9'))
			prb_str_putc(s, next);
		else if (prb_regex_group(regex, next == '&' ? 0 : (unsigned)(next - '0'), &span))
			prb_str_append(s, text + span.start, span.end - span.start);
	}
}

/** A text in which matches are replaced. */
struct replacing {
	const char *text, *by;
	size_t length, by_length;
	size_t limit; /* of the result, in bytes */
	const struct prb_functions_host *host;
};

static struct prb_error *replace(const struct replacing *r, const struct compiled *compiled,
				 struct prb_str *s)
{
	struct prb_regex_span span = {};
	size_t done = 0;
	bool found;

	PRB_TRY(prb_regex_match(compiled->regex, r->text, r->length, 0, &found));
	while (found && prb_regex_group(compiled->regex, 0, &span)) {
		/* \K and lookbehind may go back; text is replaced once. */
		size_t start = PRB_MAX(span.start, done);

		prb_str_append(s, r->text + done, start - done);
		put_replacement(s, compiled->regex, r->text, r->by, r->by_length);
		done = PRB_MAX(span.end, start);
		if (s->length > r->limit)
			return prb_error_create(PRB_ERROR_USAGE,
						"regexp_replace(): the result is over %zu bytes",
						r->limit);
		if (r->host->cancelled && r->host->cancelled(r->host->context))
			return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
		if (!compiled->everywhere)
			break;
		/* After an empty match the next one is not the same again. */
		PRB_TRY(prb_regex_match_again(compiled->regex, r->text, r->length, done, &found));
	}
	prb_str_append(s, r->text + done, r->length - done);
	return NULL;
}

/** regexp_replace(text, pattern, replacement [, flags]) */
static void call_replace(sqlite3_context *context, int count, sqlite3_value **values)
{
	auto_call call = {context, values, 1, count > 3 ? 3 : -1};
	struct replacing r = {.host = sqlite3_user_data(context)};
	prb_auto_str struct prb_str s = {};
	struct prb_error *err;

	if (!call_begin(&call, count) ||
	    !prb_function_bytes(context, values[0], &r.text, &r.length) ||
	    !prb_function_bytes(context, values[2], &r.by, &r.by_length))
		return;
	r.limit =
		(size_t)sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1);
	err = replace(&r, call.compiled, &s);
	if (err)
		prb_function_fail(context, err);
	else
		prb_function_text(context, &s);
}

const struct prb_function prb_regex_functions[] = {
	{"regexp", 2, call_regexp},	     {"regexp_like", 2, call_like},
	{"regexp_like", 3, call_like},	     {"regexp_substr", 2, call_substr},
	{"regexp_substr", 3, call_substr},   {"regexp_replace", 3, call_replace},
	{"regexp_replace", 4, call_replace}, {},
};
