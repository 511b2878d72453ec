/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent's identity cache, with objects that only count their references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include <sys/resource.h>

#include "agent/inside/identity_cache.h"

enum {
	FULL = PRBA_KNOWN / 2,
	OBJECTS = FULL + 2,
	ROW = 16,  /* bytes between two objects, at least */
	SAME = 36, /* only bits from this one on differ: the same row */
};

struct prba_python_table prba_python;

static struct prba_cache table;
static char objects[OBJECTS][ROW];
static int held[OBJECTS];
static int others; /* references to keys other than the objects */
static void (*freeing)(void);

static object *key(int i)
{
	return (object *)objects[i];
}

static int *count(const object *o)
{
	uintptr_t offset = (uintptr_t)o - (uintptr_t)objects;

	return offset < sizeof(objects) ? &held[offset / ROW] : &others;
}

static void hold(object *o)
{
	++*count(o);
}

static void let_go(object *o)
{
	--*count(o);
	if (freeing)
		freeing();
}

static int held_in_all(void)
{
	int sum = others;

	for (int i = 0; i < OBJECTS; i++)
		sum += held[i];
	return sum;
}

static int begin(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	memset(held, 0, sizeof(held));
	others = 0;
	freeing = NULL;
	prba_python.Py_IncRef = hold;
	prba_python.Py_DecRef = let_go;
	return 0;
}

static void fill(void)
{
	for (int i = 0; i < FULL; i++)
		prba_cache_put(&table, key(i), i + 1);
}

static void test_what_was_put_is_known(void **state)
{
	(void)state;
	assert_int_equal(prba_cache_get(&table, key(0)), 0);
	prba_cache_put(&table, key(0), 7);
	prba_cache_put(&table, key(1), -1);
	assert_int_equal(prba_cache_get(&table, key(0)), 7);
	assert_int_equal(prba_cache_get(&table, key(1)), -1);
	assert_int_equal(prba_cache_get(&table, key(2)), 0);
	assert_int_equal(held_in_all(), 2);
}

static void test_the_same_again(void **state)
{
	(void)state;
	for (int value = 1; value <= 3; value++)
		prba_cache_put(&table, key(0), value);
	assert_int_equal(prba_cache_get(&table, key(0)), 3);
	assert_int_equal(held[0], 1);
	prba_cache_clear(&table);
	assert_int_equal(held[0], 0);
}

/* All but the first are put into following rows. */
static void test_many_of_one_row(void **state)
{
	enum { MANY = 100 };

	(void)state;
	for (uintptr_t i = 1; i <= MANY; i++)
		prba_cache_put(&table, (object *)(i << SAME), (int)i);
	for (uintptr_t i = 1; i <= MANY; i++)
		assert_int_equal(prba_cache_get(&table, (object *)(i << SAME)), (int)i);
	assert_int_equal(prba_cache_get(&table, (object *)((MANY + 1ull) << SAME)), 0);
	assert_int_equal(others, MANY);
	prba_cache_clear(&table);
	assert_int_equal(others, 0);
}

/* The last row is full, so that entries continue in the first. */
static void test_round_the_end(void **state)
{
	(void)state;
	for (uintptr_t first = 1; first <= PRBA_KNOWN; first++) {
		object *one = (object *)(first << 4),
		       *other = (object *)(first << 4 | 1ull << SAME);

		prba_cache_clear(&table);
		prba_cache_put(&table, one, 1);
		assert_int_equal(prba_cache_get(&table, other), 0);
		prba_cache_put(&table, other, 2);
		assert_int_equal(prba_cache_get(&table, one), 1);
		assert_int_equal(prba_cache_get(&table, other), 2);
	}
}

static void test_full(void **state)
{
	(void)state;
	fill();
	for (int i = 0; i < FULL; i++)
		assert_int_equal(prba_cache_get(&table, key(i)), i + 1);
	assert_int_equal(prba_cache_get(&table, key(FULL)), 0);
	assert_int_equal(held_in_all(), FULL);
	/* One more key clears the table, and drops all references. */
	prba_cache_put(&table, key(FULL), 5);
	assert_int_equal(prba_cache_get(&table, key(FULL)), 5);
	for (int i = 0; i < FULL; i++)
		assert_int_equal(prba_cache_get(&table, key(i)), 0);
	assert_int_equal(held_in_all(), 1);
	assert_int_equal(held[FULL], 1);
}

/* A known key needs no room. */
static void test_the_same_again_when_full(void **state)
{
	(void)state;
	fill();
	prba_cache_put(&table, key(0), 9);
	assert_int_equal(prba_cache_get(&table, key(0)), 9);
	assert_int_equal(prba_cache_get(&table, key(1)), 2);
	assert_int_equal(held_in_all(), FULL);
}

/* A known key is referenced, so its address cannot be reused; after a clear it can. */
static void test_an_address_that_is_used_again(void **state)
{
	(void)state;
	prba_cache_put(&table, key(0), 1);
	assert_int_equal(held[0], 1);
	prba_cache_clear(&table);
	assert_int_equal(held[0], 0);
	assert_int_equal(prba_cache_get(&table, key(0)), 0);
	prba_cache_put(&table, key(0), 2);
	assert_int_equal(prba_cache_get(&table, key(0)), 2);
	assert_int_equal(held[0], 1);
}

static void test_forgetting_nothing(void **state)
{
	(void)state;
	prba_cache_clear(&table);
	prba_cache_put(&table, key(0), 1);
	prba_cache_clear(&table);
	prba_cache_clear(&table);
	assert_int_equal(held_in_all(), 0);
}

/** Code of the program that runs when an object of it is freed. */
static void comes_back(void)
{
	freeing = NULL;
	for (int i = 0; i < FULL; i++)
		assert_int_equal(prba_cache_get(&table, key(i)), 0);
	prba_cache_put(&table, key(3), 33);
}

static void test_what_comes_while_it_is_emptied_stays(void **state)
{
	(void)state;
	fill();
	freeing = comes_back;
	prba_cache_put(&table, key(FULL), 1);
	assert_null(freeing);
	assert_int_equal(prba_cache_get(&table, key(3)), 33);
	assert_int_equal(prba_cache_get(&table, key(FULL)), 1);
	assert_int_equal(held[3], 1);
	assert_int_equal(held_in_all(), 2);
}

static void test_without_memory(void **state)
{
	struct rlimit before, none;

	(void)state;
	fill();
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	prba_cache_clear(&table);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	for (int i = 0; i < FULL; i++)
		assert_int_equal(prba_cache_get(&table, key(i)), 0);
	/* The references are leaked, rather than dropped while the objects may be in the table. */
	assert_int_equal(held_in_all(), FULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_what_was_put_is_known, begin),
		cmocka_unit_test_setup(test_the_same_again, begin),
		cmocka_unit_test_setup(test_many_of_one_row, begin),
		cmocka_unit_test_setup(test_round_the_end, begin),
		cmocka_unit_test_setup(test_full, begin),
		cmocka_unit_test_setup(test_the_same_again_when_full, begin),
		cmocka_unit_test_setup(test_an_address_that_is_used_again, begin),
		cmocka_unit_test_setup(test_forgetting_nothing, begin),
		cmocka_unit_test_setup(test_what_comes_while_it_is_emptied_stays, begin),
		cmocka_unit_test_setup(test_without_memory, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
