/* SPDX-License-Identifier: GPL-3.0-or-later */
/* datetime64 and timedelta64 of numpy: a number of units since 1970, in the proleptic Gregorian
 * calendar. */
#include "base/checked.h"
#include "python/repr/arrays/numpy.h"

enum { UNIT_YEAR, UNIT_MONTH, UNIT_WEEK, UNIT_DAY = 4, UNIT_HOUR, UNIT_MINUTE, UNIT_SECOND };
enum { UNIT_GENERIC = 14, DAY_SECONDS = 86400 };

/* By their number; business days are no longer used. */
static const char *const names[] = {"Y",  "M",	"W",  NULL, "D",  "h",	"m", "s",
				    "ms", "us", "ns", "ps", "fs", "as", ""};

static __int128 floor_divide(__int128 value, __int128 by, __int128 *rest)
{
	__int128 quotient = value / by;

	*rest = value % by;
	if (*rest < 0) {
		*rest += by;
		quotient--;
	}
	return quotient;
}

/* From a number of days since 1970: years of 400 repeat, and begin in March, so that the day that
 * not all of them have is the last. */
static void put_date(struct prb_str *out, __int128 days)
{
	enum { ERA = 146097, FROM_MARCH_0 = 719468 };
	__int128 day;
	long long era = (long long)floor_divide(days + FROM_MARCH_0, ERA, &day);
	int of_era = (int)day;
	int year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int of_year = of_era - (365 * year + year / 4 - year / 100);
	int month = (5 * of_year + 2) / 153;

	day = of_year - (153 * month + 2) / 5 + 1;
	month = month < 10 ? month + 3 : month - 9;
	prb_str_printf(out, "%04lld-%02d-%02d", era * 400 + year + (month <= 2), month, (int)day);
}

static void put_time_of_day(struct prb_str *out, unsigned unit, int seconds, long long fraction)
{
	prb_str_printf(out, "T%02d", seconds / 3600);
	if (unit >= UNIT_MINUTE)
		prb_str_printf(out, ":%02d", seconds / 60 % 60);
	if (unit >= UNIT_SECOND)
		prb_str_printf(out, ":%02d", seconds % 60);
	if (unit > UNIT_SECOND)
		prb_str_printf(out, ".%0*lld", (int)(unit - UNIT_SECOND) * 3, fraction);
}

static void put_days_and_time(struct prb_str *out, unsigned unit, __int128 units)
{
	__int128 per_day = DAY_SECONDS, seconds, fraction = 0, of_day;
	long long per_second = 1;

	for (unsigned i = UNIT_SECOND; i < unit; i++)
		per_second *= 1000;
	if (unit == UNIT_HOUR)
		seconds = units * 3600;
	else if (unit == UNIT_MINUTE)
		seconds = units * 60;
	else
		seconds = floor_divide(units, per_second, &fraction);
	put_date(out, floor_divide(seconds, per_day, &of_day));
	put_time_of_day(out, unit, (int)of_day, (long long)fraction);
}

bool prb_numpy_put_moment(struct prb_str *out, int64_t value, struct prb_numpy_unit unit)
{
	__int128 units = (__int128)value * unit.multiple, rest;

	if (value == INT64_MIN) {
		prb_str_puts(out, "NaT");
		return true;
	}
	if (unit.base < 0 || unit.base >= UNIT_GENERIC || !names[unit.base] || unit.multiple < 1)
		return false;
	/* Out of numpy's own range. */
	if (units < INT64_MIN || units > INT64_MAX - 1970)
		return false;
	switch (unit.base) {
	case UNIT_YEAR:
		prb_str_printf(out, "%04lld", (long long)(units + 1970));
		break;
	case UNIT_MONTH:
		units = floor_divide(units, 12, &rest);
		prb_str_printf(out, "%04lld-%02d", (long long)(units + 1970), (int)rest + 1);
		break;
	case UNIT_WEEK:
		put_date(out, units * 7);
		break;
	case UNIT_DAY:
		put_date(out, units);
		break;
	default:
		put_days_and_time(out, (unsigned)unit.base, units);
	}
	return true;
}

static bool put_unit(struct prb_str *out, struct prb_numpy_unit unit)
{
	if (unit.base < 0 || (size_t)unit.base >= PRB_ARRAY_SIZE(names) || !names[unit.base])
		return false;
	if (unit.multiple != 1 && unit.base != UNIT_GENERIC)
		prb_str_printf(out, "%d", unit.multiple);
	prb_str_puts(out, names[unit.base]);
	return true;
}

bool prb_numpy_put_unit(struct prb_str *out, struct prb_numpy_unit unit)
{
	bool ok;

	if (unit.base == UNIT_GENERIC)
		return true;
	prb_str_putc(out, '[');
	ok = put_unit(out, unit);
	prb_str_putc(out, ']');
	return ok;
}

/* Where a unit of its own is needed: numbers and "not a time" have none in their text, a moment
 * has. */
static bool is_told(bool moment, int64_t value, struct prb_numpy_unit unit, bool numpy2)
{
	if (value == INT64_MIN && moment && numpy2)
		return true;
	if (unit.base == UNIT_GENERIC)
		return false;
	return !moment || unit.multiple != 1 || unit.base == UNIT_HOUR;
}

bool prb_numpy_put_time_scalar(struct prb_str *out, bool moment, int64_t value,
			       struct prb_numpy_unit unit, bool numpy2)
{
	bool ok = true;

	if (value == INT64_MIN || moment) {
		prb_str_putc(out, '\'');
		ok = prb_numpy_put_moment(out, value, unit);
		prb_str_putc(out, '\'');
	} else {
		prb_str_printf(out, "%lld", (long long)value);
	}
	if (!is_told(moment, value, unit, numpy2))
		return ok;
	prb_str_puts(out, ",'");
	ok &= put_unit(out, unit);
	if (unit.base == UNIT_GENERIC)
		prb_str_puts(out, "generic");
	prb_str_putc(out, '\'');
	return ok;
}
