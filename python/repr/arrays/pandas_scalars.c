/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Single values of pandas, and arrays outside of a frame. Their classes are compiled: a member is
 * found by what it has to be, and a Timedelta is checked against the timedelta that it is as well.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/pandas.h"
#include "python/repr/core/handlers.h"

/* numpy's numbers of units. */
enum { UNIT_DAY = 4, UNIT_MINUTE = 6, UNIT_SECOND, UNIT_MILLI, UNIT_MICRO, UNIT_NANO, DAY = 86400 };
#define NANOS_PER_SECOND INT64_C(1000000000)

static void put_span(struct prb_repr *r, __int128 nanos)
{
	const __int128 per_day = (__int128)DAY * NANOS_PER_SECOND;
	__int128 days = nanos / per_day, rest = nanos % per_day;
	long long seconds, fraction;

	if (rest < 0) {
		rest += per_day;
		days--;
	}
	seconds = (long long)(rest / NANOS_PER_SECOND);
	fraction = (long long)(rest % NANOS_PER_SECOND);
	prb_str_printf(r->out, "%lld days %s%02lld:%02lld:%02lld", (long long)days,
		       days < 0 ? "+" : "", seconds / 3600, seconds / 60 % 60, seconds % 60);
	if (fraction)
		prb_str_printf(r->out, ".%06lld", fraction / 1000);
	if (fraction % 1000)
		prb_str_printf(r->out, "%03lld", fraction % 1000);
}

static __int128 in_nanos(int64_t value, int32_t unit)
{
	__int128 nanos = value;

	for (int32_t i = unit; i < UNIT_NANO; i++)
		nanos *= 1000;
	return nanos;
}

void prb_pandas_put_span(struct prb_repr *r, int64_t value, int32_t unit)
{
	if (value == INT64_MIN)
		prb_str_puts(r->out, "NaT");
	else
		put_span(r, in_nanos(value, unit));
}

/* The class that compiled code defines: what is derived from it may have a dict behind. */
static struct prb_error *compiled_size(struct prb_repr *r, struct prb_type *type, int64_t *ret)
{
	for (int i = 0; i < PRB_MRO_MAX && type->name[0] && !strchr(type->name, '_'); i++)
		PRB_TRY(prb_repr_type(r, type->base, &type));
	*ret = type->basicsize;
	return NULL;
}

/* Behind a timedelta: methods, the number, whether the next are set, seven parts, the unit (since
 * 1.5, else nanoseconds). */
static struct prb_error *put_timedelta(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	enum { DAYS_AT = 8, VALUE_AT = 32, UNIT_AT = 104, WITH_UNIT = 128 };
	uint64_t start = object + (uint64_t)r->layout->object_size;
	uint32_t unit = UNIT_NANO;
	__int128 nanos, micros;
	int32_t parts[3];
	int64_t size;
	uint64_t word;

	PRB_TRY(prb_mem_read(r->mem, start + DAYS_AT, parts, sizeof(parts)));
	PRB_TRY(prb_repr_word(r, start + VALUE_AT, &word));
	PRB_TRY(compiled_size(r, type, &size));
	if (size >= WITH_UNIT)
		PRB_TRY(prb_mem_read_u32(r->mem, start + UNIT_AT, &unit));
	if (unit < UNIT_SECOND || unit > UNIT_NANO)
		return prb_repr_bad(object, "a span of an unknown unit");
	nanos = in_nanos((int64_t)word, (int32_t)unit);
	micros = ((__int128)parts[0] * DAY + parts[1]) * 1000000 + parts[2];
	if (nanos / 1000 - (nanos % 1000 < 0) != micros)
		return prb_repr_bad(object, "a span that is two");
	prb_str_puts(r->out, "Timedelta('");
	put_span(r, nanos);
	prb_str_puts(r->out, "')");
	return NULL;
}

struct prb_error *prb_repr_handle_pandas_timedelta(struct prb_repr *r, uint64_t object,
						   struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_timedelta);
}

struct prb_error *prb_repr_handle_pandas_nat(struct prb_repr *r,
					     uint64_t object __attribute__((unused)),
					     struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "NaT");
	return NULL;
}

struct prb_error *prb_repr_handle_pandas_na(struct prb_repr *r,
					    uint64_t object __attribute__((unused)),
					    struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "<NA>");
	return NULL;
}

enum { WORDS_MAX = 8 };

static struct prb_error *read_words(struct prb_repr *r, uint64_t object,
				    const struct prb_type *type, uint64_t ret[static WORDS_MAX],
				    size_t *count)
{
	int64_t bytes = type->basicsize - r->layout->object_size;

	*count = bytes > 0 ? PRB_MIN((size_t)bytes / sizeof(*ret), (size_t)WORDS_MAX) : 0;
	return prb_repr_words(r, object + (uint64_t)r->layout->object_size, *count, ret);
}

static bool is_closed(struct prb_repr *r, uint64_t object)
{
	static const char *const sides[] = {"left", "right", "both", "neither"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(sides); i++) {
		bool same = false;

		prb_error_destroy(prb_repr_text_is(r, object, sides[i], &same));
		if (same)
			return true;
	}
	return false;
}

