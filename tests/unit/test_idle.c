/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How long threads were idle, and the clocks of CPUs. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "dump/tasks/cpu_clock.h"
#include "dump/idle.h"
#include "tests/unit/skip.h"

static void test_parse(void **state)
{
	double ms = 1;

	(void)state;
	assert_true(prb_cpu_clock_parse("python (7, #threads: 1)\n"
					"se.exec_start          :       1473927.689945\n"
					"se.vruntime            :           224.516609\n",
					&ms));
	assert_true(ms > 1473927.68 && ms < 1473927.70);
	/* The kernel clears the value when it moves a thread to another CPU. */
	assert_false(prb_cpu_clock_parse("se.exec_start : 0.000000\n", &ms));
	assert_false(prb_cpu_clock_parse("se.exec_start : -5.000000\n", &ms));
	assert_false(prb_cpu_clock_parse("se.exec_start :\n", &ms));
	assert_false(prb_cpu_clock_parse("se.exec_start", &ms));
	assert_false(prb_cpu_clock_parse("", &ms));
}

static void assert_idle(double idle, double expected)
{
	assert_true(idle > expected - 1e-6 && idle < expected + 1e-6);
}

static void test_credible(void **state)
{
	const double hour = 3.6e6, day = 24 * hour;

	(void)state;
	assert_idle(prb_idle_credible(1000, 3000, 0, 5000, day), 2);
	/* A CPU that we may not use, or whose clock is behind. */
	assert_idle(prb_idle_credible(1000, 0, 0, 5000, day), -1);
	assert_idle(prb_idle_credible(3000, 1000, 0, 5000, day), -1);
	/* A time before the thread's start. */
	assert_idle(prb_idle_credible(1000, 9000, 0, 5000, day), -1);
	/* Five seconds were lost since boot: little for a day, whatever the sleep was. */
	assert_idle(prb_idle_credible(1000, 3000, 5000, 5000, day), 2);
	/* Half of the day was lost, perhaps during this sleep. */
	assert_idle(prb_idle_credible(hour, 2 * hour, 12 * hour, day, day), -1);
	/* Two hours of ten were lost, but the sleep is longer than ten times that. */
	assert_idle(prb_idle_credible(hour, 22 * hour, 2 * hour, day, 10 * hour), 21 * 3600);
}

static int first_cpu(const cpu_set_t *set)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set))
			return cpu;
	return -1;
}

/* Reads only CPUs that the caller may use, and keeps its affinity. */
static void test_clocks(void **state)
{
	cpu_set_t before, after, one;
	struct prb_cpu_clock clocks[3] = {{.cpu = -1}, {.cpu = CPU_SETSIZE}};

	(void)state;
	if (access("/proc/self/sched", R_OK))
		SKIP("the kernel has no /proc/PID/sched");
	assert_false(sched_getaffinity(0, sizeof(before), &before));
	clocks[2].cpu = first_cpu(&before);
	for (int attempt = 0; attempt < 300 && clocks[2].now <= 0; attempt++)
		prb_cpu_clocks_read(clocks, 3);
	assert_true(clocks[2].now > 0);
	assert_true(clocks[0].now <= 0 && clocks[1].now <= 0);
	assert_false(sched_getaffinity(0, sizeof(after), &after));
	assert_true(CPU_EQUAL(&before, &after));

	CPU_CLR(clocks[2].cpu, &before);
	if (!CPU_COUNT(&before))
		return;
	CPU_ZERO(&one);
	CPU_SET(first_cpu(&before), &one);
	assert_false(sched_setaffinity(0, sizeof(one), &one));
	prb_cpu_clocks_read(clocks, 3);
	assert_true(clocks[2].now <= 0);
	assert_false(sched_setaffinity(0, sizeof(after), &after));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_credible),
		cmocka_unit_test(test_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
