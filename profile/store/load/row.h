/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The cells of a row of a recording, one after the other, checked.
 *
 * The first bad cell leaves an error in the row; the others go on with harmless values.
 *
 * Threading: one thread at a time. Internal to profile/store/load/.
 */
#ifndef PRB_PROFILE_STORE_LOAD_ROW_H
#define PRB_PROFILE_STORE_LOAD_ROW_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct prb_row {
	sqlite3_stmt *stmt;
	int cell; /**< the next one */
	const char *table;
	struct prb_error *err; /**< the caller's; NULL: all is well so far */
};

/** "a row of 'stacks' " and @p what. */
void prb_row_complain(struct prb_row *row, const char *what);

/** From @p low to @p high. */
int64_t prb_row_integer(struct prb_row *row, int64_t low, int64_t high);
/** As above, from 0 on; NULL is @p otherwise. */
int64_t prb_row_optional(struct prb_row *row, int64_t otherwise);
uint64_t prb_row_count(struct prb_row *row);
/** From 0 to @p high. */
double prb_row_real(struct prb_row *row, double high);
/** Valid until the next row; NULL for NULL. */
const char *prb_row_text(struct prb_row *row);
/** Rows are numbered without gaps. */
void prb_row_number(struct prb_row *row, size_t expected);

#endif
