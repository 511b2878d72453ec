/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When the agent asks for the GIL: of a mutex, a condition variable and words that look like one.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include <sys/syscall.h>

#include "agent/gil_request.h"
#include "agent/python.h"

enum { OTHERS = 0x700, BIT = 1 }; /* other bits of the words, which stay as they are */

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t condition, other;
	_Atomic uint32_t locked;
	_Atomic uint32_t request, breaker;
	_Atomic uint32_t *holder; /* to the state of a thread, whose third word is its own */
	_Atomic uint32_t state[4];
} gil;
static const char *refusal; /* the interpreter's */
static pthread_t thread;
static _Atomic pid_t worker;
static bool ends;

const char *prba_python_refusal(void)
{
	return refusal;
}

static struct prb_wire_hold general(void)
{
	return (struct prb_wire_hold){.mutex = (uintptr_t)&gil.mutex,
				      .condition = (uintptr_t)&gil.condition,
				      .locked = (uintptr_t)&gil.locked,
				      .request = (uintptr_t)&gil.request,
				      .breaker = (uintptr_t)&gil.breaker};
}

static struct prb_wire_hold of_holder(void)
{
	struct prb_wire_hold hold = general();

	hold.holder = (uintptr_t)&gil.holder;
	hold.request = 2 * sizeof(gil.state[0]);
	hold.breaker = 0;
	return hold;
}

static void *wait_for_gil(void *argument)
{
	pthread_mutex_lock(&gil.mutex);
	atomic_store(&worker, (pid_t)syscall(SYS_gettid));
	while (!ends)
		pthread_cond_wait(argument, &gil.mutex);
	pthread_mutex_unlock(&gil.mutex);
	return NULL;
}

/** A thread sleeps there; the mutex is ours. */
static void begin_in(pthread_cond_t *condition)
{
	const struct prb_wire_hold there = {.condition = (uintptr_t)condition};

	refusal = NULL;
	ends = false;
	atomic_store(&worker, 0);
	atomic_store(&gil.locked, 1);
	atomic_store(&gil.request, OTHERS);
	atomic_store(&gil.breaker, OTHERS);
	atomic_store(&gil.state[2], OTHERS);
	gil.holder = gil.state;
	assert_int_equal(0, pthread_create(&thread, NULL, wait_for_gil, condition));
	while (!atomic_load(&worker) || !prba_gil_is_waited_for(&there, atomic_load(&worker)))
		usleep(100);
	pthread_mutex_lock(&gil.mutex);
}

static int begin(void **state)
{
	(void)state;
	begin_in(&gil.condition);
	return 0;
}

static int begin_elsewhere(void **state)
{
	(void)state;
	begin_in(&gil.other);
	return 0;
}

static int end(void **state)
{
	(void)state;
	ends = true;
	pthread_mutex_unlock(&gil.mutex);
	pthread_cond_broadcast(&gil.condition);
	pthread_cond_broadcast(&gil.other);
	return pthread_join(thread, NULL);
}

static bool request(struct prb_wire_hold hold)
{
	return prba_gil_request(&hold, atomic_load(&worker));
}

static void assert_words(uint32_t general_bit, uint32_t holder_bit)
{
	assert_int_equal(OTHERS | general_bit, atomic_load(&gil.request));
	assert_int_equal(OTHERS | holder_bit, atomic_load(&gil.state[2]));
}

static void test_asks_and_takes_back(void **state)
{
	(void)state;
	assert_true(request(general()));
	assert_words(BIT, 0);
	assert_int_equal(OTHERS | BIT, atomic_load(&gil.breaker));
	prba_gil_request_end(false);
	assert_words(0, 0);
	assert_true(request(of_holder()));
	assert_words(0, BIT);
	prba_gil_request_end(false);
	assert_words(0, 0);
}

static void test_stays_where_the_holder_gives_way(void **state)
{
	(void)state;
	assert_true(request(of_holder()));
	prba_gil_request_end(true);
	assert_words(0, BIT);
	prba_gil_request_end(false); /* which is over by now */
	assert_words(0, BIT);
}

static void test_takes_back_when_the_interpreter_ends(void **state)
{
	(void)state;
	assert_true(request(general()));
	refusal = "Python is shutting down";
	prba_gil_request_end(true);
	assert_words(0, 0);
}

static void test_touches_nothing_of_one_that_has_ended(void **state)
{
	(void)state;
	assert_true(request(of_holder()));
	atomic_store(&gil.locked, (uint32_t)-1);
	prba_gil_request_end(false);
	assert_words(0, BIT);
}

static void test_leaves_what_another_thread_asked_for(void **state)
{
	(void)state;
	atomic_fetch_or(&gil.request, BIT);
	assert_true(request(general()));
	prba_gil_request_end(false);
	assert_words(BIT, 0);
}

static void test_a_child_takes_nothing_back(void **state)
{
	(void)state;
	assert_true(request(general()));
	prba_gil_request_forget();
	prba_gil_request_end(false);
	assert_words(BIT, 0);
}

static void test_asks_nobody_who_has_not_the_gil(void **state)
{
	static const uint32_t values[] = {0, 2, (uint32_t)-1};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		atomic_store(&gil.locked, values[i]);
		assert_false(request(general()));
		assert_false(request(of_holder()));
		assert_words(0, 0);
	}
	atomic_store(&gil.locked, 1);
	gil.holder = NULL;
	assert_false(request(of_holder()));
	refusal = "Python is shutting down";
	assert_false(request(general()));
	assert_words(0, 0);
}

static void test_asks_for_nothing_unknown(void **state)
{
	struct prb_wire_hold hold = general();

	(void)state;
	hold.request = 0;
	assert_false(request(hold));
	hold = general();
	hold.locked = 0;
	assert_false(request(hold));
	hold = general();
	assert_false(prba_gil_request(&hold, 0));
	assert_false(prba_gil_request(&hold, (pid_t)syscall(SYS_gettid)));
	assert_words(0, 0);
}

static void test_asks_only_for_one_that_waits_there(void **state)
{
	(void)state;
	assert_false(request(general()));
	assert_false(request(of_holder()));
	assert_words(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_asks_and_takes_back, begin, end),
		cmocka_unit_test_setup_teardown(test_stays_where_the_holder_gives_way, begin, end),
		cmocka_unit_test_setup_teardown(test_takes_back_when_the_interpreter_ends, begin,
						end),
		cmocka_unit_test_setup_teardown(test_touches_nothing_of_one_that_has_ended, begin,
						end),
		cmocka_unit_test_setup_teardown(test_leaves_what_another_thread_asked_for, begin,
						end),
		cmocka_unit_test_setup_teardown(test_a_child_takes_nothing_back, begin, end),
		cmocka_unit_test_setup_teardown(test_asks_nobody_who_has_not_the_gil, begin, end),
		cmocka_unit_test_setup_teardown(test_asks_for_nothing_unknown, begin, end),
		cmocka_unit_test_setup_teardown(test_asks_only_for_one_that_waits_there,
						begin_elsewhere, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
