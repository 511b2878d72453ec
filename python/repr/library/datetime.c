/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Objects of the datetime module. After the header they have the hash; then date, time and
 * datetime have a flag for the time zone and packed bytes, timedelta has three ints.
 */
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

enum { PACKED_MAX = 11 }; /* year (2), month, day, hour, minute, second, microsecond (3), fold */

/* A number of which the most significant byte comes first. */
static unsigned packed(const uint8_t *bytes, unsigned count)
{
	unsigned value = 0;

	while (count--)
		value = value << 8 | *bytes++;
	return value;
}

struct prb_error *prb_repr_handle_date(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint8_t bytes[4];

	PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size + 9, bytes,
			     sizeof(bytes)));
	prb_str_printf(r->out, "%s(%u, %u, %u)", type->name, packed(bytes, 2), bytes[2], bytes[3]);
	return NULL;
}

/* ", second, microsecond" as far as there is anything to say. */
static void put_seconds(struct prb_repr *r, const uint8_t *second)
{
	unsigned microsecond = packed(second + 1, 3);

	if (*second || microsecond)
		prb_str_printf(r->out, ", %u", *second);
	if (microsecond)
		prb_str_printf(r->out, ", %u", microsecond);
}

static void put_fold(struct prb_repr *r, unsigned fold)
{
	if (r->traits->fold && fold)
		prb_str_printf(r->out, ", fold=%u", fold);
}

static struct prb_error *put_zone(struct prb_repr *r, bool has_zone, uint64_t zone_at)
{
	uint64_t zone;

	if (!has_zone)
		return NULL;
	PRB_TRY(prb_repr_word(r, zone_at, &zone));
	prb_str_puts(r->out, ", tzinfo=");
	return prb_repr_object(r, zone);
}

struct prb_error *prb_repr_handle_datetime(struct prb_repr *r, uint64_t object,
					   struct prb_type *type)
{
	uint64_t at = object + (uint64_t)r->layout->object_size + 8;
	uint8_t bytes[1 + PACKED_MAX];
	const uint8_t *data = bytes + 1;

	PRB_TRY(prb_mem_read(r->mem, at, bytes, sizeof(bytes)));
	prb_str_printf(r->out, "%s(%u, %u, %u, %u, %u", type->name, packed(data, 2), data[2],
		       data[3], data[4], data[5]);
	put_seconds(r, data + 6);
	put_fold(r, data[10]);
	PRB_TRY(put_zone(r, bytes[0], at + 16));
	prb_str_putc(r->out, ')');
	return NULL;
}

/* datetime.timezone.utc, and pytz's. */
static bool is_utc(struct prb_repr *r, uint64_t zone)
{
	uint64_t words[2] = {};
	int32_t offset[3] = {1};
	struct prb_type *type;
	prb_auto_error struct prb_error *err = prb_repr_type_of(r, zone, &type);

	if (err || !prb_type_is(type, "datetime.timezone"))
		return !err && !strcmp(type->name, "UTC");
	err = prb_repr_words(r, zone + (uint64_t)r->layout->object_size, 2, words);
	if (!err && !words[1])
		err = prb_mem_read(r->mem, words[0] + (uint64_t)r->layout->object_size + 8, offset,
				   sizeof(offset));
	return !err && !offset[0] && !offset[1] && !offset[2];
}

/* The key of a zoneinfo.ZoneInfo, pytz's name; else the zone as it shows. */
static struct prb_error *put_zone_name(struct prb_repr *r, uint64_t zone)
{
	bool is_text = false;
	uint64_t name = 0;
	struct prb_type *type;
	struct prb_error *err;

	PRB_TRY(prb_repr_type_of(r, zone, &type));
	err = prb_type_is(type, "zoneinfo.ZoneInfo")
		      ? prb_repr_member(r, zone, 0, &name)
		      : prb_repr_lookup(r, type, "zone", &name, NULL);
	if (!err && name)
		err = prb_repr_is_str(r, name, &is_text);
	if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		prb_error_catch(&err, PRB_ERROR_BAD_DATA);
	PRB_TRY(err);
	return prb_repr_object(r, is_text ? name : zone);
}

