/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Why a cmocka test does not run here, or not as a whole: tests/tools/unit-tests fails if a reason
 * is not listed in tests/skips.txt. To be used in the thread that runs the test. SKIP() does not
 * return: the caller first ends what it has begun.
 */
#ifndef PRB_TESTS_SKIP_H
#define PRB_TESTS_SKIP_H

#define NOT_TESTED(reason) print_message("[  REASON  ] %s\n", reason)

#define SKIP(reason)                \
	do {                        \
		NOT_TESTED(reason); \
		skip();             \
	} while (0)

#endif
