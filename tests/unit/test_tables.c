/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of tables and columns are unique, and each has a description of one line. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sql/engine/settings.h"
#include "sql/spec/table.h"

static void fail_at(const char *table, const char *column, const char *words)
{
	fail_msg("%s%s%s: %s", table, column ? "." : "", column ? column : "", words);
}

/* With a capital, unless it begins with a cell's value: "running, idle or …", "x86_64 or …". */
static bool begins_well(const char *doc)
{
	return doc[strspn(doc, "abcdefghijklmnopqrstuvwxyz")] != ' ';
}

static void check_doc(const char *table, const char *column, const char *doc)
{
	enum { LONGEST = 240 };

	if (!doc || !*doc)
		fail_at(table, column, "has no doc");
	if (strchr(doc, '\n') || strlen(doc) > LONGEST)
		fail_at(table, column, "its doc is too long for one line");
	if (!begins_well(doc))
		fail_at(table, column, "its doc begins with a small letter");
	if (doc[strlen(doc) - 1] == '.' || isspace((unsigned char)doc[strlen(doc) - 1]))
		fail_at(table, column, "its doc ends with a full stop or blank");
	if (strstr(doc, "  "))
		fail_at(table, column, "its doc has two blanks in a row");
}

/* Names need no quotes in SQL, and have one style: lower case, digits, underscores. */
static void check_name(const char *table, const char *name)
{
	if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name) ||
	    isdigit((unsigned char)name[0]))
		fail_at(table, name, "is no plain name");
}

static void test_tables(void **state)
{
	(void)state;
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		check_name((*t)->schema, (*t)->name);
		check_doc((*t)->name, NULL, (*t)->doc);
		assert_true((*t)->rows >= 1);
		assert_non_null((*t)->scan);
		assert_ptr_equal(prb_table_find((*t)->schema, (*t)->name), *t);
		for (const struct prb_table *const *other = prb_tables; other < t; other++)
			if (!strcmp((*other)->name, (*t)->name) &&
			    !strcmp((*other)->schema, (*t)->schema))
				fail_at((*t)->schema, (*t)->name, "is there twice");
	}
}

static void check_column(const struct prb_table *table, const struct prb_column *column)
{
	check_name(table->name, column->name);
	check_doc(table->name, column->name, column->doc);
	if (column->unit && (!*column->unit || column->type == PRB_COLUMN_TEXT))
		fail_at(table->name, column->name, "has a unit that makes no sense");
	/* A comparison of a time with a text is refused only for columns with this flag. */
	if (!strstr(column->doc, "since the epoch") != !(column->flags & PRB_COLUMN_TIME))
		fail_at(table->name, column->name, "is a time in its doc or its flags only");
	/* A hidden column is an argument, which must reach the scan. */
	if (column->flags & PRB_COLUMN_HIDDEN && !(column->flags & PRB_COLUMN_KEY))
		fail_at(table->name, column->name, "is an argument that is no key");
	for (const struct prb_column *other = table->columns; other < column; other++) {
		if (!strcmp(other->name, column->name))
			fail_at(table->name, column->name, "is there twice");
		if (other->flags & PRB_COLUMN_HIDDEN && !(column->flags & PRB_COLUMN_HIDDEN))
			fail_at(table->name, column->name, "stands behind an argument");
	}
}

static void test_columns(void **state)
{
	(void)state;
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		assert_non_null((*t)->columns[0].name);
		for (const struct prb_column *c = (*t)->columns; c->name; c++)
			check_column(*t, c);
	}
}

static void test_schemas(void **state)
{
	(void)state;
	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		const struct prb_schema *s = prb_schemas;

		while (s->name && strcmp(s->name, (*t)->schema) != 0)
			s++;
		if (!s->name)
			fail_at((*t)->schema, (*t)->name, "is in a schema that is not there");
	}
	for (const struct prb_schema *s = prb_schemas; s->name; s++) {
		check_name("schema", s->name);
		check_doc(s->name, NULL, s->doc);
	}
}

static void test_settings(void **state)
{
	(void)state;
	for (const struct prb_setting *s = prb_settings; s->name; s++) {
		check_doc("setting", s->name, s->doc);
		if (s > prb_settings && strcmp(s[-1].name, s->name) >= 0)
			fail_at("setting", s->name, "does not stand in order");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_schemas),
		cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
