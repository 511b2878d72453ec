/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/dashboards/check.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum { MOST_CHARTS = 24, MOST_TITLE = 100, MOST_SQL = 20000 };

static const double LEAST_EVERY = 1, MOST_EVERY = 3600;

/** How rows are shown. "over-time" and "rate" collect what each reading gives. */
static const char *const SHOWN[] = {"table", "line", "bar", "histogram", "over-time", "rate"};

struct member {
	const char *name;
	bool text, required;
	size_t most; /**< bytes of a text */
};

static const struct member DASHBOARD[] = {{"title", true, true, MOST_TITLE},
					  {"every", false, true, 0},
					  {"charts", false, true, 0},
					  {}};
static const struct member CHART[] = {{"title", true, true, MOST_TITLE},
				      {"sql", true, true, MOST_SQL},
				      {"show", true, true, 20},
				      {"series", true, false, MOST_TITLE},
				      {}};

static bool is_text(const json_t *value, size_t most)
{
	size_t length = json_string_length(value);

	return json_is_string(value) && length && length <= most &&
	       strlen(json_string_value(value)) == length;
}

/** Checks that an object has these members, and no others. */
static struct prb_error *check_members(json_t *object, const char *what,
				       const struct member *members)
{
	size_t known = 0;

	if (!json_is_object(object))
		return prb_error_create(PRB_ERROR_USAGE, "a %s is a JSON object", what);
	for (const struct member *m = members; m->name; m++) {
		const json_t *value = json_object_get(object, m->name);

		known += value != NULL;
		if (!value && m->required)
			return prb_error_create(PRB_ERROR_USAGE, "a %s has a '%s'", what, m->name);
		if (value && m->text && !is_text(value, m->most))
			return prb_error_create(PRB_ERROR_USAGE,
						"'%s' of a %s is a text of at most %zu bytes",
						m->name, what, m->most);
	}
	return known == json_object_size(object)
		       ? NULL
		       : prb_error_create(PRB_ERROR_USAGE, "a %s has members that are not known",
					  what);
}

static struct prb_error *check_chart(json_t *chart)
{
	PRB_TRY(check_members(chart, "chart", CHART));

	const char *show = json_string_value(json_object_get(chart, "show"));

	for (size_t i = 0; i < PRB_ARRAY_SIZE(SHOWN); i++)
		if (!strcmp(SHOWN[i], show))
			return NULL;
	return prb_error_create(PRB_ERROR_USAGE,
				"'show' is table, line, bar, histogram, over-time or rate");
}

static struct prb_error *check(json_t *object)
{
	const json_t *every, *charts;

	PRB_TRY(check_members(object, "dashboard", DASHBOARD));
	every = json_object_get(object, "every");
	charts = json_object_get(object, "charts");
	if (!json_is_number(every) || !(json_number_value(every) >= LEAST_EVERY) ||
	    json_number_value(every) > MOST_EVERY)
		return prb_error_create(PRB_ERROR_USAGE, "'every' is %g to %g seconds", LEAST_EVERY,
					MOST_EVERY);
	if (!json_is_array(charts) || json_array_size(charts) > MOST_CHARTS)
		return prb_error_create(PRB_ERROR_USAGE, "'charts' is a list of at most %d",
					MOST_CHARTS);
	for (size_t i = 0; i < json_array_size(charts); i++)
		PRB_TRY(check_chart(json_array_get(charts, i)));
	return NULL;
}

struct prb_error *prb_dashboard_check(const char *text, size_t length, struct prb_str *ret)
{
	json_error_t where;
	json_t *object;
	struct prb_error *err;

	if (length > PRB_DASHBOARD_MOST)
		return prb_error_create(PRB_ERROR_USAGE, "a dashboard has at most %d bytes",
					PRB_DASHBOARD_MOST);
	object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
	if (!object)
		return prb_error_create(PRB_ERROR_USAGE, "it is no JSON: line %d: %s", where.line,
					where.text);
	err = check(object);
	if (!err) {
		char *written = json_dumps(object, JSON_INDENT(2));

		if (written)
			prb_str_printf(ret, "%s\n", written);
		else
			err = prb_error_nomem();
		free(written);
	}
	json_decref(object);
	return err;
}

struct prb_error *prb_dashboard_title(const struct prb_str *checked, struct prb_str *ret)
{
	json_t *object = json_loadb(prb_str_text(checked), checked->length, 0, NULL);
	const char *title = json_string_value(json_object_get(object, "title"));

	if (title)
		prb_str_puts(ret, title);
	json_decref(object);
	return title ? NULL : prb_error_nomem();
}
