/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * JSON: `json` writes an array of objects on one line for each result, `ndjson` an object on each
 * line. NULL and numbers that JSON has not (infinity) are null. All is ASCII, so a terminal can
 * show it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "sql/render/renderer_private.h"

struct json_state {
	char **keys; /**< of each column: quoted, with the comma in front and the colon */
	size_t count;
};

static void forget_keys(struct prb_renderer *renderer)
{
	struct json_state *state = renderer->state;

	for (size_t i = 0; i < state->count; i++)
		free(state->keys[i]);
	free(state->keys);
	*state = (struct json_state){};
}

static bool taken(const struct prb_renderer *renderer, char *const *unique, size_t column,
		  const char *name)
{
	for (size_t i = 0; i < column; i++)
		if (!strcmp(unique[i], name))
			return true;
	for (size_t i = column + 1; i < renderer->columns; i++)
		if (!strcmp(renderer->names[i], name))
			return true;
	return false;
}

/** The name of a column, with _2, _3, … if an earlier column has it; NULL when out of memory. */
static char *unique_name(const struct prb_renderer *renderer, char *const *unique, size_t column)
{
	const char *name = renderer->names[column];
	bool first = true;

	for (size_t i = 0; i < column && first; i++)
		first = strcmp(unique[i], name) != 0;
	if (first)
		return strdup(name);
	for (unsigned n = 2;; n++) {
		char *other = prb_format("%s_%u", name, n);

		if (!other || !taken(renderer, unique, column, other))
			return other;
		free(other);
	}
}

static char *key_of(const char *name, bool first)
{
	struct prb_str key = {};

	prb_str_puts(&key, first ? "{" : ",");
	prb_json_quote(&key, name, strlen(name));
	prb_str_putc(&key, ':');
	return prb_str_take(&key);
}

static struct prb_error *make_keys(struct prb_renderer *renderer)
{
	struct json_state *state = renderer->state;

	forget_keys(renderer);
	state->keys = calloc(renderer->columns, sizeof(*state->keys));
	if (!state->keys)
		return prb_error_nomem();
	/* Unique names first, as they are; then, in their places, the keys. */
	for (; state->count < renderer->columns; state->count++) {
		char *name = unique_name(renderer, state->keys, state->count);

		if (!name)
			return prb_error_nomem();
		state->keys[state->count] = name;
	}
	for (size_t i = 0; i < state->count; i++) {
		char *key = key_of(state->keys[i], i == 0);

		if (!key)
			return prb_error_nomem();
		free(state->keys[i]);
		state->keys[i] = key;
	}
	return NULL;
}

static void put_value(struct prb_str *s, const struct prb_value *value)
{
	switch (value->kind) {
	case PRB_VALUE_NULL:
		prb_str_append(s, "null", 4);
		break;
	case PRB_VALUE_INTEGER:
		prb_renderer_integer(s, value->integer);
		break;
	case PRB_VALUE_REAL:
		if (isfinite(value->real))
			prb_renderer_real(s, value->real);
		else
			prb_str_append(s, "null", 4);
		break;
	case PRB_VALUE_TEXT:
		prb_json_quote(s, value->length ? value->text : "", value->length);
		break;
	case PRB_VALUE_BLOB:
		prb_str_putc(s, '"');
		prb_renderer_hex(s, value->text, value->length);
		prb_str_putc(s, '"');
		break;
	}
}

static void put_object(struct prb_renderer *renderer, const struct prb_value *values)
{
	const struct json_state *state = renderer->state;

	for (size_t i = 0; i < state->count; i++) {
		prb_str_puts(&renderer->out, state->keys[i]);
		put_value(&renderer->out, &values[i]);
	}
	prb_str_putc(&renderer->out, '}');
}

static struct prb_error *begin_array(struct prb_renderer *renderer)
{
	PRB_TRY(make_keys(renderer));
	prb_str_putc(&renderer->out, '[');
	return NULL;
}

static struct prb_error *element(struct prb_renderer *renderer, const struct prb_value *values)
{
	if (renderer->rows > 1)
		prb_str_putc(&renderer->out, ',');
	put_object(renderer, values);
	return NULL;
}

static struct prb_error *end_array(struct prb_renderer *renderer)
{
	prb_str_append(&renderer->out, "]\n", 2);
	return NULL;
}

static struct prb_error *line(struct prb_renderer *renderer, const struct prb_value *values)
{
	put_object(renderer, values);
	prb_str_putc(&renderer->out, '\n');
	return NULL;
}

static struct prb_error *end_lines(struct prb_renderer *renderer)
{
	(void)renderer;
	return NULL;
}

const struct prb_renderer_ops prb_renderer_json = {
	.state_size = sizeof(struct json_state),
	.begin = begin_array,
	.row = element,
	.end = end_array,
	.deinit = forget_keys,
};

const struct prb_renderer_ops prb_renderer_ndjson = {
	.state_size = sizeof(struct json_state),
	.begin = make_keys,
	.row = line,
	.end = end_lines,
	.deinit = forget_keys,
};