/* Both ends come before what says which of them belong to it. */
static struct prb_error *put_interval(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t words[WORDS_MAX];
	size_t count, i = 2;

	PRB_TRY(read_words(r, object, type, words, &count));
	while (i < count && !is_closed(r, words[i]))
		i++;
	if (i >= count)
		return prb_repr_bad(object, "not an interval");
	prb_str_puts(r->out, "Interval(");
	PRB_TRY(prb_repr_object(r, words[i - 2]));
	prb_str_puts(r->out, ", ");
	PRB_TRY(prb_repr_object(r, words[i - 1]));
	prb_str_puts(r->out, ", closed=");
	PRB_TRY(prb_repr_object(r, words[i]));
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_pandas_interval(struct prb_repr *r, uint64_t object,
						  struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_interval);
}

/* Numbers of frequencies, by thousands; how numpy counts the same, and their names before and since
 * pandas 2.2. */
enum { YEARS = 1, QUARTERS, MONTHS, WEEKS, WORKDAYS, DAYS, FREQUENCIES = 13 };
static const struct {
	const char *before, *name;
	int32_t unit;
} frequencies[FREQUENCIES] = {
	[YEARS] = {"A-", "Y-", 0},
	[QUARTERS] = {"Q-", "Q-", 0},
	[MONTHS] = {"M", "M", 1},
	[WEEKS] = {"W-", "W-", UNIT_DAY},
	[WORKDAYS] = {"B", "B", UNIT_DAY},
	[DAYS] = {"D", "D", UNIT_DAY},
	[DAYS + 1] = {"H", "h", 5},
	[DAYS + 2] = {"T", "min", UNIT_MINUTE},
	[DAYS + 3] = {"S", "s", UNIT_SECOND},
	[DAYS + 4] = {"L", "ms", UNIT_MILLI},
	[DAYS + 5] = {"U", "us", UNIT_MICRO},
	[DAYS + 6] = {"N", "ns", UNIT_NANO},
};

static bool put_moment(struct prb_repr *r, int64_t ordinal, int32_t unit)
{
	return prb_numpy_put_moment(r->out, ordinal, (struct prb_numpy_unit){unit, 1});
}

/* Its first and last day; weeks are counted from the one that ends in the first days of 1970. */
static bool put_week(struct prb_repr *r, int64_t ordinal, uint32_t end)
{
	int64_t last;

	if (ordinal > INT32_MAX || ordinal < INT32_MIN)
		return false;
	last = ordinal * 7 + end - 4;
	if (!put_moment(r, last - 6, UNIT_DAY))
		return false;
	prb_str_putc(r->out, '/');
	return put_moment(r, last, UNIT_DAY);
}

/* The day with the number among those from Monday to Friday, from 1970 on. */
static int64_t of_workday(int64_t ordinal)
{
	int64_t from_monday = ordinal + 3, day = from_monday % 5 + (from_monday % 5 < 0 ? 5 : 0);

	return (from_monday - day) / 5 * 7 + day - 3;
}

struct prb_error *prb_pandas_put_period(struct prb_repr *r, int64_t ordinal, uint32_t code)
{
	uint32_t kind, end;
	size_t start = r->out->length;
	bool hours, known;
	char *t;

	code &= ~(uint32_t)PRB_PANDAS_OLD_FREQUENCY;
	kind = code / 1000;
	end = code % 1000;
	hours = kind == DAYS + 1;
	if (kind >= FREQUENCIES || !frequencies[kind].name || ordinal == INT64_MIN ||
	    (end && kind > QUARTERS && kind != WEEKS) || (kind == WEEKS && end > 6))
		return prb_repr_bad(code, "not a known frequency");
	if (kind == QUARTERS) {
		int64_t quarter = ordinal % 4 + (ordinal % 4 < 0 ? 4 : 0);

		prb_str_printf(r->out, "%04lldQ%lld", (long long)(ordinal - quarter) / 4 + 1970,
			       (long long)quarter + 1);
		return NULL;
	}
	if (kind == WEEKS)
		known = put_week(r, ordinal, end);
	else if (kind == WORKDAYS)
		known = put_moment(r, of_workday(ordinal), UNIT_DAY);
	else
		known = put_moment(r, hours ? ordinal * 60 : ordinal,
				   hours ? UNIT_MINUTE : frequencies[kind].unit);
	if (!known)
		return prb_repr_bad(code, "a moment out of range");
	t = r->out->failed ? NULL : strchr(r->out->data + start, 'T');
	if (t)
		*t = ' ';
	return NULL;
}

static bool is_period_dtype(const struct prb_type *type)
{
	return !strcmp(prb_type_short_name(type), "PeriodDtypeBase");
}

struct prb_error *prb_pandas_frequency(struct prb_repr *r, uint64_t dtype, uint32_t *ret)
{
	uint64_t parts[3] = {};
	struct prb_type *type;
	bool several;

