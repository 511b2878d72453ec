/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SipHash against its authors' vectors and Python's hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/siphash.h"

static void test_what_its_authors_say(void **state)
{
	/* The key is the bytes 0 to 15, the text as many bytes from 0 on. */
	static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	static const struct {
		size_t length;
		uint64_t hash;
	} cases[] = {
		{0, 0x726fdb47dd0e0e31},
		{1, 0x74f839c593dc67fd},
		{8, 0x93f5f5799a932462},
		{15, 0xa129ca6149be45e5},
	};
	unsigned char text[16];

	(void)state;
	for (unsigned char i = 0; i < sizeof(text); i++)
		text[i] = i;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(prb_siphash(2, 4, key, text, cases[i].length), cases[i].hash);
}

/* PYTHONHASHSEED=0: the key is zero. */
static void test_what_python_says(void **state)
{
	static const uint64_t key[2] = {};

	(void)state;
	assert_int_equal(prb_siphash(1, 3, key, "threading", 9), 0xfcfc27a99f1078d4);
	assert_int_equal(prb_siphash(2, 4, key, "threading", 9), 0xb4b2edb06cddca21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_its_authors_say),
		cmocka_unit_test(test_what_python_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
