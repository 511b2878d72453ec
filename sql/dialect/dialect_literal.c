/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Literals and calls of other databases: interval '…', TIMESTAMP '…', EXTRACT, WITHIN GROUP. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/dialect/dialect_private.h"
#include "sql/functions/functions_time.h"

static enum prb_token_kind kind_of(const struct prb_translation *t, size_t i)
{
	return i < t->tokens.count ? t->tokens.items[i].kind : PRB_TOKEN_SPACE;
}

/** The shortest text that is exactly this number; a negative one cannot become a comment. */
static void put_number(struct prb_translation *t, size_t i, double value)
{
	char text[40];

	/* Up to 15 digits are exact; without an exponent while it is no longer. */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), value < 0 ? "(%.*g)" : "%.*g", digits, value);
		if (strtod(text + (value < 0), NULL) == value)
			break;
	}
	prb_translation_put(t, i, text);
}

/** Writes an interval of @p length tokens, or notes why it is none. */
static size_t put_interval(struct prb_translation *t, size_t i, size_t length,
			   struct prb_error *err, double seconds)
{
	if (err)
		prb_translation_refuse(t, i, err);
	else
		put_number(t, i, seconds);
	return length;
}

/** True if the string that is token @p i holds a plain number: its unit follows. */
static bool is_plain_number(const struct prb_translation *t, size_t i)
{
	const struct prb_token *token = &t->tokens.items[i];

	for (size_t at = token->start + 1; at + 1 < token->end; at++)
		if (!strchr("0123456789.-+ ", t->script[at]))
			return false;
	return token->end - token->start > 2;
}

/** interval '5 minutes', interval '5' minute, INTERVAL 5 MINUTE */
size_t prb_translate_interval(struct prb_translation *t, size_t i)
{
	prb_auto_str struct prb_str amount = {};
	struct prb_error *err;
	double seconds = 0;
	size_t sign;

	if (!prb_translation_is(t, i, "interval"))
		return 0;
	sign = prb_translation_is(t, i + 1, "-") || prb_translation_is(t, i + 1, "+");
	if (kind_of(t, i + 1) == PRB_TOKEN_STRING) {
		bool unit = kind_of(t, i + 2) == PRB_TOKEN_WORD && is_plain_number(t, i + 1);

		prb_translation_value(t, i + 1, &amount);
		if (unit) {
			const struct prb_token *word = &t->tokens.items[i + 2];
			double known;

			err = prb_interval_unit(t->script + word->start, word->end - word->start,
						&known);
			unit = !err || strstr(err->message, "no fixed length");
			prb_error_destroy(err);
		}
		if (unit) {
			prb_str_putc(&amount, ' ');
			prb_translation_value(t, i + 2, &amount);
		}
		err = prb_interval_parse(prb_str_text(&amount), amount.length, &seconds);
		return put_interval(t, i, 2 + unit, err, seconds);
	}
	if (kind_of(t, i + 1 + sign) != PRB_TOKEN_NUMBER ||
	    kind_of(t, i + 2 + sign) != PRB_TOKEN_WORD)
		return 0;
	if (sign)
		prb_translation_value(t, i + 1, &amount);
	prb_translation_value(t, i + 1 + sign, &amount);
	prb_str_putc(&amount, ' ');
	prb_translation_value(t, i + 2 + sign, &amount);
	err = prb_interval_parse(prb_str_text(&amount), amount.length, &seconds);
	return put_interval(t, i, 3 + sign, err, seconds);
}

/** TIMESTAMP '2026-01-02 03:04:05' */
size_t prb_translate_timestamp(struct prb_translation *t, size_t i)
{
	prb_auto_str struct prb_str text = {};
	double time;

	if (kind_of(t, i + 1) != PRB_TOKEN_STRING ||
	    !(prb_translation_is(t, i, "timestamp") || prb_translation_is(t, i, "timestamptz") ||
	      prb_translation_is(t, i, "date")))
		return 0;
	prb_translation_value(t, i + 1, &text);
	if (!prb_timestamp_parse(prb_str_text(&text), text.length, &time))
		return 0;
	put_number(t, i, time);
	return 2;
}

