/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/flight.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/jobs/rank_set.h"
#include "control/flight.h"

enum {
	MAX_GROUPS = 1024,
	MAX_OPEN = 16, /* calls of a group that are kept */
	MAX_NAME = 100,
	MAX_MEMBERS_TEXT = 1 << 20,
	MAX_RANK = 1 << 20,
	MAX_DIMENSIONS = 16,
};

/* A sequence number beyond this is none. */
static const json_int_t MAX_SEQ = INT64_C(1) << 62;

static void group_deinit(struct prb_flight_group *group)
{
	struct prb_flight_call *call;

	prb_vec_each (call, &group->open) {
		free(call->operation);
		free(call->data);
	}
	prb_vec_free(&group->open);
	free(group->name);
	free(group->about);
	free(group->members);
}

void prb_flight_destroy(struct prb_flight *flight)
{
	struct prb_flight_group *group;

	if (!flight)
		return;
	prb_vec_each (group, &flight->groups)
		group_deinit(group);
	prb_vec_free(&flight->groups);
	free(flight);
}

static void flight_guard(struct prb_flight **flight)
{
	prb_flight_destroy(*flight);
}
#define auto_flight __attribute__((cleanup(flight_guard)))

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/** A copy of at most @p most bytes, cut at a character; NULL for NULL. */
static struct prb_error *copy(const char *text, size_t most, char **ret)
{
	size_t length = text ? strnlen(text, most) : 0;

	while (text && text[length] && length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	*ret = text ? strndup(text, length) : NULL;
	return *ret || !text ? NULL : prb_error_nomem();
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/** A number of a collective: the recorder has some as texts. -1: none. */
static long seq_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);
	json_int_t number = json_is_integer(value) ? json_integer_value(value)
			    : text		   ? strtoll(text, NULL, 10)
						   : -1;

	return number >= 0 && number < MAX_SEQ ? (long)number : -1;
}

static struct prb_flight_group *find_group(const struct prb_flight *flight, const char *name)
{
	struct prb_flight_group *group;

	prb_vec_each (group, &flight->groups)
		if (same(group->name, name))
			return group;
	return NULL;
}

/* Parsing the recorder's dump */

