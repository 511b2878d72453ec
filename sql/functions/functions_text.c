/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers as people read them, and errors that a query raises itself. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "sql/functions/functions_private.h"

static void call_bytes_text(sqlite3_context *context, int count, sqlite3_value **values)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	prb_auto_str struct prb_str s = {};
	size_t unit = 0;
	double bytes;

	(void)count;
	if (!prb_function_number(context, values[0], "bytes_text", &bytes) || !isfinite(bytes))
		return;
	/* 1023.96 would be "1024.0". */
	while (fabs(bytes) >= (unit ? 1023.95 : 1023.5) && unit + 1 < PRB_ARRAY_SIZE(units)) {
		bytes /= 1024;
		unit++;
	}
	prb_str_printf(&s, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
	prb_function_text(context, &s);
}

static void call_duration_text(sqlite3_context *context, int count, sqlite3_value **values)
{
	prb_auto_str struct prb_str s = {};
	double seconds;

	(void)count;
	if (!prb_function_number(context, values[0], "duration_text", &seconds) ||
	    !(fabs(seconds) < 1e15))
		return;
	if (seconds < 0)
		prb_str_putc(&s, '-');
	prb_text_duration(&s, fabs(seconds));
	prb_function_text(context, &s);
}

static void call_error(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *text;
	size_t length;

	(void)count;
	if (sqlite3_value_type(values[0]) != SQLITE_NULL &&
	    prb_function_bytes(context, values[0], &text, &length))
		sqlite3_result_error(context, text, (int)length);
}

const struct prb_function prb_text_functions[] = {
	{"bytes_text", 1, call_bytes_text},
	{"duration_text", 1, call_duration_text},
	{"error", 1, call_error, true},
	{},
};
