/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions of times. A time is seconds since the epoch; days and weeks are in UTC. */
#include "sql/functions/functions_time.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "sql/functions/functions_private.h"

/* The years 0 to 9999. */
static const double time_min = -62167219200, time_max = 253402300800;

enum { DAY = 86400, WEEKDAY_OF_EPOCH = 3 /* Monday is 0 */ };

static bool in_range(double time)
{
	return time >= time_min && time < time_max;
}

/** Times and intervals as arguments: numbers, or text that @p parse knows. */
static bool parse_argument(sqlite3_context *context, sqlite3_value *value, bool interval,
			   double *ret)
{
	prb_auto_str struct prb_str shown = {};
	struct prb_error *err;
	const char *text;
	size_t length;

	if (!prb_function_bytes(context, value, &text, &length))
		return false;
	if (interval) {
		err = prb_interval_parse(text, length, ret);
	} else {
		if (prb_timestamp_parse(text, length, ret))
			return true;
		prb_text_escape(&shown, text);
		err = prb_error_create(
			PRB_ERROR_USAGE,
			"'%.60s' is not a time; write 2026-01-02 03:04:05 or seconds "
			"since the epoch",
			prb_str_text(&shown));
	}
	if (err)
		prb_function_fail(context, err);
	return !err;
}

/** A time or an interval; false for NULL and, with an error reported, for what is neither. */
static bool argument(sqlite3_context *context, sqlite3_value *value, bool interval, double *ret)
{
	switch (sqlite3_value_numeric_type(value)) {
	case SQLITE_NULL:
		return false;
	case SQLITE_INTEGER:
	case SQLITE_FLOAT:
		*ret = sqlite3_value_double(value);
		return interval ? isfinite(*ret) : in_range(*ret);
	default:
		return parse_argument(context, value, interval, ret);
	}
}

static void broken_down(double time, struct tm *ret)
{
	time_t seconds = (time_t)floor(time);

	if (!gmtime_r(&seconds, ret))
		*ret = (struct tm){};
}

static void call_now(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct prb_functions_host *host = sqlite3_user_data(context);

	(void)count;
	(void)values;
	sqlite3_result_double(context, host->now);
}

/* SQLite's own are texts, which no time compares with. */
static void call_current_date(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct prb_functions_host *host = sqlite3_user_data(context);

	(void)count;
	(void)values;
	sqlite3_result_double(context, floor(host->now / DAY) * DAY);
}

static void call_current_time(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct prb_functions_host *host = sqlite3_user_data(context);

	(void)count;
	(void)values;
	sqlite3_result_double(context, host->now - floor(host->now / DAY) * DAY);
}

enum part {
	YEAR,
	QUARTER,
	MONTH,
	WEEK,
	DAY_OF_MONTH,
	HOUR,
	MINUTE,
	SECOND,
	MILLISECOND,
	MICROSECOND,
	WEEKDAY,
	ISO_WEEKDAY,
	DAY_OF_YEAR,
	EPOCH,
	NO_PART,
};

static const struct {
	const char *name;
	enum part part;
} parts[] = {
	{"year", YEAR},
	{"quarter", QUARTER},
	{"month", MONTH},
	{"week", WEEK},
	{"day", DAY_OF_MONTH},
	{"hour", HOUR},
	{"minute", MINUTE},
	{"second", SECOND},
	{"millisecond", MILLISECOND},
	{"microsecond", MICROSECOND},
	{"dow", WEEKDAY},
	{"isodow", ISO_WEEKDAY},
	{"doy", DAY_OF_YEAR},
	{"epoch", EPOCH},
};

static enum part find_part(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < PRB_ARRAY_SIZE(parts); i++) {
		size_t own = strlen(parts[i].name);

		/* "hours" is "hour". */
		if ((own == length || (own + 1 == length && (name[own] | 0x20) == 's')) &&
		    !strncasecmp(parts[i].name, name, own))
			return parts[i].part;
	}
	return NO_PART;
}

bool prb_time_part_known(const char *name)
{
	return find_part(name) != NO_PART;
}

