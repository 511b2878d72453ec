/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times and lengths of time from text. */
#include <math.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "sql/functions/functions_time.h"

/* Of the user's words, in messages. */
enum { SHOWN_MAX = 60 };

struct unit {
	const char *name;
	double seconds; /* 0: of no fixed length */
};

static const struct unit units[] = {
	{"us", 1e-6},	{"usec", 1e-6},	  {"microsecond", 1e-6},
	{"ms", 1e-3},	{"msec", 1e-3},	  {"millisecond", 1e-3},
	{"s", 1},	{"sec", 1},	  {"second", 1},
	{"m", 60},	{"min", 60},	  {"minute", 60},
	{"h", 3600},	{"hr", 3600},	  {"hour", 3600},
	{"d", 86400},	{"day", 86400},	  {"w", 604800},
	{"wk", 604800}, {"week", 604800}, {"mon", 0},
	{"month", 0},	{"quarter", 0},	  {"y", 0},
	{"yr", 0},	{"year", 0},	  {"decade", 0},
	{"century", 0}, {"centurie", 0},  {"millennium", 0},
};

static char *shown(const char *text, size_t length)
{
	prb_auto_free char *start = strndup(text, PRB_MIN(length, (size_t)SHOWN_MAX));
	prb_auto_str struct prb_str s = {};

	if (!start)
		return NULL;
	prb_text_escape(&s, start);
	if (length > SHOWN_MAX)
		prb_str_puts(&s, "…");
	return prb_str_take(&s);
}

static const struct unit *find_unit(const char *word, size_t length)
{
	/* "minutes" is "minute". */
	size_t singular = length > 2 && (word[length - 1] | 0x20) == 's' ? length - 1 : length;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(units); i++) {
		size_t own = strlen(units[i].name);

		if ((own == length || own == singular) && !strncasecmp(word, units[i].name, own))
			return &units[i];
	}
	return NULL;
}

struct prb_error *prb_interval_unit(const char *word, size_t length, double *ret)
{
	const struct unit *unit = find_unit(word, length);
	prb_auto_free char *text = shown(word, length);

	if (!text)
		return prb_error_nomem();
	if (!unit)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "'%s' is not a unit of an interval", text),
				      "units are microseconds, milliseconds, seconds, minutes, "
				      "hours, days and weeks");
	if (!unit->seconds)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "'%s' has no fixed length in an interval",
						       text),
				      "write days, for example interval '30 days', or use "
				      "date_trunc('month', timestamp)");
	*ret = unit->seconds;
	return NULL;
}

/** A position in text that is not ended by a NUL. */
struct reader {
	const char *at, *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void skip_spaces(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
		r->at++;
}

static bool skip(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/** A number without sign and exponent. */
static bool read_decimal(struct reader *r, double *ret)
{
	double digits = 0, scale = 1;
	bool any = false;

	for (; r->at < r->end && is_digit(*r->at); r->at++, any = true)
		digits = digits * 10 + (*r->at - '0');
	if (skip(r, '.'))
		for (; r->at < r->end && is_digit(*r->at); r->at++, any = true) {
			digits = digits * 10 + (*r->at - '0');
			scale *= 10;
		}
	/* One rounding: 0.3 is 0.3. */
	*ret = digits / scale;
	return any && isfinite(*ret);
}

/** Reads the rest of "01:30:15.5" after "01:", in hours. */
static bool read_clock(struct reader *r, double *seconds)
{
	double minutes, rest = 0;

	if (!read_decimal(r, &minutes) || (skip(r, ':') && !read_decimal(r, &rest)) ||
	    minutes >= 60 || rest >= 60)
		return false;
	*seconds = *seconds * 3600 + minutes * 60 + rest;
	return true;
}

/** One "5 minutes" or "01:30"; *alone says that it was a number without unit. */
static struct prb_error *read_part(struct reader *r, double *ret, bool *good, bool *alone)
{
	double sign = skip(r, '-') ? -1 : 1, unit = 1;
	const char *word;

	if (sign > 0)
		(void)skip(r, '+');
	skip_spaces(r);
	*alone = false;
	*good = read_decimal(r, ret);
	if (!*good)
		return NULL;
	if (skip(r, ':')) {
		*good = read_clock(r, ret);
	} else {
		skip_spaces(r);
		word = r->at;
		while (r->at < r->end && is_letter(*r->at))
			r->at++;
		*alone = r->at == word;
		if (!*alone)
			PRB_TRY(prb_interval_unit(word, r->at - word, &unit));
	}
	*ret *= sign * unit;
	return NULL;
}

static bool is_ago(const struct reader *r)
{
	return r->end - r->at == 3 && !strncasecmp(r->at, "ago", 3);
}

struct prb_error *prb_interval_parse(const char *text, size_t length, double *ret)
{
	struct reader r = {text, text + length};
	double total = 0, part;
	bool good = false, alone = false, any_alone = false, ago = false;
	size_t parts = 0;

	while (r.end > r.at && (r.end[-1] == ' ' || r.end[-1] == '\t'))
		r.end--;
	for (skip_spaces(&r); r.at < r.end && !ago; skip_spaces(&r)) {
		if (parts && is_ago(&r)) {
			ago = true;
			r.at = r.end;
			break;
		}
		PRB_TRY(read_part(&r, &part, &good, &alone));
		if (!good)
			break;
		total += part;
		any_alone |= alone;
		parts++;
	}
	/* "5" is seconds; "5 1 hour" is a mistake. */
	if (!good || !parts || (any_alone && parts > 1) || !isfinite(total)) {
		prb_auto_free char *words = shown(text, length);

		if (!words)
			return prb_error_nomem();
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "'%s' is no interval", words),
			"for example interval '5 minutes', '1 hour 30 min', '90 s', "
			"'01:30:00'");
	}
	*ret = ago ? -total : total;
	return NULL;
}

