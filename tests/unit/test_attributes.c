/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Compares attributes read from outside with the process's own: for each interpreter, a child makes
 * objects of random classes (attributes.py) and prints their attributes.
 */
#include <signal.h>

#include "python/repr/core/attributes.h"
#include "tests/unit/object_child.h"

/* The attributes of one object as read, and the lines that the child printed about it. */
struct check {
	char *expected, *next; /* the lines; those of __dict__ in their order */
	unsigned dict, slots, lines;
	bool wrong;
};

static bool check_entry(struct check *c, const struct prb_attribute *a)
{
	prb_auto_str struct prb_str line = {};

	prb_str_printf(&line, "D %s %llx\n", a->name, (unsigned long long)a->object);
	c->dict++;
	c->wrong |= strncmp(c->next, prb_str_text(&line), line.length) != 0;
	if (!c->wrong)
		c->next += line.length;
	return !c->wrong;
}

/* "S NAME ADDRESS REPR": the address of objects that we decode too, else the text. */
static bool check_slot(struct check *c, const struct prb_attribute *a)
{
	prb_auto_str struct prb_str begin = {};
	const char *line;

	prb_str_printf(&begin, "S %s ", a->name);
	if (a->object)
		prb_str_printf(&begin, "%llx ", (unsigned long long)a->object);
	c->slots++;
	line = strstr(c->expected, prb_str_text(&begin));
	c->wrong |= !line;
	if (line && !a->object) {
		line = strchr(line + begin.length, ' ');
		c->wrong |= !line || strncmp(line + 1, a->text, strlen(a->text)) != 0 ||
			    line[1 + strlen(a->text)] != '\n';
	}
	return !c->wrong;
}

static bool visit(void *context, const struct prb_attribute *a)
{
	struct check *c = context;

	return a->kind == PRB_ATTRIBUTE_DICT ? check_entry(c, a) : check_slot(c, a);
}

static bool check_object(struct child *child, const struct child_value *value)
{
	prb_auto_str struct prb_str lines = {};
	struct check c = {};
	bool torn;

	prb_str_printf(&lines, "%s\n", value->text);
	c.expected = c.next = lines.data;
	for (const char *p = lines.data; *value->text && *p; p++)
		c.lines += *p == '\n';

	struct prb_error *err =
		prb_object_attributes(&child->py, child->mem, value->address,
				      PRB_ATTRIBUTE_DICT | PRB_ATTRIBUTE_SLOT, visit, &c, &torn);

	if (!err && !c.wrong && !torn && c.dict + c.slots == c.lines)
		return true;
	print_error("%s: %s at %#lx: %u + %u of %u%s%s %s\n%s\n", child->name, value->name,
		    value->address, c.dict, c.slots, c.lines, c.wrong ? " wrong" : "",
		    torn ? " torn" : "", err ? err->message : "", value->text);
	prb_error_destroy(err);
	return false;
}

static unsigned check_interpreter(json_t *interpreter)
{
	unsigned wrong = 0, count = 0;
	struct child_value value;
	struct child child;

	child_start(interpreter, "tests/unit/attributes.py", &child);
	for (; child_next(&child, &value); count++) {
		wrong += !check_object(&child, &value);
		child_value_free(&value);
	}
	print_message("%s: %u of %u objects differ\n", child.name, wrong, count);
	assert_int_equal(count, atoi(getenv("OBJECTS")));
	child_stop(&child);
	return wrong;
}

static void test_same_as_the_process(void **state)
{
	json_t *all = interpreters(), *interpreter;
	unsigned wrong = 0;
	size_t i;

	(void)state;
	setenv("OBJECTS", getenv("PROBING_LONG") ? "6000" : "400", 1);
	setenv("SEED", "1", 0);
	assert_true(json_array_size(all) > 0);
	json_array_foreach(all, i, interpreter) wrong += check_interpreter(interpreter);
	json_decref(all);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_the_process),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
