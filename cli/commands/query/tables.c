/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing tables`: the tables of SQL and their columns, from their specs. */
#include "cli/commands/query/tables.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#include "command/command.h"
#include "command/output.h"
#include "command/term.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "base/words.h"
#include "sql/spec/collected.h"
#include "sql/spec/table.h"

struct tables_settings {
	bool json;
};

/** "python.stacks"; a table of "main" needs no schema. */
static void put_name(struct prb_str *s, const struct prb_table *table)
{
	if (strcmp(table->schema, "main") != 0)
		prb_str_printf(s, "%s.", table->schema);
	prb_str_puts(s, table->name);
}

/** True if @p pattern means the table: NULL, its schema, its name, both, or a shell's pattern. */
static bool is_meant(const struct prb_table *table, const char *pattern)
{
	prb_auto_str struct prb_str name = {};

	if (!pattern || !strcasecmp(pattern, table->schema) || !strcasecmp(pattern, table->name))
		return true;
	prb_str_printf(&name, "%s.%s", table->schema, table->name);
	return !fnmatch(pattern, prb_str_text(&name), FNM_CASEFOLD) ||
	       !fnmatch(pattern, table->name, FNM_CASEFOLD);
}

static const char *type_name(enum prb_column_type type)
{
	switch (type) {
	case PRB_COLUMN_INTEGER:
		return "integer";
	case PRB_COLUMN_REAL:
		return "real";
	case PRB_COLUMN_ANY:
		return "any";
	case PRB_COLUMN_TEXT:
		break;
	}
	return "text";
}

static struct prb_error *unknown(const char *pattern)
{
	const struct prb_collected *collected = prb_collected_find_qualified(pattern);
	struct prb_error *err =
		prb_error_create(PRB_ERROR_USAGE, "there is no table '%.100s'%s", pattern,
				 collected ? ": it is there when a program records it" : "");
	const char *dot = strrchr(pattern, '.');
	const char *word = dot ? dot + 1 : pattern;
	prb_auto_str struct prb_str near = {};

	if (collected)
		return prb_error_hint(err, "%s", collected->start);
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		if (!prb_word_resembles(word, (*t)->name) &&
		    !prb_word_resembles(word, (*t)->schema))
			continue;
		prb_str_puts(&near, near.length ? " or " : "");
		put_name(&near, *t);
	}
	if (near.length)
		return prb_error_hint(err, "did you mean %s?", prb_str_text(&near));
	return prb_error_hint(err, "'probing tables' lists them");
}

static void put_list(struct prb_str *s)
{
	size_t width = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (const struct prb_table *const *t = prb_tables; *t; t++) {
			prb_auto_str struct prb_str name = {};

			put_name(&name, *t);
			width = PRB_MAX(width, name.length);
			if (!pass)
				continue;
			prb_text_column(s, prb_str_text(&name), width + 2);
			prb_str_printf(s, "%s\n", (*t)->doc);
		}
	}
}

static void put_columns(struct prb_str *s, const struct prb_table *table)
{
	size_t name_width = 0, unit_width = 0;

	for (const struct prb_column *c = table->columns; c->name; c++) {
		name_width = PRB_MAX(name_width, strlen(c->name));
		if (c->unit)
			unit_width = PRB_MAX(unit_width, prb_text_width(c->unit) + 2);
	}
	put_name(s, table);
	prb_str_printf(s, "  %s\n", table->doc);
	for (const struct prb_column *c = table->columns; c->name; c++) {
		prb_text_spaces(s, 4);
		prb_text_column(s, c->name, name_width + 2);
		prb_text_column(s, type_name(c->type), 9);
		prb_text_column(s, c->unit ? c->unit : "", unit_width);
		prb_str_printf(s, "%s%s\n", c->doc,
			       c->flags & PRB_COLUMN_HIDDEN ? " (not in SELECT *)" : "");
	}
}

static void put_json(struct prb_json *json, const struct prb_table *table)
{
	prb_json_open(json, NULL, '{');
	prb_json_text(json, "schema", table->schema);
	prb_json_text(json, "name", table->name);
	prb_json_text(json, "doc", table->doc);
	prb_json_open(json, "columns", '[');
	for (const struct prb_column *c = table->columns; c->name; c++) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "name", c->name);
		prb_json_text(json, "type", type_name(c->type));
		prb_json_text(json, "unit", c->unit);
		prb_json_text(json, "doc", c->doc);
		prb_json_bool(json, "hidden", c->flags & PRB_COLUMN_HIDDEN);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

static void put_matching(struct prb_str *s, const char *pattern)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		if (!is_meant(*t, pattern))
			continue;
		prb_str_puts(s, s->length ? "\n" : "");
		put_columns(s, *t);
	}
}

static void put_matching_json(struct prb_str *s, const char *pattern)
{
	struct prb_json json = {s};

	prb_json_open(&json, NULL, '[');
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		if (is_meant(*t, pattern))
			put_json(&json, *t);
	prb_json_close(&json, ']');
	prb_str_putc(s, '\n');
}

static struct prb_error *check(const char *pattern)
{
	for (const struct prb_table *const *t = prb_tables; *t; t++)
		if (is_meant(*t, pattern))
			return NULL;
	return unknown(pattern);
}

struct prb_error *prb_tables_text(const char *pattern, struct prb_str *ret)
{
	PRB_TRY(check(pattern));
	if (pattern)
		put_matching(ret, pattern);
	else
		put_list(ret);
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct tables_settings *s = settings;
	const char *pattern = cli->argument_count ? cli->arguments[0] : NULL;
	prb_auto_str struct prb_str text = {};

	if (s->json) {
		PRB_TRY(check(pattern));
		put_matching_json(&text, pattern);
	} else {
		PRB_TRY(prb_tables_text(pattern, &text));
	}
	return prb_output_lines(&text, s->json);
}

const struct prb_command prb_command_tables = {
	.rank = 60,
	.for_clients = true,
	.name = "tables",
	.aliases = {"tbl"},
	.summary = "List the SQL tables, or the columns of a table",
	.description = "Without TABLE, lists all tables. TABLE is a table ('stacks', "
		       "'python.stacks'), a schema ('python') or a pattern ('*maps*'); columns "
		       "are then shown with type, unit and meaning. No target is needed.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct tables_settings, json), .for_clients = true},
			{}},
	.settings_size = sizeof(struct tables_settings),
	.runs_elsewhere = true,
	.argument = "[TABLE]",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_TABLE,
	.examples =
		(const struct prb_example[]){
			{"probing tables python.stacks", "List the columns of a table"}, {}},
	.run = run,
};
