/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/functions/functions.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "sql/functions/functions_private.h"

/* Of a value, in messages. */
enum { SHOWN_MAX = 60 };

void prb_function_fail(sqlite3_context *context, struct prb_error *err)
{
	prb_auto_str struct prb_str s = {};

	prb_str_puts(&s, err->message);
	if (err->hint)
		prb_str_printf(&s, "; %s", err->hint);
	if (err->code == PRB_ERROR_NOMEM || s.failed)
		sqlite3_result_error_nomem(context);
	else if (err->code == PRB_ERROR_CANCELLED)
		sqlite3_result_error_code(context, SQLITE_INTERRUPT);
	else
		sqlite3_result_error(context, prb_str_text(&s), -1);
	prb_error_destroy(err);
}

void prb_function_real(sqlite3_context *context, double value)
{
	if (isfinite(value))
		sqlite3_result_double(context, value);
	else
		sqlite3_result_null(context);
}

void prb_function_text(sqlite3_context *context, struct prb_str *s)
{
	size_t length = s->length;
	char *text = prb_str_take(s);

	if (text)
		sqlite3_result_text64(context, text, length, free, SQLITE_UTF8);
	else
		sqlite3_result_error_nomem(context);
}

bool prb_function_bytes(sqlite3_context *context, sqlite3_value *value, const char **text,
			size_t *length)
{
	*text = (const char *)sqlite3_value_text(value);
	*length = (size_t)sqlite3_value_bytes(value);
	if (!*text)
		sqlite3_result_error_nomem(context);
	return *text != NULL;
}

struct prb_error *prb_function_fraction(sqlite3_context *context, sqlite3_value *value, double *ret)
{
	int type = sqlite3_value_numeric_type(value);

	*ret = type == SQLITE_NULL ? NAN : sqlite3_value_double(value);
	if (type == SQLITE_NULL ||
	    (type != SQLITE_TEXT && type != SQLITE_BLOB && *ret >= 0 && *ret <= 1))
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "%s(): the fraction must be from 0 to 1",
				prb_aggregate_self(context)->name);
}

bool prb_function_number(sqlite3_context *context, sqlite3_value *value, const char *name,
			 double *ret)
{
	int type = sqlite3_value_numeric_type(value);
	prb_auto_str struct prb_str shown = {};
	prb_auto_free char *start = NULL;
	const char *text;
	size_t length;

	if (type == SQLITE_NULL)
		return false;
	if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
		*ret = sqlite3_value_double(value);
		return true;
	}
	if (!prb_function_bytes(context, value, &text, &length))
		return false;
	start = strndup(text, PRB_MIN(length, (size_t)SHOWN_MAX));
	if (start)
		prb_text_escape(&shown, start);
	prb_function_fail(context,
			  prb_error_create(PRB_ERROR_USAGE, "%s(): '%s%s' is not a number", name,
					   prb_str_text(&shown), length > SHOWN_MAX ? "…" : ""));
	return false;
}

static int register_scalars(sqlite3 *db, const struct prb_function *function, void *host)
{
	const int flags = SQLITE_UTF8 | SQLITE_INNOCUOUS;
	int rc = SQLITE_OK;

	/* now() too is deterministic: its value is the statement's. */
	for (; function->name && rc == SQLITE_OK; function++)
		rc = sqlite3_create_function_v2(
			db, function->name, function->arguments,
			flags | (function->effect ? 0 : SQLITE_DETERMINISTIC), host, function->call,
			NULL, NULL, NULL);
	return rc;
}

static int register_aggregates(sqlite3 *db, const struct prb_aggregate *aggregate)
{
	int rc = SQLITE_OK;

	for (; aggregate->name && rc == SQLITE_OK; aggregate++)
		rc = sqlite3_create_window_function(
			db, aggregate->name, aggregate->arguments, SQLITE_UTF8 | SQLITE_INNOCUOUS,
			(void *)aggregate, aggregate->step, aggregate->final, aggregate->value,
			aggregate->inverse, NULL);
	return rc;
}

/** A function of newer SQLites that means another thing elsewhere: the hint names ours. */
static int hide_percentile(sqlite3 *db)
{
	return sqlite3_create_function_v2(db, "percentile", 2, SQLITE_UTF8, NULL, NULL, NULL, NULL,
					  NULL);
}

struct prb_error *prb_functions_register(sqlite3 *db, const struct prb_functions_host *host)
{
	int rc = hide_percentile(db);

	if (rc == SQLITE_OK)
		rc = register_scalars(db, prb_time_functions, (void *)host);
	if (rc == SQLITE_OK)
		rc = register_scalars(db, prb_regex_functions, (void *)host);
	if (rc == SQLITE_OK)
		rc = register_scalars(db, prb_text_functions, (void *)host);
	if (rc == SQLITE_OK)
		rc = sqlite3_create_collation_v2(db, PRB_COLLATION_REPR, SQLITE_UTF8, NULL,
						 prb_repr_compare, NULL);
	if (rc == SQLITE_OK)
		rc = register_aggregates(db, prb_percentile_aggregates);
	if (rc == SQLITE_OK)
		rc = register_aggregates(db, prb_deviation_aggregates);
	if (rc == SQLITE_OK)
		rc = register_aggregates(db, prb_distinct_aggregates);
	if (rc == SQLITE_OK)
		rc = register_aggregates(db, prb_quantile_aggregates);
	if (rc == SQLITE_OK)
		return NULL;
	if (rc == SQLITE_NOMEM)
		return prb_error_nomem();
	return prb_error_create(PRB_ERROR_FAILED, "functions cannot be registered: %s",
				sqlite3_errmsg(db));
}
