/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * repr() read from outside against repr() said by the process itself: for each interpreter there
 * is, a child makes the values of objects.py and prints what it thinks of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/str.h"
#include "dwarf/cpython/object.h"
#include "dwarf/cpython/object_private.h"

/* A child that holds the values, until its standard input is closed. */
struct child {
	pid_t pid;
	int stop;    /* its standard input */
	FILE *lines; /* its standard output */
};

static void set_environment(json_t *env)
{
	const char *key;
	json_t *value;

	json_object_foreach (env, key, value)
		setenv(key, json_string_value(value), 1);
}

static void start(json_t *interpreter, struct child *child)
{
	const char *exe = json_string_value(json_object_get(interpreter, "exe"));
	int in[2], out[2];

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	child->pid = fork();
	assert_true(child->pid >= 0);
	if (child->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int fd = 3; fd < 256; fd++)
			close(fd);
		set_environment(json_object_get(interpreter, "env"));
		execl(exe, exe, "-s", "tests/unit/objects.py",
		      (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	child->stop = in[1];
	child->lines = fdopen(out[0], "r");
	assert_non_null(child->lines);
}

static void stop(struct child *child)
{
	close(child->stop);
	fclose(child->lines);
	waitpid(child->pid, NULL, 0);
}

static char *from_hex(const char *hex)
{
	struct prb_str text = {};
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		prb_str_putc(&text, (char)byte);
	return prb_str_take(&text);
}

static const struct prb_repr_options no_limits = {
	.max_depth = 50,
	.max_items = 1000000,
	.max_text = 1000000,
	.max_total = 100000000,
};

/* Compares one line of the child; false if the texts differ. */
static bool check_line(struct prb_python *py, struct prb_mem *mem, const char *who, char *line)
{
	prb_auto_str struct prb_str text = {};
	char *name = strtok(line, "\t"), *id = strtok(NULL, "\t"), *hex = strtok(NULL, "\n");
	prb_auto_free char *expected = from_hex(hex ? hex : "");

	assert_non_null(id);
	assert_null(prb_object_repr(py, mem, strtoull(id, NULL, 16), &no_limits, &text));
	if (strcmp(prb_str_text(&text), expected) == 0)
		return true;
	print_error("%s: %s\n  is  %.300s\n  not %.300s\n", who, name, expected,
		    prb_str_text(&text));
	return false;
}

static unsigned check_interpreter(json_t *interpreter)
{
	const char *name = json_string_value(json_object_get(interpreter, "name"));
	unsigned major, minor, wrong = 0, count = 0;
	struct prb_python py = {};
	struct prb_mem *mem;
	struct child child;
	prb_auto_free char *line = NULL;
	size_t size = 0;

	sscanf(json_string_value(json_object_get(interpreter, "version")), "%u.%u", &major, &minor);

	const struct prb_layout *layout = prb_layout_table(
		(uint16_t)(major << 8 | minor),
		json_is_true(json_object_get(interpreter, "free_threaded")),
		json_is_true(json_object_get(interpreter, "debug_build")));

	assert_non_null(layout);
	py.layout = *layout;
	start(interpreter, &child);
	assert_null(prb_mem_live_create(child.pid, &mem));
	while (getline(&line, &size, child.lines) > 0 && strcmp(line, "end\n") != 0) {
		wrong += !check_line(&py, mem, name, line);
		count++;
	}
	print_message("%s: %u of %u values differ\n", name, wrong, count);
	assert_true(count > 200);
	prb_mem_destroy(mem);
	stop(&child);
	return wrong;
}

static json_t *interpreters(void)
{
	FILE *list = popen("tests/tools/test-interpreters --list --json", "r");
	json_t *all;

	assert_non_null(list);
	all = json_loadf(list, 0, NULL);
	pclose(list);
	return all;
}

static void test_same_as_the_process(void **state)
{
	const char *only = getenv("ONLY");
	json_t *all = interpreters(), *interpreter;
	unsigned wrong = 0;
	size_t i;

	(void)state;
	assert_true(json_array_size(all) > 0);
	json_array_foreach (all, i, interpreter)
		if (!only || strcmp(only, json_string_value(json_object_get(interpreter, "name"))) == 0)
			wrong += check_interpreter(interpreter);
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
