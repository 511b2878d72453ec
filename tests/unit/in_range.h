/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * assert_in_range() under its new name, since cmocka 2.0 warns of the old one. After <cmocka.h>.
 */
#ifndef PRB_TESTS_IN_RANGE_H
#define PRB_TESTS_IN_RANGE_H

#ifndef assert_uint_in_range
#define assert_uint_in_range assert_in_range
#endif

#endif
