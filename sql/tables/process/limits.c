/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/tables/shared/facts.h"
#include "sql/spec/table.h"

enum { NAME, SOFT, HARD, UNIT, TITLE };

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT, "Short name, as in RLIMIT_NOFILE: nofile"},
	[SOFT] = {"soft", PRB_COLUMN_INTEGER, "Limit in force; NULL if there is none"},
	[HARD] = {"hard", PRB_COLUMN_INTEGER,
		  "What the process may raise it to; NULL if to anything"},
	[UNIT] = {"unit", PRB_COLUMN_TEXT, "What it is counted in: bytes, seconds, files"},
	[TITLE] = {"title", PRB_COLUMN_TEXT, "Its name in words, as the kernel has it"},
	{},
};

static const struct {
	const char *title, *name;
} names[] = {
	{"Max cpu time", "cpu"},
	{"Max file size", "fsize"},
	{"Max data size", "data"},
	{"Max stack size", "stack"},
	{"Max core file size", "core"},
	{"Max resident set", "rss"},
	{"Max processes", "nproc"},
	{"Max open files", "nofile"},
	{"Max locked memory", "memlock"},
	{"Max address space", "as"},
	{"Max file locks", "locks"},
	{"Max pending signals", "sigpending"},
	{"Max msgqueue size", "msgqueue"},
	{"Max nice priority", "nice"},
	{"Max realtime priority", "rtprio"},
	{"Max realtime timeout", "rttime"},
};

/* Where the kernel's columns begin. */
enum { SOFT_AT = 26, HARD_AT = 47, UNIT_AT = 68 };

static const char *short_name(const char *title, size_t length)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (strlen(names[i].title) == length && !memcmp(names[i].title, title, length))
			return names[i].name;
	return NULL;
}

static size_t without_blanks(const char *text, size_t length)
{
	while (length && text[length - 1] == ' ')
		length--;
	return length;
}

/** "unlimited" is no number and stays NULL. */
static void put_limit(struct prb_scan *scan, unsigned column, const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (end != text && value <= INT64_MAX)
		prb_put_integer(scan, column, (int64_t)value);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_str struct prb_str text = {};
	const char *at, *line;
	size_t length;
	bool told;

	PRB_TRY(prb_fact_table(scan, &text, &told, "limits"));
	at = prb_str_text(&text);
	prb_next_line(&at, &line, &length); /* the heading */
	while (prb_next_line(&at, &line, &length)) {
		if (length < UNIT_AT)
			continue;
		size_t title = without_blanks(line, SOFT_AT);
		size_t unit = without_blanks(line + UNIT_AT, length - UNIT_AT);

		PRB_TRY(prb_scan_row(scan));
		prb_put_static(scan, NAME, short_name(line, title));
		put_limit(scan, SOFT, line + SOFT_AT);
		put_limit(scan, HARD, line + HARD_AT);
		if (unit)
			prb_put_bytes(scan, UNIT, line + UNIT_AT, unit);
		prb_put_bytes(scan, TITLE, line, title);
	}
	return NULL;
}

const struct prb_table prb_table_process_limits = {
	.schema = "process",
	.name = "limits",
	.doc = "Limits of the process (ulimit)",
	.columns = columns,
	.rows = 16,
	.scan = scan,
};
