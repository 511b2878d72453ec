/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A child with objects made by a Python program, for tests of readers of objects. */
#ifndef TESTS_UNIT_OBJECT_CHILD_H
#define TESTS_UNIT_OBJECT_CHILD_H

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "python/repr/core/repr.h"

/* A child that holds the values, until its standard input is closed. */
struct child {
	const char *name;
	struct prb_python py; /* with nothing but a layout */
	struct prb_mem *mem;
	pid_t pid;
	int stop;    /* its standard input */
	FILE *lines; /* its standard output */
};

/* Its lines are for child_next(). */
static const char values_program[] = "tests/unit/objects.py";

static inline void set_environment(json_t *env)
{
	const char *key;
	json_t *value;

	json_object_foreach(env, key, value) setenv(key, json_string_value(value), 1);
}

static inline void set_layout(json_t *interpreter, struct child *child)
{
	unsigned major, minor;

	child->name = json_string_value(json_object_get(interpreter, "name"));
	assert_int_equal(sscanf(json_string_value(json_object_get(interpreter, "version")), "%u.%u",
				&major, &minor),
			 2);

	const struct prb_layout *layout =
		prb_layout_table((uint16_t)(major << 8 | minor),
				 json_is_true(json_object_get(interpreter, "free_threaded")),
				 json_is_true(json_object_get(interpreter, "debug_build")));

	assert_non_null(layout);
	child->py = (struct prb_python){.layout = *layout};
	child->py.layout.behaviour = prb_behaviour_find(layout->version);
}

static inline void child_start(json_t *interpreter, const char *program, struct child *child)
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
		execl(exe, exe, "-s", program, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	child->stop = in[1];
	child->lines = fdopen(out[0], "r");
	assert_non_null(child->lines);
	assert_null(prb_mem_live_create(child->pid, &child->mem));
	set_layout(interpreter, child);
}

static inline void child_stop(struct child *child)
{
	prb_mem_destroy(child->mem);
	close(child->stop);
	/*
	 * Reads the rest: a program whose stdout is closed while it prints raises, or never ends.
	 */
	while (fgetc(child->lines) != EOF)
		;
	fclose(child->lines);
	waitpid(child->pid, NULL, 0);
}

/* One value: its expression, its address and its repr(). */
struct child_value {
	char *name;
	uint64_t address;
	char *text;
};

static inline char *from_hex(const char *hex)
{
	struct prb_str text = {};
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		prb_str_putc(&text, (char)byte);
	return prb_str_take(&text);
}

/* The next value of the child; false after the last one. */
static inline bool child_next(struct child *child, struct child_value *value)
{
	prb_auto_free char *line = NULL;
	size_t size = 0;

	if (getline(&line, &size, child->lines) <= 0 || strcmp(line, "end\n") == 0)
		return false;

	char *name = strtok(line, "\t"), *id = strtok(NULL, "\t"), *hex = strtok(NULL, "\n");

	assert_non_null(id);
	value->name = strdup(name);
	value->address = strtoull(id, NULL, 16);
	value->text = from_hex(hex ? hex : "");
	return true;
}

static inline void child_value_free(struct child_value *value)
{
	free(value->name);
	free(value->text);
}

static inline json_t *interpreters(void)
{
	FILE *list = popen("tests/tools/test-interpreters --list --json", "r");
	json_t *all;

	assert_non_null(list);
	all = json_loadf(list, 0, NULL);
	pclose(list);
	return all;
}

#endif
