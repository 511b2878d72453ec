/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The interface as an OpenAPI document, from the table of routes. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "gateway/choices.h"
#include "gateway/gateway_private.h"

/** Definitions of schemas.json and docs/dump.schema.json. */
static const char SCHEMAS[] =
#include "gateway/schemas.inc"
	;

static const char *const TYPES[] = {
	[PRB_PARAM_TEXT] = "string",
	[PRB_PARAM_FLAG] = "boolean",
	[PRB_PARAM_NUMBER] = "integer",
	[PRB_PARAM_SECONDS] = "number",
};

/** What prb_params_take() checks. */
static void put_type(struct prb_json *json, const char *key, const struct prb_param *p, bool helps)
{
	prb_json_open(json, key, '{');
	prb_json_text(json, "type", TYPES[p->type]);
	if (helps)
		prb_json_text(json, "description", p->help);
	if (p->choices)
		prb_choices_put(json, p->choices);
	if (p->type == PRB_PARAM_TEXT && p->least > 0)
		prb_json_integer(json, "minLength", (long)p->least);
	if (p->type == PRB_PARAM_TEXT && p->most > 0)
		prb_json_integer(json, "maxLength", (long)p->most);
	if (p->type == PRB_PARAM_NUMBER || p->type == PRB_PARAM_SECONDS) {
		prb_json_real(json, "minimum", prb_param_least(p), 3);
		prb_json_real(json, "maximum", prb_param_most(p), 0);
	}
	prb_json_close(json, '}');
}

static void put_parameter(struct prb_json *json, const char *place, const struct prb_param *p)
{
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "name", p->name);
	prb_json_text(json, "in", place);
	prb_json_bool(json, "required", p->required);
	prb_json_text(json, "description", p->help);
	put_type(json, "schema", p, false);
	prb_json_close(json, '}');
}

/** The parts of addresses that name something. */
static const struct prb_param NAMES[] = {
	{"id", PRB_PARAM_TEXT,
	 "Id of a target as /v1/targets lists it; or a pid: whatever process has it now", true},
	{"profile", PRB_PARAM_TEXT, "Id of a recording", true},
	{"terminal", PRB_PARAM_TEXT, "Name of a terminal", true},
	{"skill", PRB_PARAM_TEXT, "Name of a diagnosis", true},
	{"dashboard", PRB_PARAM_TEXT, "Name of a dashboard: letters, digits and '-'", true},
};

static void put_parameters(struct prb_json *json, const struct prb_route *route)
{
	prb_json_open(json, "parameters", '[');
	for (size_t i = 0; i < PRB_ARRAY_SIZE(NAMES); i++) {
		char word[PRB_ROUTE_NAME];

		snprintf(word, sizeof(word), "{%s}", NAMES[i].name);
		if (strstr(route->path, word))
			put_parameter(json, "path", &NAMES[i]);
	}
	for (const struct prb_param *p = route->params; p->name && !strcmp(route->method, "GET");
	     p++)
		put_parameter(json, "query", p);
	prb_json_close(json, ']');
}

static bool needs_body(const struct prb_route *route)
{
	for (const struct prb_param *p = route->params; p->name; p++)
		if (p->required)
			return true;
	return false;
}

/** A body that is one object of a schema. */
static void put_whole(struct prb_json *json, const char *schema)
{
	prb_auto_free char *place = prb_format("#/components/schemas/%s", schema);

	prb_json_open(json, "requestBody", '{');
	prb_json_bool(json, "required", true);
	prb_json_open(json, "content", '{');
	prb_json_open(json, "application/json", '{');
	prb_json_open(json, "schema", '{');
	prb_json_text(json, "$ref", place);
	for (unsigned i = 0; i < 4; i++)
		prb_json_close(json, '}');
}

