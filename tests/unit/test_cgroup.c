/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of a process's own control group, in the hierarchy of a controller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/cgroup.h"

static void make_file(const char *folder, const char *name, const char *text)
{
	prb_auto_free char *path = prb_format("%s/%s", folder, name);
	prb_auto_fclose FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
}

static void remove_in(const char *folder, const char *name)
{
	prb_auto_free char *path = prb_format("%s/%s", folder, name);

	assert_int_equal(remove(path), 0);
}

static void test_controllers(void **state)
{
	static const char groups[] = "5:cpu,cpuacct:/job\n4:memory:/job\n0::/job\n";
	char folder[] = "/tmp/probing-cgroup-XXXXXX";
	prb_auto_str struct prb_str mounts = {}, text = {};

	(void)state;
	assert_non_null(mkdtemp(folder));
	prb_auto_free char *job = prb_format("%s/job", folder);
	assert_int_equal(mkdir(job, 0700), 0);
	make_file(job, "one", "1");
	make_file(job, "two", "2");
	prb_str_printf(&mounts,
		       "31 23 0:28 / %s rw - cgroup cgroup rw,cpu,cpuacct\n"
		       "32 23 0:29 / %s rw - cgroup cgroup rw,memory\n",
		       folder, folder);

	static const struct {
		const char *controller;
		bool there;
	} cases[] = {{"cpu", true},	 {"cpuacct", true}, {"memory", true},
		     {"freezer", false}, {"cpua", false},   {"job", false}};
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		prb_str_truncate(&text, 0);
		assert_int_equal(prb_cgroup_own_file(prb_str_text(&mounts), groups,
						     cases[i].controller, "two", "one", &text),
				 cases[i].there);
		assert_string_equal(prb_str_text(&text), cases[i].there ? "1" : "");
	}
	prb_str_printf(&mounts, "33 23 0:30 / %s rw - cgroup2 cgroup2 rw\n", folder);
	assert_true(prb_cgroup_own_file(prb_str_text(&mounts), "0::/job\n", "cpu", "two", "one",
					&text));
	assert_string_equal(prb_str_text(&text), "2");
	remove_in(job, "one");
	remove_in(job, "two");
	assert_int_equal(rmdir(job), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_controllers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