	/* The class that is compiled: behind its methods the number, since 2.2 also how many. */
	PRB_TRY(prb_repr_type_of(r, dtype, &type));
	while (type->base && !is_period_dtype(type))
		PRB_TRY(prb_repr_type(r, type->base, &type));
	several = type->basicsize - r->layout->object_size >= (int64_t)sizeof(parts);
	PRB_TRY(prb_repr_words(r, dtype + (uint64_t)r->layout->object_size, several ? 3 : 2,
			       parts));
	*ret = (uint32_t)parts[1];
	if (*ret / 1000 >= FREQUENCIES || !frequencies[*ret / 1000].name ||
	    (several && parts[2] != 1))
		return prb_repr_bad(dtype, "not a known frequency");
	*ret |= several ? 0 : PRB_PANDAS_OLD_FREQUENCY;
	return NULL;
}

void prb_pandas_put_frequency(struct prb_str *out, uint32_t frequency)
{
	static const char days[] = "SUNMONTUEWEDTHUFRISAT";
	static const char months[] = "DECJANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
	uint32_t code = frequency & ~(uint32_t)PRB_PANDAS_OLD_FREQUENCY, kind = code / 1000;

	prb_str_puts(out, frequency == code ? frequencies[kind].name : frequencies[kind].before);
	if (kind == WEEKS)
		prb_str_printf(out, "%.3s", days + code % 1000 % 7 * 3);
	if (kind <= QUARTERS)
		prb_str_printf(out, "%.3s", months + code % 1000 % 13 * 3);
}

/* Its number comes before what has that of the frequency (behind methods; then how many, since
 * 2.2). */
static struct prb_error *put_period(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t words[WORDS_MAX], dtype;
	size_t count, i = 0;
	uint32_t frequency;

	PRB_TRY(prb_repr_find_word(r, object, is_period_dtype, &dtype));
	PRB_TRY(prb_pandas_frequency(r, dtype, &frequency));
	PRB_TRY(read_words(r, object, type, words, &count));
	while (i < count && words[i] != dtype)
		i++;
	if (i >= count || !i)
		return prb_repr_bad(object, "not a period");
	prb_str_puts(r->out, "Period('");
	PRB_TRY(prb_pandas_put_period(r, (int64_t)words[i - 1], frequency));
	prb_str_puts(r->out, "', '");
	prb_pandas_put_frequency(r->out, frequency);
	prb_str_puts(r->out, "')");
	return NULL;
}

struct prb_error *prb_repr_handle_pandas_period(struct prb_repr *r, uint64_t object,
						struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_period);
}

struct prb_error *prb_pandas_put_categories(struct prb_repr *r, uint64_t object,
					    const struct prb_frame_column *values)
{
	uint64_t dtype, ordered;

	prb_str_puts(r->out, ", categories=");
	PRB_TRY(prb_repr_object(r, values->categories));
	PRB_TRY(prb_repr_find_word(r, object, prb_is_category_dtype, &dtype));
	PRB_TRY(prb_repr_attribute(r, dtype, "_ordered", &ordered));
	prb_str_puts(r->out, ", ordered=");
	return prb_repr_object(r, ordered);
}

static bool note_attribute(void *context, uint64_t key __attribute__((unused)),
			   uint64_t value __attribute__((unused)))
{
	*(bool *)context = true;
	return false;
}

/* Its words: how many, whether times are cut off. One with more to say has attributes. */
static struct prb_error *put_offset(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	bool attributes = !strcmp(prb_type_short_name(type), "DateOffset");
	uint64_t words[2];
	int64_t count;

	PRB_TRY(prb_repr_instance_each(r, object, note_attribute, &attributes));
	if (attributes)
		return prb_repr_bad(object, "an offset of many parts");
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	if ((uint32_t)words[1] > 1)
		return prb_repr_bad(object, "not an offset");
	count = (int64_t)words[0];
	prb_str_putc(r->out, '<');
	if (count != 1)
		prb_str_printf(r->out, "%lld * ", (long long)count);
	prb_str_puts(r->out, prb_type_short_name(type));
	prb_str_puts(r->out, count == 1 || count == -1 ? ">" : "s>");
	return NULL;
}

struct prb_error *prb_repr_handle_pandas_offset(struct prb_repr *r, uint64_t object,
						struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_offset);
}

static struct prb_error *put_array(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_frame_column values;

	PRB_TRY(prb_frame_column_open(r, object, 0, &values));
	if (values.kind != PRB_FRAME_ARRAY && values.kind != PRB_FRAME_INTERVALS &&
	    values.kind != PRB_FRAME_TEXTS)
		return prb_repr_bad(object, "an array of another kind");
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_frame_column_put_all(r, &values, PRB_FRAME_UNKNOWN));
	if (values.categories)
		PRB_TRY(prb_pandas_put_categories(r, object, &values));
	prb_str_printf(r->out, ", shape=(%llu,), dtype=%s)", (unsigned long long)values.count,
		       values.name);
	return NULL;
}

struct prb_error *prb_repr_handle_pandas_array(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_array);
}