static void put_body(struct prb_json *json, const struct prb_route *route)
{
	if (route->whole)
		put_whole(json, route->whole);
	if (strcmp(route->method, "POST") != 0 || !route->params->name)
		return;
	prb_json_open(json, "requestBody", '{');
	prb_json_bool(json, "required", needs_body(route));
	prb_json_open(json, "content", '{');
	prb_json_open(json, "application/json", '{');
	prb_json_open(json, "schema", '{');
	prb_json_text(json, "type", "object");
	prb_json_open(json, "properties", '{');
	for (const struct prb_param *p = route->params; p->name; p++)
		put_type(json, p->name, p, true);
	prb_json_close(json, '}');
	prb_json_open(json, "required", '[');
	for (const struct prb_param *p = route->params; p->name; p++)
		if (p->required)
			prb_json_text(json, NULL, p->name);
	prb_json_close(json, ']');
	prb_json_bool(json, "additionalProperties", false);
	for (unsigned i = 0; i < 4; i++)
		prb_json_close(json, '}');
}

static void put_answer(struct prb_json *json, const char *status, const char *summary,
		       const char *media, const char *schema)
{
	prb_json_open(json, status, '{');
	prb_json_text(json, "description", summary);
	prb_json_open(json, "content", '{');
	prb_json_open(json, media ? media : "application/json", '{');
	if (schema) {
		prb_auto_free char *place = prb_format("#/components/schemas/%s", schema);

		prb_json_open(json, "schema", '{');
		prb_json_text(json, "$ref", place);
		prb_json_close(json, '}');
	}
	for (unsigned i = 0; i < 3; i++)
		prb_json_close(json, '}');
}

static void put_answers(struct prb_json *json, const struct prb_route *route)
{
	prb_json_open(json, "responses", '{');
	put_answer(json, route->made ? "201" : "200", route->summary, route->media, route->schema);
	/* A message may be a notification. */
	if (route->whole && !route->schema) {
		prb_json_open(json, "202", '{');
		prb_json_text(json, "description", "A notification was taken");
		prb_json_close(json, '}');
	}
	put_answer(json, "default", "Why there is no answer", NULL, "error");
	prb_json_close(json, '}');
}

static void put_route(struct prb_json *json, const struct prb_route *route)
{
	char method[8] = "";

	for (size_t i = 0; route->method[i] && i < sizeof(method) - 1; i++)
		method[i] = (char)tolower((unsigned char)route->method[i]);
	prb_json_open(json, method, '{');
	prb_json_text(json, "summary", route->summary);
	prb_json_bool(json, "deprecated", route->alias);
	if (route->writes)
		prb_json_text(json, "description", "Only with --allow-write.");
	put_parameters(json, route);
	put_body(json, route);
	put_answers(json, route);
	prb_json_close(json, '}');
}

static void put_components(struct prb_json *json)
{
	prb_json_open(json, "components", '{');
	prb_json_open(json, "securitySchemes", '{');
	prb_json_open(json, "token", '{');
	prb_json_text(json, "type", "http");
	prb_json_text(json, "scheme", "bearer");
	prb_json_close(json, '}');
	prb_json_close(json, '}');
	prb_json_open(json, "schemas", '{');
	prb_str_puts(json->out, SCHEMAS);
	prb_json_close(json, '}');
	prb_json_close(json, '}');
	prb_json_open(json, "security", '[');
	prb_json_open(json, NULL, '{');
	prb_json_open(json, "token", '[');
	prb_json_close(json, ']');
	prb_json_close(json, '}');
	prb_json_close(json, ']');
}

struct prb_error *prb_answer_openapi(struct prb_request *r)
{
	struct prb_json json = {&r->reply};

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "openapi", "3.1.0");
	prb_json_open(&json, "info", '{');
	prb_json_text(&json, "title", "Probing");
	/* Of the interface, whose addresses begin with it; the program's is what /v1 answers. */
	prb_json_text(&json, "version", "1");
	prb_json_close(&json, '}');
	put_components(&json);
	prb_json_open(&json, "paths", '{');
	for (const struct prb_route *route = prb_routes; route->path; route++) {
		/* Routes of one address follow each other. */
		bool first = route == prb_routes || strcmp(route[-1].path, route->path) != 0;

		if (first)
			prb_json_open(&json, route->path, '{');
		put_route(&json, route);
		if (!route[1].path || strcmp(route[1].path, route->path) != 0)
			prb_json_close(&json, '}');
	}
	prb_json_close(&json, '}');
	prb_json_close(&json, '}');
	prb_str_putc(&r->reply, '\n');
	return NULL;
}