/*
 * A Timestamp has the time of the day in its zone, and the moment since 1970 in UTC, in units of
 * its own from pandas 2 on: the difference is the zone's distance from UTC. False: these do not
 * fit.
 */
static bool offset_of(const uint8_t *data, int64_t nanos, int64_t moment, uint32_t unit,
		      int64_t *ret)
{
	enum { DAY = 86400, SECOND = 7, MILLI, MICRO, NANO }; /* numpy's numbers of units */
	static const int64_t per_second[] = {1, 1000, 1000000, 1000000000};
	struct tm day = {.tm_year = (int)packed(data, 2) - 1900,
			 .tm_mon = data[2] - 1,
			 .tm_mday = data[3],
			 .tm_hour = data[4],
			 .tm_min = data[5],
			 .tm_sec = data[6]};
	int64_t parts = per_second[unit >= SECOND && unit <= NANO ? unit - SECOND : NANO - SECOND];
	int64_t rest = moment % parts, seconds = moment / parts;

	if (rest < 0) {
		rest += parts;
		seconds--;
	}
	*ret = timegm(&day) - seconds;
	return *ret > -DAY && *ret < DAY && rest == nanos / (1000000000 / parts);
}

/** As "-0500", with seconds if there are any. */
static void put_offset(struct prb_repr *r, int64_t offset, const char *colon)
{
	unsigned seconds = (unsigned)(offset < 0 ? -offset : offset);

	prb_str_printf(r->out, "%c%02u%s%02u", offset < 0 ? '-' : '+', seconds / 3600, colon,
		       seconds / 60 % 60);
	if (seconds % 60)
		prb_str_printf(r->out, "%s%02u", colon, seconds % 60);
}

/* The zone of a Timestamp, with its distance from UTC, if that is known. */
static struct prb_error *put_zone_of_stamp(struct prb_repr *r, uint64_t zone, const int64_t *offset)
{
	struct prb_type *type;
	uint64_t words[2] = {}; /* of a timezone: offset, name */

	if (is_utc(r, zone)) {
		prb_str_puts(r->out, "+0000', tz='UTC'");
		return NULL;
	}
	if (offset)
		put_offset(r, *offset, "");
	prb_str_puts(r->out, "', tz=");
	PRB_TRY(prb_repr_type_of(r, zone, &type));
	if (!offset || !prb_type_is(type, "datetime.timezone"))
		return put_zone_name(r, zone);
	PRB_TRY(prb_repr_words(r, zone + (uint64_t)r->layout->object_size, 2, words));
	if (words[1])
		return put_zone_name(r, words[1]);
	prb_str_puts(r->out, "'UTC");
	put_offset(r, *offset, ":");
	prb_str_putc(r->out, '\'');
	return NULL;
}

/* pandas adds nanoseconds behind a datetime: methods, the moment, their number, the year (before 2:
 * the frequency), and from 1.5 on the unit. */
struct prb_error *prb_repr_handle_timestamp(struct prb_repr *r, uint64_t object,
					    struct prb_type *type __attribute__((unused)))
{
	enum { MOMENT_AT = 40, NANOSECONDS_AT = 48, UNIT_AT = 64, MOST = 999 };
	uint64_t start = object + (uint64_t)r->layout->object_size, zone, moment;
	uint8_t bytes[1 + PACKED_MAX];
	const uint8_t *data = bytes + 1;
	unsigned microsecond;
	uint32_t nanosecond, unit;
	int64_t offset;
	bool fits;