static void bad_part(sqlite3_context *context, const char *function, const char *name)
{
	prb_auto_str struct prb_str shown = {};

	prb_text_escape(&shown, name);
	prb_function_fail(context,
			  prb_error_create(PRB_ERROR_USAGE,
					   "%s(): there is no '%.60s'; for example 'hour', "
					   "'day', 'week', 'month'",
					   function, prb_str_text(&shown)));
}

/** The week by ISO 8601: the one with a year's first Thursday is its first. */
static int iso_week(const struct tm *tm)
{
	char text[8];

	return strftime(text, sizeof(text), "%V", tm) ? atoi(text) : 0;
}

static void result_part(sqlite3_context *context, enum part part, double time)
{
	double second = time - floor(time / 60) * 60;
	struct tm tm;

	broken_down(time, &tm);
	switch (part) {
	case YEAR:
		return sqlite3_result_int(context, tm.tm_year + 1900);
	case QUARTER:
		return sqlite3_result_int(context, tm.tm_mon / 3 + 1);
	case MONTH:
		return sqlite3_result_int(context, tm.tm_mon + 1);
	case WEEK:
		return sqlite3_result_int(context, iso_week(&tm));
	case DAY_OF_MONTH:
		return sqlite3_result_int(context, tm.tm_mday);
	case HOUR:
		return sqlite3_result_int(context, tm.tm_hour);
	case MINUTE:
		return sqlite3_result_int(context, tm.tm_min);
	case SECOND:
		return sqlite3_result_double(context, second);
	case MILLISECOND:
		return sqlite3_result_double(context, second * 1e3);
	case MICROSECOND:
		return sqlite3_result_double(context, second * 1e6);
	case WEEKDAY:
		return sqlite3_result_int(context, tm.tm_wday);
	case ISO_WEEKDAY:
		return sqlite3_result_int(context, tm.tm_wday ? tm.tm_wday : 7);
	case DAY_OF_YEAR:
		return sqlite3_result_int(context, tm.tm_yday + 1);
	case EPOCH:
	case NO_PART:
		return sqlite3_result_double(context, time);
	}
}

static void call_date_part(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *name;
	size_t length;
	double time;

	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL ||
	    !argument(context, values[1], false, &time) ||
	    !prb_function_bytes(context, values[0], &name, &length))
		return;
	if (find_part(name) == NO_PART)
		bad_part(context, "date_part", name);
	else
		result_part(context, find_part(name), time);
}

static void call_part(sqlite3_context *context, sqlite3_value *value, enum part part)
{
	double time;

	if (argument(context, value, false, &time))
		result_part(context, part, time);
}

#define PART_FUNCTION(name, part)                                                            \
	static void call_##name(sqlite3_context *context, int count, sqlite3_value **values) \
	{                                                                                    \
		(void)count;                                                                 \
		call_part(context, values[0], part);                                         \
	}
PART_FUNCTION(year, YEAR)
PART_FUNCTION(month, MONTH)
PART_FUNCTION(day, DAY_OF_MONTH)
PART_FUNCTION(hour, HOUR)
PART_FUNCTION(minute, MINUTE)
PART_FUNCTION(dow, WEEKDAY)

static void call_second(sqlite3_context *context, int count, sqlite3_value **values)
{
	double time;

	(void)count;
	if (argument(context, values[0], false, &time))
		sqlite3_result_int(context, (int)(floor(time) - floor(time / 60) * 60));
}

/** The first second of the month that @p tm is in, or of one before. */
static double month_start(struct tm *tm, int month)
{
	struct tm start = {.tm_year = tm->tm_year, .tm_mon = month, .tm_mday = 1};

	return (double)timegm(&start);
}

static bool truncate_time(enum part part, double time, double *ret)
{
	double day = floor(time / DAY);
	struct tm tm;

	broken_down(time, &tm);
	switch (part) {
	case MICROSECOND:
		*ret = floor(time * 1e6) / 1e6;
		return true;
	case MILLISECOND:
		*ret = floor(time * 1e3) / 1e3;
		return true;
	case SECOND:
		*ret = floor(time);
		return true;
	case MINUTE:
		*ret = floor(time / 60) * 60;
		return true;
	case HOUR:
		*ret = floor(time / 3600) * 3600;
		return true;
	case DAY_OF_MONTH:
		*ret = day * DAY;
		return true;
	case WEEK:
		day += WEEKDAY_OF_EPOCH;
		*ret = (floor(day / 7) * 7 - WEEKDAY_OF_EPOCH) * DAY;
		return true;
	case MONTH:
		*ret = month_start(&tm, tm.tm_mon);
		return true;
	case QUARTER:
		*ret = month_start(&tm, tm.tm_mon / 3 * 3);
		return true;
	case YEAR:
		*ret = month_start(&tm, 0);
		return true;
	default:
		return false;
	}
}

