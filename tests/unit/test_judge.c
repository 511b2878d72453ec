/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules on dumps that are made up: what a live process shows seldom, or only for a moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "judge/judge.h"

enum { MOST = 64 };

static struct prb_dump_thread threads[MOST];
static struct prb_dump dump;
static struct prb_findings findings;

/** A thread that waits for @p waits_for, whose holder is a part of it, and has slept for @p idle.
 */
static void add(pid_t tid, const char *waits_for, double idle)
{
	bool lock = waits_for && !strncmp(waits_for, "futex: ", strlen("futex: "));
	const char *held = lock ? strstr(waits_for, " held by ") : NULL;

	threads[dump.threads.count++] = (struct prb_dump_thread){
		.tid = tid,
		.state = "idle",
		.idle_seconds = idle,
		.waits_for = (char *)waits_for,
		.enders = {.kind = lock ? "lock" : NULL,
			   .tid = held ? atoi(held + strlen(" held by ")) : 0,
			   .alone = held && !strstr(waits_for, "waiting for a Lock")},
	};
}

/** Runs the rules of threads; the only finding, or NULL. */
static const struct prb_finding *judge(struct prb_case *c)
{
	c->dump = &dump;
	prb_findings_deinit(&findings);
	assert_null(prb_judge(c, PRB_RULE_THREADS, &findings));
	prb_case_deinit(c);
	assert_true(findings.list.count <= 1);
	return findings.list.count ? findings.list.items[0] : NULL;
}

static int setup(void **state)
{
	(void)state;
	memset(threads, 0, sizeof(threads));
	dump = (struct prb_dump){.threads = {.items = threads}};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	prb_findings_deinit(&findings);
	return 0;
}

static void add_pair(double idle)
{
	add(11, "futex: waiting for an RLock held by 12 b", idle);
	add(12, "futex: waiting for an RLock held by 11 a", idle);
}

static void test_a_circle_that_was_read_at_once(void **state)
{
	struct prb_case c = {.read_seconds = 0.01};
	const struct prb_finding *f;

	(void)state;
	add_pair(5);
	f = judge(&c);
	assert_non_null(f);
	assert_string_equal(f->rule, "deadlock");
	assert_int_equal(f->confidence, PRB_CONFIDENCE_HIGH);
	assert_false(c.again);
	/* No limit of time is known without the process's system calls. */
	assert_false(f->proof);
}

static void test_a_circle_of_unknown_times(void **state)
{
	struct prb_case live = {.read_seconds = 0.01}, file = {.read_seconds = -1};

	(void)state;
	add_pair(-1);
	/* No context switches can be read of a dump that is made up. */
	assert_int_equal(judge(&live)->confidence, PRB_CONFIDENCE_MEDIUM);
	threads[0].idle_seconds = 5;
	threads[1].idle_seconds = 0.5;
	assert_int_equal(judge(&live)->confidence, PRB_CONFIDENCE_MEDIUM);
	threads[0].idle_seconds = threads[1].idle_seconds = -1;
	assert_int_equal(judge(&file)->confidence, PRB_CONFIDENCE_MEDIUM);
	threads[0].idle_seconds = threads[1].idle_seconds = 0.5;
	assert_int_equal(judge(&file)->confidence, PRB_CONFIDENCE_MEDIUM);
	threads[0].idle_seconds = threads[1].idle_seconds = 2;
	assert_int_equal(judge(&file)->confidence, PRB_CONFIDENCE_HIGH);
}

static void test_a_lock_of_its_own(void **state)
{
	struct prb_case c = {};
	const struct prb_finding *f;

	(void)state;
	add(11, "futex: waiting for a Lock held by 11 a, in `f` a.py:3", 5);
	f = judge(&c);
	assert_string_equal(prb_str_text(&f->brief), "deadlock of 1 thread");
	assert_non_null(strstr(prb_str_text(&f->sentence), "that it holds itself"));
	assert_false(f->proof);
}