/** EXTRACT(hour FROM time) */
size_t prb_translate_extract(struct prb_translation *t, size_t i)
{
	/* EXTRACT's second has a fraction, second()'s has none. */
	static const char *const plain[] = {"year", "month", "day", "hour", "minute", "dow"};
	prb_auto_str struct prb_str part = {};
	size_t close;

	if (!prb_translation_is(t, i, "extract") || !prb_translation_is(t, i + 1, "(") ||
	    !prb_translation_is(t, i + 3, "from"))
		return 0;
	close = t->partners[i + 1];
	if (close == PRB_NO_TOKEN || close < i + 5 ||
	    !(prb_translation_is_name(t, i + 2) || kind_of(t, i + 2) == PRB_TOKEN_STRING))
		return 0;
	prb_translation_value(t, i + 2, &part);
	if (!prb_time_part_known(prb_str_text(&part))) {
		prb_str_truncate(&part, PRB_MIN(part.length, (size_t)60));
		prb_translation_refuse(
			t, i + 2,
			prb_error_hint(
				prb_error_create(PRB_ERROR_USAGE, "cannot extract '%s' from a time",
						 prb_str_text(&part)),
				"year, quarter, month, week, day, doy, dow, isodow, hour, minute, "
				"second, milliseconds, microseconds and epoch can be"));
		return close + 1 - i;
	}
	for (size_t n = 0; n < PRB_ARRAY_SIZE(plain); n++)
		if (!strcasecmp(plain[n], prb_str_text(&part))) {
			prb_translation_put(t, i, plain[n]);
			prb_translation_put(t, i + 1, "(");
			prb_translation_write(t, i + 4, close + 1);
			return close + 1 - i;
		}
	prb_translation_put(t, i, "date_part(");
	prb_translation_put_string(t, i + 2, prb_str_text(&part));
	prb_translation_put(t, i + 3, ", ");
	prb_translation_write(t, i + 4, close + 1);
	return close + 1 - i;
}

/** True if there is a comma in tokens [from, to) outside of parentheses. */
static bool has_comma(const struct prb_translation *t, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		if (prb_translation_is(t, i, ","))
			return true;
		if (prb_translation_is(t, i, "(") && t->partners[i] != PRB_NO_TOKEN)
			i = t->partners[i];
	}
	return false;
}

/** percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC) */
size_t prb_translate_percentile(struct prb_translation *t, size_t i)
{
	const char *name = "percentile_cont(";
	size_t close, group, end, to;
	bool descending;

	if (prb_translation_is(t, i, "percentile_disc"))
		name = "percentile_disc(";
	else if (!prb_translation_is(t, i, "percentile_cont"))
		return 0;
	close = prb_translation_is(t, i + 1, "(") ? t->partners[i + 1] : PRB_NO_TOKEN;
	if (close == PRB_NO_TOKEN || close == i + 2 || has_comma(t, i + 2, close) ||
	    !prb_translation_is(t, close + 1, "within") ||
	    !prb_translation_is(t, close + 2, "group") || !prb_translation_is(t, close + 3, "("))
		return 0;
	group = close + 3;
	end = to = t->partners[group];
	if (end == PRB_NO_TOKEN || !prb_translation_is(t, group + 1, "order") ||
	    !prb_translation_is(t, group + 2, "by") || has_comma(t, group + 3, end))
		return 0;
	/* NULLs are not counted at all. */
	if (prb_translation_is(t, to - 2, "nulls"))
		to -= 2;
	descending = prb_translation_is(t, to - 1, "desc");
	if (descending || prb_translation_is(t, to - 1, "asc"))
		to--;
	if (to <= group + 3)
		return 0;
	prb_translation_put(t, i, name);
	prb_translation_write(t, group + 3, to);
	prb_translation_put(t, close, ", ");
	prb_translation_write(t, i + 2, close);
	prb_translation_put(t, end, descending ? ", 'desc')" : ")");
	return end + 1 - i;
}
