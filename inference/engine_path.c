/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "inference/engine_path.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static struct prb_error *bad(const char *what)
{
	return prb_error_create(PRB_ERROR_USAGE, "%s", what);
}

static struct prb_error *add_step(struct prb_engine_route *route, enum prb_engine_step_kind kind,
				  const char *name, size_t length, int64_t index)
{
	struct prb_engine_step *step;

	if (route->steps.count >= PRB_ENGINE_STEPS_MAX)
		return bad("a path that is too long:");
	step = prb_vec_push(&route->steps);
	if (!step)
		return prb_error_nomem();
	*step = (struct prb_engine_step){.kind = kind, .index = index};
	if (name && !(step->name = strndup(name, length)))
		return prb_error_nomem();
	return NULL;
}

/** Behind "[": a number, a text in quotes, or $id. */
static struct prb_error *parse_item(const char **at, struct prb_engine_route *route)
{
	const char *text = *at, *end = strchr(text, ']');
	char *after;
	long number;

	if (!end)
		return bad("no ] in");
	*at = end + 1;
	if (!strncmp(text, "$id]", strlen("$id]")))
		return add_step(route, PRB_ENGINE_ID_KEY, NULL, 0, 0);
	if (*text == '\'' && end > text + 1 && end[-1] == '\'')
		return add_step(route, PRB_ENGINE_KEY, text + 1, (size_t)(end - text) - 2, 0);
	number = strtol(text, &after, 10);
	if (after != end || after == text || number < -1000000 || number > 1000000)
		return bad("not an item:");
	return add_step(route, PRB_ENGINE_INDEX, NULL, 0, number);
}

static struct prb_error *parse_steps(const char *text, const char *end,
				     struct prb_engine_route *route)
{
	while (text < end) {
		size_t length = 0;

		if (*text == '[' && route->steps.count) {
			text++;
			PRB_TRY(parse_item(&text, route));
			continue;
		}
		if (route->steps.count && *text++ != '.')
			return bad("not a path:");
		while (text + length < end &&
		       (isalnum((unsigned char)text[length]) || text[length] == '_'))
			length++;
		if (!length || isdigit((unsigned char)*text))
			return bad("not a path:");
		PRB_TRY(add_step(route, PRB_ENGINE_ATTRIBUTE, text, length, 0));
		text += length;
	}
	return text == end && route->steps.count ? NULL : bad("not a path:");
}

static struct prb_error *parse_route(const char *text, size_t length, char joined,
				     struct prb_engine_path *ret)
{
	struct prb_engine_route *route;
	const char *end = text + length;
	bool counts = length > strlen("len()") && !strncmp(text, "len(", strlen("len(")) &&
		      end[-1] == ')';

	if (ret->routes.count >= PRB_ENGINE_ROUTES_MAX)
		return bad("too many ways:");
	route = prb_vec_push(&ret->routes);
	if (!route)
		return prb_error_nomem();
	route->joined = joined;
	if (!counts)
		return parse_steps(text, end, route);
	PRB_TRY(parse_steps(text + strlen("len("), end - 1, route));
	return add_step(route, PRB_ENGINE_LENGTH, NULL, 0, 0);
}

/** The blank before the next " | ", " + " or " * "; else the end. */
static const char *find_sign(const char *text)
{
	for (; *text; text++)
		if (*text == ' ' && text[1] && strchr("|+*", text[1]) && text[2] == ' ')
			break;
	return text;
}

struct prb_error *prb_engine_path_parse(const char *text, struct prb_engine_path *ret)
{
	ret->optional = *text == '?';
	text += ret->optional;
	PRB_TRY(prb_str_copy(text, &ret->text));
	for (char joined = 0;;) {
		const char *end = find_sign(text);

		PRB_TRY(parse_route(text, (size_t)(end - text), joined, ret));
		if (!*end)
			return NULL;
		joined = end[1] == '|' ? '\0' : end[1];
		text = end + strlen(" | ");
	}
}

void prb_engine_path_deinit(struct prb_engine_path *path)
{
	struct prb_engine_route *route;
	struct prb_engine_step *step;

	prb_vec_each (route, &path->routes) {
		prb_vec_each (step, &route->steps)
			free(step->name);
		prb_vec_free(&route->steps);
	}
	prb_vec_free(&path->routes);
	free(path->text);
	path->text = NULL;
}