	PRB_TRY(prb_mem_read(r->mem, start + 8, bytes, sizeof(bytes)));
	PRB_TRY(prb_mem_read_u64(r->mem, start + MOMENT_AT, &moment));
	PRB_TRY(prb_mem_read_u32(r->mem, start + NANOSECONDS_AT, &nanosecond));
	prb_auto_error struct prb_error *older = prb_mem_read_u32(r->mem, start + UNIT_AT, &unit);
	if (nanosecond > MOST)
		return prb_repr_bad(object, "not a timestamp");
	prb_str_printf(r->out, "Timestamp('%04u-%02u-%02u %02u:%02u:%02u", packed(data, 2), data[2],
		       data[3], data[4], data[5], data[6]);
	microsecond = packed(data + 7, 3);
	if (microsecond || nanosecond)
		prb_str_printf(r->out, ".%06u", microsecond);
	if (nanosecond)
		prb_str_printf(r->out, "%03u", nanosecond);
	if (!bytes[0]) {
		prb_str_puts(r->out, "')");
		return NULL;
	}
	fits = offset_of(data, (int64_t)microsecond * 1000 + nanosecond, (int64_t)moment,
			 older ? 0 : unit, &offset);
	PRB_TRY(prb_repr_word(r, start + 24, &zone));
	PRB_TRY(put_zone_of_stamp(r, zone, fits ? &offset : NULL));
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_time(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t at = object + (uint64_t)r->layout->object_size + 8;
	uint8_t bytes[1 + PACKED_MAX - 4];
	const uint8_t *data = bytes + 1;

	PRB_TRY(prb_mem_read(r->mem, at, bytes, sizeof(bytes)));
	prb_str_printf(r->out, "%s(%u, %u", type->name, data[0], data[1]);
	put_seconds(r, data + 2);
	PRB_TRY(put_zone(r, bytes[0], at + 8));
	put_fold(r, data[6]);
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_timedelta(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	static const char *const names[] = {"days", "seconds", "microseconds"};
	int32_t parts[3];
	unsigned shown = 0;

	PRB_TRY(prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size + 8, parts,
			     sizeof(parts)));
	prb_str_printf(r->out, "%s(", type->name);
	if (!r->traits->timedelta_names) {
		prb_str_printf(r->out, "%d", parts[0]);
		if (parts[1] || parts[2])
			prb_str_printf(r->out, ", %d", parts[1]);
		if (parts[2])
			prb_str_printf(r->out, ", %d", parts[2]);
		prb_str_putc(r->out, ')');
		return NULL;
	}
	for (unsigned i = 0; i < 3; i++)
		if (parts[i])
			prb_str_printf(r->out, "%s%s=%d", shown++ ? ", " : "", names[i], parts[i]);
	prb_str_puts(r->out, shown ? ")" : "0)");
	return NULL;
}

struct prb_error *prb_repr_handle_timezone(struct prb_repr *r, uint64_t object,
					   struct prb_type *type)
{
	uint64_t words[2]; /* offset, name */
	int32_t offset[3];

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	PRB_TRY(prb_mem_read(r->mem, words[0] + (uint64_t)r->layout->object_size + 8, offset,
			     sizeof(offset)));
	/* An offset of zero without a name is always the one object timezone.utc. */
	if (!words[1] && !offset[0] && !offset[1] && !offset[2]) {
		prb_str_puts(r->out, "datetime.timezone.utc");
		return NULL;
	}
	prb_str_printf(r->out, "%s(", type->name);
	PRB_TRY(prb_repr_object(r, words[0]));
	if (words[1]) {
		prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_object(r, words[1]));
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

/* Its key is the first member; a zone made from a file has none. */
struct prb_error *prb_repr_handle_zone_info(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	uint64_t key;
	bool is_text;

	PRB_TRY(prb_repr_member(r, object, 0, &key));
	PRB_TRY(prb_repr_is_str(r, key, &is_text));
	if (!is_text)
		return prb_repr_handle_default(r, object, type);
	prb_str_printf(r->out, "%s(key=", type->name);
	PRB_TRY(prb_repr_object(r, key));
	prb_str_putc(r->out, ')');
	return NULL;
}
