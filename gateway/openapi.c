/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The interface as an OpenAPI document, from the table of routes. */
#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
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

static void put_type(struct prb_json *json, const char *key, enum prb_param_type type,
		     const char *help)
{
	prb_json_open(json, key, '{');
	prb_json_text(json, "type", TYPES[type]);
	if (help)
		prb_json_text(json, "description", help);
	prb_json_close(json, '}');
}

static void put_parameter(struct prb_json *json, const char *name, const char *place,
			  enum prb_param_type type, const char *help)
{
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "name", name);
	prb_json_text(json, "in", place);
	prb_json_bool(json, "required", !strcmp(place, "path"));
	prb_json_text(json, "description", help);
	put_type(json, "schema", type, NULL);
	prb_json_close(json, '}');
}

static void put_parameters(struct prb_json *json, const struct prb_route *route)
{
	prb_json_open(json, "parameters", '[');
	if (strstr(route->path, "{id}"))
		put_parameter(json, "id", "path", PRB_PARAM_TEXT,
			      "Id of a target: a process has its pid");
	if (strstr(route->path, "{profile}"))
		put_parameter(json, "profile", "path", PRB_PARAM_TEXT, "Id of a recording");
	if (strstr(route->path, "{terminal}"))
		put_parameter(json, "terminal", "path", PRB_PARAM_TEXT, "Name of a terminal");
	if (strstr(route->path, "{skill}"))
		put_parameter(json, "skill", "path", PRB_PARAM_TEXT, "Name of a diagnosis");
	for (const struct prb_param *p = route->params; p->name && !strcmp(route->method, "GET");
	     p++)
		put_parameter(json, p->name, "query", p->type, p->help);
	prb_json_close(json, ']');
}

static void put_body(struct prb_json *json, const struct prb_route *route)
{
	if (strcmp(route->method, "POST") != 0 || !route->params->name)
		return;
	prb_json_open(json, "requestBody", '{');
	prb_json_open(json, "content", '{');
	prb_json_open(json, "application/json", '{');
	prb_json_open(json, "schema", '{');
	prb_json_text(json, "type", "object");
	prb_json_open(json, "properties", '{');
	for (const struct prb_param *p = route->params; p->name; p++)
		put_type(json, p->name, p->type, p->help);
	for (unsigned i = 0; i < 5; i++)
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