/** Exactly @p digits digits. */
static bool read_digits(struct reader *r, unsigned digits, int *ret)
{
	*ret = 0;
	for (; digits; digits--, r->at++) {
		if (r->at == r->end || !is_digit(*r->at))
			return false;
		*ret = *ret * 10 + (*r->at - '0');
	}
	return true;
}

/** "Z", "UTC", "+01:00", "-0130", "+2" or nothing: seconds east. */
static bool read_offset(struct reader *r, int *ret)
{
	int sign, hours, minutes = 0;

	*ret = 0;
	skip_spaces(r);
	if (r->at == r->end)
		return true;
	if (r->end - r->at == 3 && !strncasecmp(r->at, "UTC", 3)) {
		r->at = r->end;
		return true;
	}
	if (skip(r, 'Z') || skip(r, 'z'))
		return r->at == r->end;
	sign = skip(r, '-') ? -1 : 1;
	if (sign > 0 && !skip(r, '+'))
		return false;
	if (!read_digits(r, 2, &hours))
		return false;
	if (r->at < r->end) {
		(void)skip(r, ':');
		if (!read_digits(r, 2, &minutes))
			return false;
	}
	*ret = sign * (hours * 3600 + minutes * 60);
	return r->at == r->end && hours <= 15 && minutes < 60;
}

static bool read_time_of_day(struct reader *r, struct tm *tm, double *fraction)
{
	if (!read_digits(r, 2, &tm->tm_hour) || !skip(r, ':') || !read_digits(r, 2, &tm->tm_min))
		return false;
	if (skip(r, ':')) {
		if (!read_digits(r, 2, &tm->tm_sec))
			return false;
		if (r->at < r->end && *r->at == '.' && !read_decimal(r, fraction))
			return false;
	}
	return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

bool prb_timestamp_parse(const char *text, size_t length, double *ret)
{
	struct reader r = {text, text + length};
	struct tm tm = {}, again;
	double fraction = 0;
	int offset = 0;
	time_t seconds;

	while (r.end > r.at && r.end[-1] == ' ')
		r.end--;
	skip_spaces(&r);
	if (!read_digits(&r, 4, &tm.tm_year) || !skip(&r, '-') || !read_digits(&r, 2, &tm.tm_mon) ||
	    !skip(&r, '-') || !read_digits(&r, 2, &tm.tm_mday))
		return false;
	if (r.at < r.end) {
		if (!skip(&r, 'T') && !skip(&r, 't') && !skip(&r, ' '))
			return false;
		skip_spaces(&r);
		if (!read_time_of_day(&r, &tm, &fraction) || !read_offset(&r, &offset))
			return false;
	}
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	again = tm;
	seconds = timegm(&again);
	/* The 31st of February would have become a day in March. */
	if (again.tm_mon != tm.tm_mon || again.tm_mday != tm.tm_mday)
		return false;
	*ret = (double)seconds - offset + fraction;
	return true;
}