/* All threads in one circle, and a chain of others that leads to it. */
static void test_a_long_circle(void **state)
{
	static char words[MOST][64];
	struct prb_case c = {};
	const struct prb_finding *f;

	(void)state;
	for (int i = 0; i < MOST; i++) {
		snprintf(words[i], sizeof(words[i]), "futex: waiting for an RLock held by %d",
			 i == 39	? 1
			 : i + 2 > MOST ? 40
					: i + 2);
		add(i + 1, words[i], 5);
	}
	f = judge(&c);
	assert_string_equal(prb_str_text(&f->brief), "deadlock of 40 threads");
	assert_int_equal(f->tids.count, 40);
	assert_non_null(strstr(prb_str_text(&f->sentence), "1, 2, 3, 4, 5, 6 and 34 more"));
	assert_int_equal(f->evidence.count, 41);
	assert_non_null(strstr(prb_str_text(&f->evidence.items[40].text), "24 more threads wait"));
}

/* What stands in a path or a name is not ours. */
static void test_words_of_others(void **state)
{
	static const char *const waits[] = {
		"flock: a lock on file 3 /tmp/ held by 11 held by 12 (x)",
		"read: file 3 /tmp/futex: waiting for an RLock held by 11",
		"futex: waiting in Queue.get",
	};
	struct prb_case c = {};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(waits); i++)
		for (size_t k = 0; k < 2; k++) {
			dump.threads.count = 0;
			add(11, waits[i], 0.5);
			add(12, waits[i], 0.5);
			assert_null(judge(&c));
		}
	dump.threads.count = 0;
	add(11, "futex: waiting for an RLock held by 12 held by 11", 5);
	assert_null(judge(&c));
	add(12, "futex: waiting in Queue.get", 5);
	assert_null(judge(&c));
}

static void test_a_lock_of_no_thread(void **state)
{
	struct prb_case c = {};
	const struct prb_finding *f;

	(void)state;
	add(11,
	    "futex: waiting for an RLock that no thread of this process holds: it was held when "
	    "10 forked",
	    5);
	threads[0].orphaned = true;
	f = judge(&c);
	assert_string_equal(f->rule, "orphan");
	assert_int_equal(f->kind, PRB_FINDING_ORPHAN);
	assert_int_equal(f->tids.items[0], 11);
}

static void test_the_gil(void **state)
{
	struct prb_case c = {};

	(void)state;
	add(11, "read: pipe 3", 5);
	threads[0].gil = "holds";
	assert_string_equal(judge(&c)->rule, "gil_sleeps");
	assert_int_equal(judge(&c)->confidence, PRB_CONFIDENCE_MEDIUM);
	add(12, "futex: waiting for the GIL", 5);
	threads[1].gil = "waits";
	assert_int_equal(judge(&c)->confidence, PRB_CONFIDENCE_HIGH);
	threads[0].state = "running";
	assert_null(judge(&c));
	threads[0].state = "idle";
	threads[0].idle_seconds = 0.5;
	assert_null(judge(&c));
	/* The time passes while nothing is read. */
	c.since = 1;
	assert_string_equal(judge(&c)->rule, "gil_sleeps");
}

static void test_a_wait_for_a_disk(void **state)
{
	struct prb_case c = {};

	(void)state;
	add(11, NULL, 0.5);
	threads[0].state = "uninterruptible";
	assert_null(judge(&c));
	threads[0].idle_seconds = -1;
	assert_string_equal(judge(&c)->rule, "device");
}

static void test_rules_are_complete(void **state)
{
	(void)state;
	for (const struct prb_rule *const *rule = prb_rules; *rule; rule++) {
		assert_true((*rule)->needs);
		assert_true(strlen((*rule)->proves) > 10);
		assert_true((*rule)->kind != PRB_FINDING_NOTHING);
		assert_true(!rule[1] || rule[0]->rank < rule[1]->rank);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_circle_that_was_read_at_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_circle_of_unknown_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lock_of_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_long_circle, setup, teardown),
		cmocka_unit_test_setup_teardown(test_words_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lock_of_no_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_gil, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_wait_for_a_disk, setup, teardown),
		cmocka_unit_test(test_rules_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
