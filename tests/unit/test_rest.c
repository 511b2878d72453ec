/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What can end a wait, by who can (judge/rest.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checked.h"
#include "judge/rest.h"

enum { OWN = 42, OTHER = 4711 };

static const struct {
	struct prb_enders enders;
	enum prb_rest_kind kind;
	pid_t pid;
} rows[] = {
	{{}, PRB_REST_CLOCK, 0},
	{{.endless = true}, PRB_REST_INSIDE, 0},
	{{.endless = true, .outside = true, .pids = {OTHER}, .count = 1}, PRB_REST_OUTSIDE, 0},
	{{.outside = true}, PRB_REST_CLOCK, 0},
	{{.endless = true, .any_child = true, .pids = {OTHER}, .count = 1}, PRB_REST_CHILDREN, 0},
	{{.endless = true, .kind = "pipe", .pids = {OWN}, .count = 1}, PRB_REST_INSIDE, 0},
	{{.endless = true, .kind = "pipe", .pids = {OWN, OTHER}, .count = 2},
	 PRB_REST_PROCESS,
	 OTHER},
	{{.endless = true, .kind = "semaphore", .pids = {OTHER}, .count = 1}, PRB_REST_INSIDE, 0},
	{{.endless = true, .word = {.inode = 5}, .pids = {OTHER}, .count = 1}, PRB_REST_INSIDE, 0},
};

static void test_enders(void **state)
{
	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(rows); i++) {
		struct prb_rest rest = prb_rest_of(&rows[i].enders, OWN);

		if (rest.kind != rows[i].kind || rest.pid != rows[i].pid)
			fail_msg("row %zu: %d, %d", i, rest.kind, (int)rest.pid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_enders)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