static int by_number(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/** "[0, 1, 3]" becomes "0,1,3". */
static struct prb_error *read_members(const char *text, char **ret)
{
	struct prb_rank_set set = {};
	prb_auto_str struct prb_str s = {};
	bool valid = text && *text == '[';

	for (const char *at = valid ? text + 1 : ""; valid && *at && *at != ']';) {
		char *end;
		long rank = strtol(at, &end, 10), *place;

		valid = end > at && rank >= 0 && rank <= MAX_RANK && set.list.count <= MAX_RANK;
		place = valid ? prb_vec_push(&set.list) : NULL;
		s.failed |= valid && !place;
		valid = place != NULL;
		if (place)
			*place = rank;
		at = end + strspn(end, ", ");
	}
	if (set.list.count)
		qsort(set.list.items, set.list.count, sizeof(long), by_number);
	prb_rank_set_text(&s, &set);
	*ret = valid && s.length && !s.failed ? prb_str_take(&s) : NULL;
	prb_vec_free(&set.list);
	return s.failed ? prb_error_nomem() : NULL;
}

/** "Float" is what torch's C++ calls float32. */
static const char *type_name(const char *type)
{
	static const char *const names[][2] = {{"Float", "float32"},	 {"Half", "float16"},
					       {"Double", "float64"},	 {"Long", "int64"},
					       {"Int", "int32"},	 {"Short", "int16"},
					       {"Char", "int8"},	 {"Byte", "uint8"},
					       {"BFloat16", "bfloat16"}, {"Bool", "bool"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(type, names[i][0]))
			return names[i][1];
	return type;
}

/** "(4, 8) float32" of the first tensor. */
static struct prb_error *read_data(const json_t *entry, char **ret)
{
	const json_t *sizes = json_array_get(json_object_get(entry, "input_sizes"), 0);
	const char *type =
		json_string_value(json_array_get(json_object_get(entry, "input_dtypes"), 0));
	size_t count = json_array_size(sizes);
	prb_auto_str struct prb_str s = {};

	*ret = NULL;
	if (!json_is_array(sizes) || !type || strlen(type) > MAX_NAME || count > MAX_DIMENSIONS)
		return NULL;
	prb_str_putc(&s, '(');
	for (size_t i = 0; i < count; i++)
		prb_str_printf(&s, "%s%lld", i ? ", " : "",
			       (long long)json_integer_value(json_array_get(sizes, i)));
	prb_str_printf(&s, "%s) %s", count == 1 ? "," : "", type_name(type));
	*ret = prb_str_take(&s);
	return *ret ? NULL : prb_error_nomem();
}

/** Adds a group; NULL in *ret if there are too many. */
static struct prb_error *add_group(struct prb_flight *flight, const char *name, const char *about,
				   struct prb_flight_group **ret)
{
	*ret = flight->groups.count < MAX_GROUPS ? prb_vec_push(&flight->groups) : NULL;
	if (!*ret)
		return flight->groups.count < MAX_GROUPS ? prb_error_nomem() : NULL;
	**ret = (struct prb_flight_group){};
	PRB_TRY(copy(name, MAX_NAME, &(*ret)->name));
	return about && strcmp(about, "undefined") != 0 ? copy(about, MAX_NAME, &(*ret)->about)
							: NULL;
}

static struct prb_error *add_call(struct prb_flight_group *group, long seq, const char *operation,
				  const json_t *entry)
{
	struct prb_flight_call *call = prb_vec_push(&group->open);

	if (!call)
		return prb_error_nomem();
	*call = (struct prb_flight_call){.seq = seq};
	PRB_TRY(copy(operation, MAX_NAME, &call->operation));
	return read_data(entry, &call->data);
}

/** The name behind "gloo:", or the whole. */
static const char *operation_of(const json_t *entry)
{
	const char *name = text_of(entry, "profiling_name");
	const char *colon = name ? strchr(name, ':') : NULL;

	return colon ? colon + 1 : name;
}

/** The number of the last collective of that group that has ended; -1: unknown. */
static long finished_of(const json_t *dump, const json_t *entry)
{
	const json_t *id = json_object_get(entry, "pg_id");
	prb_auto_free char *key =
		json_is_integer(id) ? prb_format("%lld", json_integer_value(id)) : NULL;

	return key ? seq_of(json_object_get(json_object_get(dump, "pg_status"), key),
			    "last_completed_collective")
		   : -1;
}

/** True if the collective has ended, or no rank waits for it any more. */
static bool has_ended(const json_t *dump, const json_t *entry, long seq)
{
	const json_t *retired = json_object_get(entry, "retired");
	const char *state = text_of(entry, "state");

	if (state && !strcmp(state, "completed"))
		return true;
	/* gloo never says "completed", and its pg_status counts messages between two ranks too. */
	return json_is_boolean(retired) ? json_is_true(retired) : seq <= finished_of(dump, entry);
}

/** Entries are in the order of their calls. */
static struct prb_error *read_entry(struct prb_flight *flight, const json_t *dump,
				    const json_t *entry)
{
	const json_t *names = json_object_get(entry, "process_group");
	const char *name = json_string_value(json_array_get(names, 0));
	const char *operation = operation_of(entry);
	long seq = seq_of(entry, "collective_seq_id");
	struct prb_flight_group *group;

	if (!name || !operation || seq <= 0 || json_is_true(json_object_get(entry, "is_p2p")))
		return NULL;
	group = find_group(flight, name);
	if (!group)
		PRB_TRY(add_group(flight, name, json_string_value(json_array_get(names, 1)),
				  &group));
	/* The same entry may come from two recorders. */
	if (!group || seq <= group->entered)
		return NULL;
	group->entered = seq;
	if (group->open.count == MAX_OPEN || has_ended(dump, entry, seq))
		return NULL;
	return add_call(group, seq, operation, entry);
}

struct prb_error *prb_flight_add_members(struct prb_flight *flight, const char *name,
					 const char *members)
{
	struct prb_flight_group *group = find_group(flight, name);

	if (!group)
		PRB_TRY(add_group(flight, name, NULL, &group));
	if (!group)
		return NULL;
	free(group->members);
	return copy(members, MAX_MEMBERS_TEXT, &group->members);
}

/** Groups in which the rank has called nothing yet, and the members of all. */
static struct prb_error *read_config(struct prb_flight *flight, const json_t *config)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)config, name, value)
	{
		struct prb_flight_group *group = find_group(flight, name);

		/* gloo has one without a name, of nothing. */
		if (!*name)
			continue;
		if (!group)
			PRB_TRY(add_group(flight, name, text_of(value, "desc"), &group));
		if (!group)
			return NULL;
		if (!group->members)
			PRB_TRY(read_members(text_of(value, "ranks"), &group->members));
	}
	return NULL;
}

static struct prb_error *read_dump(struct prb_flight *flight, const json_t *dump)
{
	const json_t *entries = json_object_get(dump, "entries"), *entry;
	size_t i;

	json_array_foreach((json_t *)entries, i, entry) PRB_TRY(read_entry(flight, dump, entry));
	return read_config(flight, json_object_get(dump, "pg_config"));
}

struct prb_error *prb_flight_parse(const struct prb_str *json, struct prb_flight **ret)
{
	auto_flight struct prb_flight *flight = calloc(1, sizeof(*flight));
	json_t *document, *dump;
	struct prb_error *err = NULL;
	size_t i;

