/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parameters of requests: in the address, or in the JSON object that a POST sends. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gateway/gateway_private.h"
#include "gateway/choices.h"

/** So that it can be read as any type of numbers. */
static const double MOST_NUMBER = 1e9;

/** Of times, in seconds: commands count in milliseconds. */
static const double SHORTEST = 0.001;

struct taker {
	struct prb_request *r;
	struct prb_error *err;
};

static size_t count_characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

static struct prb_error *check_text(const struct prb_param *param, const char *value)
{
	if ((double)strlen(value) < param->least)
		return prb_error_create(PRB_ERROR_USAGE, "'%s' is empty", param->name);
	if (param->most > 0 && (double)count_characters(value) > param->most)
		return prb_error_create(PRB_ERROR_USAGE, "'%s' has at most %g characters",
					param->name, param->most);
	return param->choices ? prb_choices_check(param->name, param->choices, value) : NULL;
}

static struct prb_error *check_bounds(const struct prb_param *param, double number)
{
	if (number >= prb_param_least(param) && number <= prb_param_most(param))
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "'%s' is at least %g and at most %g", param->name,
				prb_param_least(param), prb_param_most(param));
}

static struct prb_error *check_value(const struct prb_param *param, const char *value)
{
	char *end;
	double number;

	switch (param->type) {
	case PRB_PARAM_TEXT:
		return check_text(param, value);
	case PRB_PARAM_FLAG:
		if (!*value || !strcmp(value, "1") || !strcmp(value, "0") ||
		    !strcmp(value, "true") || !strcmp(value, "false"))
			return NULL;
		return prb_error_create(PRB_ERROR_USAGE, "'%s' is true or false, not '%.50s'",
					param->name, value);
	case PRB_PARAM_NUMBER:
	case PRB_PARAM_SECONDS:
		number = strtod(value, &end);
		if (*value && !*end && isfinite(number) &&
		    (param->type == PRB_PARAM_SECONDS || number == floor(number)) &&
		    strspn(value,
			   param->type == PRB_PARAM_SECONDS ? "0123456789.+-eE" : "0123456789.") ==
			    strlen(value))
			return check_bounds(param, number);
		return prb_error_create(PRB_ERROR_USAGE, "'%s' is a number, not '%.50s'",
					param->name, value);
	}
	return NULL;
}

double prb_param_least(const struct prb_param *param)
{
	return param->type == PRB_PARAM_SECONDS && !(param->least > 0) ? SHORTEST : param->least;
}

double prb_param_most(const struct prb_param *param)
{
	return param->most > 0 ? param->most : MOST_NUMBER;
}

static struct prb_error *set(struct prb_request *r, const char *name, const char *value)
{
	for (size_t i = 0; r->route->params[i].name; i++) {
		if (strcmp(r->route->params[i].name, name) != 0)
			continue;
		if (r->values[i])
			return prb_error_create(PRB_ERROR_USAGE, "'%s' is given twice", name);
		PRB_TRY(check_value(&r->route->params[i], value));
		return prb_str_copy(value, &r->values[i]);
	}
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "%s has no parameter '%.50s'", r->path, name),
		"/v1/openapi.json lists them");
}

static enum MHD_Result take_argument(void *context, enum MHD_ValueKind kind, const char *name,
				     size_t name_size, const char *value, size_t value_size)
{
	struct taker *t = context;

	(void)kind;
	if (t->err || !strcmp(name, "token"))
		return t->err ? MHD_NO : MHD_YES;
	(void)name_size;
	(void)value_size;
	t->err = set(t->r, name, value ? value : "");
	return t->err ? MHD_NO : MHD_YES;
}

/** The JSON of a parameter's type; others are refused by set(). */
static bool has_type(const struct prb_request *r, const char *name, const json_t *value)
{
	for (const struct prb_param *p = r->route->params; p->name; p++)
		if (!strcmp(p->name, name))
			return p->type == PRB_PARAM_TEXT   ? json_is_string(value)
			       : p->type == PRB_PARAM_FLAG ? json_is_boolean(value)
							   : json_is_number(value);
	return true;
}

static struct prb_error *take_member(struct prb_request *r, const char *name, const json_t *value)
{
	char number[32];

	if (!has_type(r, name, value))
		return prb_error_create(PRB_ERROR_USAGE, "'%.50s' has another type of JSON", name);
	if (json_is_string(value)) {
		if (strlen(json_string_value(value)) != json_string_length(value))
			return prb_error_create(PRB_ERROR_USAGE, "'%.50s' has a NUL in it", name);
		return set(r, name, json_string_value(value));
	}
	if (json_is_boolean(value))
		return set(r, name, json_is_true(value) ? "1" : "0");
	if (!json_is_number(value))
		return prb_error_create(PRB_ERROR_USAGE, "'%.50s' is no plain value", name);
	snprintf(number, sizeof(number), "%.17g", json_number_value(value));
	return set(r, name, number);
}

static struct prb_error *take_body(struct prb_request *r)
{
	struct prb_error *err = NULL;
	json_error_t where;
	const char *name;
	json_t *value;
	json_t *object = json_loadb(prb_str_text(&r->body), r->body.length,
				    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);

	if (!json_is_object(object)) {
		json_decref(object);
		return prb_error_create(PRB_ERROR_USAGE, "the request's body is no JSON object: %s",
					object ? "it is something else" : where.text);
	}
	json_object_foreach(object, name, value) if (!err) err = take_member(r, name, value);
	json_decref(object);
	return err;
}

struct prb_error *prb_params_take(struct prb_request *r)
{
	struct taker taker = {r};

	prb_mhd.get_connection_values_n(r->mhd, MHD_GET_ARGUMENT_KIND, take_argument, &taker);
	PRB_TRY(taker.err);
	if (r->body.length && !r->route->whole)
		PRB_TRY(take_body(r));
	for (size_t i = 0; r->route->params[i].name; i++)
		if (r->route->params[i].required && !r->values[i])
			return prb_error_create(PRB_ERROR_USAGE, "the parameter '%s' is missing",
						r->route->params[i].name);
	if (r->route->alias && prb_param(r, "pid"))
		snprintf(r->id, sizeof(r->id), "%s", prb_param(r, "pid"));
	return NULL;
}

const char *prb_param(const struct prb_request *r, const char *name)
{
	for (size_t i = 0; r->route->params[i].name; i++)
		if (!strcmp(r->route->params[i].name, name))
			return r->values[i];
	return NULL;
}

bool prb_param_flag(const struct prb_request *r, const char *name)
{
	const char *value = prb_param(r, name);

	return value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

struct prb_error *prb_param_flag_word(struct prb_request *r, const char *name)
{
	return prb_param_flag(r, name) ? prb_words_add(&r->words, "--%s", name) : NULL;
}

struct prb_error *prb_param_word(struct prb_request *r, const char *name, const char *option)
{
	const char *value = prb_param(r, name);

	return value ? prb_words_add(&r->words, "--%s=%s", option, value) : NULL;
}
