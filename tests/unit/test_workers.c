/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What autograd's threads do while the training thread waits for them. */
#include "tests/unit/profile_made.h"

#include "profile/recording/workers.h"

static struct prb_run a_run(uint32_t stack, int64_t begin, int64_t wall, int64_t cpu)
{
	return (struct prb_run){.stack = stack,
				.samples = 10,
				.reads = 10,
				.begin = begin,
				.wall = wall,
				.cpu = cpu};
}

static void test_split(void **state)
{
	static const struct {
		uint32_t stack, samples;
		int64_t begin, wall, cpu;
	} expected[] = {
		{5, 1, 1000, 100, 0},	{7, 2, 1100, 200, 100}, {5, 2, 1300, 200, 0},
		{8, 4, 1500, 400, 400}, {9, 1, 1900, 100, 50},
	};
	struct prb_workers workers = {};
	struct prb_recording *to;
	const struct prb_run run = a_run(5, 1000, 1000, 0);
	const struct prb_run others[] = {
		a_run(9, 1800, 400, 200), /* beside the next one at first, and longer than the
						run */
		a_run(8, 1500, 400, 400), a_run(7, 1100, 200, 100),
		a_run(6, 0, 1000, 7),	  a_run(6, 3000, 10, 7),
	};
	int64_t wall = 0;

	(void)state;
	assert_null(prb_recording_create(&to));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		*prb_vec_push(&workers.runs) = others[i];
	prb_workers_sort(&workers);
	assert_null(prb_workers_split(&workers, &run, to));
	assert_int_equal(to->runs.count, sizeof(expected) / sizeof(*expected));
	for (size_t i = 0; i < to->runs.count; i++) {
		const struct prb_run *piece = &to->runs.items[i];

		assert_int_equal(piece->stack, expected[i].stack);
		assert_int_equal(piece->samples, expected[i].samples);
		assert_int_equal(piece->begin, expected[i].begin);
		assert_int_equal(piece->wall, expected[i].wall);
		assert_int_equal(piece->cpu, expected[i].cpu);
		wall += piece->wall;
	}
	assert_int_equal(wall, run.wall);
	prb_workers_deinit(&workers);
	prb_recording_destroy(to);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(
		prb_worker_is(&(struct prb_profile_thread){.os_name = (char *)"pt_autograd_0"}));
	assert_false(prb_worker_is(&(struct prb_profile_thread){.os_name = (char *)"python3"}));
	assert_false(prb_worker_is(&(struct prb_profile_thread){}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