static void call_date_trunc(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *name;
	size_t length;
	double time;

	(void)count;
	if (sqlite3_value_type(values[0]) == SQLITE_NULL ||
	    !argument(context, values[1], false, &time) ||
	    !prb_function_bytes(context, values[0], &name, &length))
		return;
	if (truncate_time(find_part(name), time, &time))
		prb_function_real(context, time);
	else
		bad_part(context, "date_trunc", name);
}

static void call_date_bin(sqlite3_context *context, int count, sqlite3_value **values)
{
	double stride, time, origin = 0;

	if (!argument(context, values[0], true, &stride) ||
	    !argument(context, values[1], false, &time) ||
	    (count > 2 && !argument(context, values[2], false, &origin)))
		return;
	if (stride > 0)
		prb_function_real(context, origin + floor((time - origin) / stride) * stride);
	else
		prb_function_fail(context,
				  prb_error_create(PRB_ERROR_USAGE,
						   "date_bin(): the interval must be over 0"));
}

static void call_to_timestamp(sqlite3_context *context, int count, sqlite3_value **values)
{
	double time;

	(void)count;
	if (argument(context, values[0], false, &time))
		sqlite3_result_double(context, time);
}

static void call_to_interval(sqlite3_context *context, int count, sqlite3_value **values)
{
	double seconds;

	(void)count;
	if (argument(context, values[0], true, &seconds))
		sqlite3_result_double(context, seconds);
}

/** date_add(time, interval), date_sub(time, interval): as MySQL has them */
static void add_interval(sqlite3_context *context, sqlite3_value **values, int sign)
{
	double time, interval;

	if (argument(context, values[0], false, &time) &&
	    argument(context, values[1], true, &interval))
		prb_function_real(context, time + sign * interval);
}

static void call_date_add(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	add_interval(context, values, 1);
}

static void call_date_sub(sqlite3_context *context, int count, sqlite3_value **values)
{
	(void)count;
	add_interval(context, values, -1);
}

bool prb_timestamp_text(struct prb_str *s, double time)
{
	int64_t total, fraction;
	struct tm tm;

	if (!in_range(time))
		return false;
	total = llround(time * 1e6);
	fraction = (total % 1000000 + 1000000) % 1000000;
	broken_down((double)((total - fraction) / 1000000), &tm);
	prb_str_printf(s, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
		       tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	if (fraction % 1000)
		prb_str_printf(s, ".%06d", (int)fraction);
	else if (fraction)
		prb_str_printf(s, ".%03d", (int)(fraction / 1000));
	prb_str_putc(s, 'Z');
	return true;
}

static void call_time_text(sqlite3_context *context, int count, sqlite3_value **values)
{
	prb_auto_str struct prb_str s = {};
	double time;

	(void)count;
	if (argument(context, values[0], false, &time) && prb_timestamp_text(&s, time))
		prb_function_text(context, &s);
}

const struct prb_function prb_time_functions[] = {
	{"now", 0, call_now},
	{"current_timestamp", 0, call_now},
	{"current_date", 0, call_current_date},
	{"current_time", 0, call_current_time},
	{"year", 1, call_year},
	{"month", 1, call_month},
	{"day", 1, call_day},
	{"hour", 1, call_hour},
	{"minute", 1, call_minute},
	{"second", 1, call_second},
	{"dow", 1, call_dow},
	{"date_part", 2, call_date_part},
	{"date_trunc", 2, call_date_trunc},
	{"date_bin", 2, call_date_bin},
	{"date_bin", 3, call_date_bin},
	{"date_add", 2, call_date_add},
	{"date_sub", 2, call_date_sub},
	{"to_timestamp", 1, call_to_timestamp},
	{"to_interval", 1, call_to_interval},
	{"time_text", 1, call_time_text},
	{"from_unixtime", 1, call_time_text},
	{},
};