	if (!flight)
		return prb_error_nomem();
	document = json_loadb(prb_str_text(json), json->length, 0, NULL);
	if (!json_is_array(document))
		err = prb_error_create(PRB_ERROR_BAD_DATA,
				       "what the flight recorder says is not understood");
	json_array_foreach(document, i, dump) if (!err) err = read_dump(flight, dump);
	json_decref(document);
	if (!err)
		*ret = prb_steal(&flight);
	return err;
}

struct prb_error *prb_flight_read(struct prb_target *target, double seconds,
				  struct prb_flight **ret, char **why)
{
	prb_auto_str struct prb_str json = {};
	struct prb_error *err = prb_flight_dump(target, seconds, &json);

	if (!err)
		err = prb_flight_parse(&json, ret);
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	*why = strdup(err->code == PRB_ERROR_NOT_FOUND ? PRB_FLIGHT_NO_AGENT : err->message);
	prb_error_destroy(err);
	return *why ? NULL : prb_error_nomem();
}

/* On the wire */

void prb_flight_put(struct prb_json *json, const char *key, const struct prb_flight *flight)
{
	const struct prb_flight_group *group;
	const struct prb_flight_call *call;

	prb_json_open(json, key, '[');
	prb_vec_each (group, &flight->groups) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "name", group->name);
		prb_json_text(json, "about", group->about);
		prb_json_text(json, "members", group->members);
		prb_json_integer(json, "entered", group->entered);
		prb_json_open(json, "open", '[');
		prb_vec_each (call, &group->open) {
			prb_json_open(json, NULL, '{');
			prb_json_integer(json, "seq", call->seq);
			prb_json_text(json, "operation", call->operation);
			prb_json_text(json, "data", call->data);
			prb_json_close(json, '}');
		}
		prb_json_close(json, ']');
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static struct prb_error *take_call(const json_t *value, struct prb_flight_group *group)
{
	long seq = seq_of(value, "seq"), last = group->entered;
	struct prb_flight_call *call;

	if (group->open.count)
		last = group->open.items[group->open.count - 1].seq + 1;
	/* By number, as the reader writes them. */
	if (seq <= 0 || seq > group->entered || (group->open.count && seq < last) ||
	    group->open.count == MAX_OPEN || !text_of(value, "operation"))
		return NULL;
	call = prb_vec_push(&group->open);
	if (!call)
		return prb_error_nomem();
	*call = (struct prb_flight_call){.seq = seq};
	PRB_TRY(copy(text_of(value, "operation"), MAX_NAME, &call->operation));
	return copy(text_of(value, "data"), MAX_NAME, &call->data);
}

static struct prb_error *take_group(const json_t *value, struct prb_flight *flight)
{
	const json_t *open = json_object_get(value, "open"), *call;
	const char *name = text_of(value, "name");
	long entered = seq_of(value, "entered");
	struct prb_flight_group *group;
	size_t i;

	if (!name || entered < 0 || find_group(flight, name))
		return NULL;
	PRB_TRY(add_group(flight, name, text_of(value, "about"), &group));
	if (!group)
		return NULL;
	group->entered = entered;
	PRB_TRY(copy(text_of(value, "members"), MAX_MEMBERS_TEXT, &group->members));
	json_array_foreach((json_t *)open, i, call) PRB_TRY(take_call(call, group));
	return NULL;
}

struct prb_error *prb_flight_take(const json_t *value, struct prb_flight **ret)
{
	auto_flight struct prb_flight *flight = NULL;
	const json_t *group;
	size_t i;

	if (!json_is_array(value))
		return NULL;
	flight = calloc(1, sizeof(*flight));
	if (!flight)
		return prb_error_nomem();
	json_array_foreach((json_t *)value, i, group) PRB_TRY(take_group(group, flight));
	*ret = prb_steal(&flight);
	return NULL;
}

/* Judging by it */

bool prb_flight_is_same(const struct prb_flight *a, const struct prb_flight *b)
{
	const struct prb_flight_group *now;

	if (!a || !b)
		return true;
	prb_vec_each (now, &b->groups) {
		const struct prb_flight_group *before = find_group(a, now->name);

		if (!before ? now->entered > 0
			    : before->entered != now->entered ||
				      before->open.count != now->open.count)
			return false;
	}
	return true;
}

const struct prb_flight_call *prb_flight_find(const struct prb_flight_group *group, long seq)
{
	const struct prb_flight_call *call;

	prb_vec_each (call, &group->open)
		if (call->seq == seq)
			return call;
	return NULL;
}

void prb_flight_put_call(struct prb_str *s, const struct prb_flight_group *group,
			 const struct prb_flight_call *call)
{
	prb_text_escape(s, call->operation);
	prb_str_printf(s, " #%ld of group ", call->seq);
	prb_text_escape(s, group->about ? group->about : group->name);
}
