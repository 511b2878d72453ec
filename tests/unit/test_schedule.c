/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times of samples: random gaps on a fixed schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "profile/sampler/schedule.h"
#include "tests/unit/in_range.h"

enum { DRAWS = 100000, RATE = 100, MEAN = 1000000000 / RATE };

static const uint64_t key[2] = {1, 2};

/* Takes each sample when it is due. */
static double mean_and_deviation(double *deviation)
{
	struct prb_schedule schedule;
	uint64_t missed = 0;
	double sum = 0, squares = 0;
	int64_t last = 0;

	prb_schedule_begin(&schedule, key, RATE, 0);
	for (int i = 0; i < DRAWS; i++) {
		int64_t next = prb_schedule_next(&schedule, last, &missed);
		double gap = (double)(next - last);

		assert_true(gap >= 0 && gap <= (double)PRB_SCHEDULE_CAP * MEAN);
		sum += gap;
		squares += gap * gap;
		last = next;
	}
	assert_int_equal(missed, 0);
	*deviation = sqrt(squares / DRAWS - sum / DRAWS * sum / DRAWS);
	return sum / DRAWS;
}

static void test_gaps_are_exponential(void **state)
{
	double deviation, mean = mean_and_deviation(&deviation);

	(void)state;
	assert_true(fabs(mean - MEAN) < 0.02 * MEAN);
	assert_true(fabs(deviation - MEAN) < 0.03 * MEAN); /* that of a fixed period is 0 */
}

/* A program with any period is sampled in all its phases alike. */
static void test_no_phase_is_preferred(void **state)
{
	enum { PHASES = 10, EACH = DRAWS / PHASES };
	struct prb_schedule schedule;
	uint64_t missed = 0;
	int hits[PHASES] = {};
	int64_t now = 0;

	(void)state;
	prb_schedule_begin(&schedule, key, RATE, 0);
	for (int i = 0; i < DRAWS; i++) {
		now = prb_schedule_next(&schedule, now, &missed);
		hits[now % MEAN * PHASES / MEAN]++;
	}
	for (int i = 0; i < PHASES; i++)
		assert_uint_in_range(hits[i], EACH * 94 / 100, EACH * 106 / 100);
}

static void test_lateness_moves_nothing(void **state)
{
	struct prb_schedule punctual, late;
	uint64_t missed = 0;
	int64_t times[20];

	(void)state;
	prb_schedule_begin(&punctual, key, RATE, 0);
	prb_schedule_begin(&late, key, RATE, 0);
	for (int i = 0; i < 20; i++)
		times[i] = prb_schedule_next(&punctual, 0, &missed);
	assert_int_equal(prb_schedule_next(&late, 0, &missed), times[0]);
	assert_int_equal(missed, 0);
	/* Just after the tenth sample is due: those up to it are lost, and counted. */
	assert_int_equal(prb_schedule_next(&late, times[9] + 1, &missed), times[10]);
	assert_int_equal(missed, 9);
	assert_int_equal(prb_schedule_next(&late, times[10], &missed), times[11]);
}

static void test_keys_differ(void **state)
{
	const uint64_t other[2] = {1, 3};
	struct prb_schedule a, b, c;
	uint64_t missed = 0;

	(void)state;
	prb_schedule_begin(&a, key, RATE, 5);
	prb_schedule_begin(&b, key, RATE, 5);
	prb_schedule_begin(&c, other, RATE, 5);
	int64_t first = prb_schedule_next(&a, 5, &missed);

	assert_int_equal(prb_schedule_next(&b, 5, &missed), first);
	assert_int_not_equal(prb_schedule_next(&c, 5, &missed), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gaps_are_exponential),
		cmocka_unit_test(test_no_phase_is_preferred),
		cmocka_unit_test(test_lateness_moves_nothing),
		cmocka_unit_test(test_keys_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
