/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "inference/value.h"

#include <string.h>

#include "base/cleanup.h"

enum { TYPE_NAME_MAX = 200 };

void prb_engine_value_deinit(struct prb_engine_value *value)
{
	prb_str_deinit(&value->missing);
}

static uint64_t root(const struct prb_engine_scope *scope, const char *name)
{
	for (size_t i = 0; i < scope->root_count; i++)
		if (!strcmp(scope->roots[i].name, name))
			return scope->roots[i].object;
	return 0;
}

/** "the Scheduler has no 'waiting'": why a route led nowhere. */
static struct prb_error *note_missing(const struct prb_engine_scope *scope, uint64_t object,
				      const char *name, struct prb_str *missing)
{
	const struct prb_part_wanted wanted = {
		.object = object, .part = PRB_PART_TYPE, .text_max = TYPE_NAME_MAX};
	const struct prb_part_answer *answer;
	bool code, failed = false;

	if (missing->length)
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_parts_read(scope->parts, &wanted, &answer, &code), &failed));
	if (!failed && answer->object) {
		const struct prb_part_wanted name_of = {.object = answer->object,
							.part = PRB_PART_ATTRIBUTE,
							.name = "__qualname__",
							.text_max = TYPE_NAME_MAX};

		PRB_TRY(prb_error_tolerate(prb_parts_read(scope->parts, &name_of, &answer, &code),
					   &failed));
	}
	if (failed || answer->text.length < strlen("''"))
		prb_str_puts(missing, "an object");
	else /* it is in quotes */
		prb_str_append(missing, answer->text.data + 1, answer->text.length - strlen("''"));
	prb_str_printf(missing, " has no '%s'", name);
	return NULL;
}

/** Goes on by one step; *found is false where there is no such part. */
static struct prb_error *step(const struct prb_engine_scope *scope, const struct prb_engine_step *s,
			      struct prb_engine_value *value, bool *found)
{
	struct prb_part_wanted wanted = {.object = value->object, .name = s->name};
	const struct prb_part_answer *answer;
	bool code;

	switch (s->kind) {
	case PRB_ENGINE_ATTRIBUTE:
		wanted.part = PRB_PART_ATTRIBUTE;
		break;
	case PRB_ENGINE_INDEX:
		wanted.part = PRB_PART_INDEX;
		wanted.index = s->index;
		break;
	case PRB_ENGINE_KEY:
		wanted.part = PRB_PART_KEY;
		break;
	case PRB_ENGINE_ID_KEY:
		wanted.part = PRB_PART_KEY;
		wanted.name = scope->id ? scope->id : "";
		break;
	case PRB_ENGINE_LENGTH:
		wanted.part = PRB_PART_LENGTH;
		break;
	}

	struct prb_error *err = prb_parts_read(scope->parts, &wanted, &answer, &code);

	*found = !err;
	if (err)
		return prb_error_tolerate(err, NULL);
	value->object = answer->object;
	value->kind = answer->kind;
	value->integer = answer->integer;
	value->real = answer->real;
	if (s->kind != PRB_ENGINE_LENGTH)
		return NULL;
	/* A length is no object of the target, but text. */
	value->kind = PRB_PART_INT;
	value->integer = strtoll(prb_str_text(&answer->text), NULL, 10);
	return NULL;
}

static struct prb_error *follow(const struct prb_engine_scope *scope,
				const struct prb_engine_route *route,
				struct prb_engine_value *value, bool *found)
{
	size_t first = 0;

	value->object = scope->object;
	if (!value->object) {
		value->object = root(scope, route->steps.items[0].name);
		first = 1;
	}
	*found = value->object;
	value->kind = PRB_PART_OTHER;
	for (size_t i = first; i < route->steps.count && *found; i++) {
		const struct prb_engine_step *s = &route->steps.items[i];
		uint64_t from = value->object;

		if (value->kind == PRB_PART_NONE)
			return NULL;
		PRB_TRY(step(scope, s, value, found));
		if (*found)
			continue;
		if (s->kind == PRB_ENGINE_ATTRIBUTE)
			PRB_TRY(note_missing(scope, from, s->name, &value->missing));
		else
			*found = true, value->kind = PRB_PART_NONE; /* no such item by now */
	}
	return NULL;
}

/** Adds to, or multiplies with, what the routes before have led to; false: no number. */
static bool join(char joined, const struct prb_engine_value *value, struct prb_engine_value *ret)
{
	if (ret->kind != PRB_PART_INT || value->kind != PRB_PART_INT)
		return false;
	return joined == '+' ? !__builtin_add_overflow(ret->integer, value->integer, &ret->integer)
			     : !__builtin_mul_overflow(ret->integer, value->integer, &ret->integer);
}

struct prb_error *prb_engine_read(const struct prb_engine_scope *scope,
				  const struct prb_engine_path *path, struct prb_engine_value *ret)
{
	const struct prb_engine_route *route;
	bool found = false;

	prb_vec_each (route, &path->routes) {
		prb_auto_engine_value struct prb_engine_value value = {};

		if (!route->joined) {
			if (found)
				break;
			PRB_TRY(follow(scope, route, ret, &found));
			/* A time that was not taken yet. */
			if (route + 1 < path->routes.items + path->routes.count)
				found = found && (ret->kind != PRB_PART_FLOAT || ret->real != 0);
			continue;
		}
		if (!found)
			continue;
		PRB_TRY(follow(scope, route, &value, &found));
		if (!ret->missing.length)
			prb_str_append(&ret->missing, value.missing.data, value.missing.length);
		if (found && !join(route->joined, &value, ret))
			ret->kind = PRB_PART_NONE;
	}
	if (found) {
		prb_str_truncate(&ret->missing, 0);
		return NULL;
	}
	ret->kind = PRB_PART_NONE;
	ret->object = 0;
	return ret->missing.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_engine_put_text(struct prb_parts *parts, const struct prb_engine_value *value,
				      size_t max, struct prb_str *out)
{
	const struct prb_part_wanted wanted = {.object = value->object,
					       .part = value->kind == PRB_PART_STR ? PRB_PART_TEXT
										   : PRB_PART_REPR,
					       .text_max = max};
	const struct prb_part_answer *answer;
	bool code, failed = false;

	if (!value->object || value->kind == PRB_PART_NONE)
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_parts_read(parts, &wanted, &answer, &code), &failed));
	if (!failed)
		prb_str_append(out, answer->text.data, answer->text.length);
	return out->failed ? prb_error_nomem() : NULL;
}
