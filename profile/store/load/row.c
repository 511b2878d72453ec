/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/load/row.h"

enum { MOST_ROWS = 1 << 27 };

void prb_row_complain(struct prb_row *row, const char *what)
{
	if (!row->err)
		row->err =
			prb_error_create(PRB_ERROR_BAD_DATA, "a row of '%s' %s", row->table, what);
}

int64_t prb_row_integer(struct prb_row *row, int64_t low, int64_t high)
{
	int64_t value = sqlite3_column_int64(row->stmt, row->cell);

	if (sqlite3_column_type(row->stmt, row->cell++) != SQLITE_INTEGER || value < low ||
	    value > high) {
		prb_row_complain(row, "has a number that cannot be");
		return low;
	}
	return value;
}

int64_t prb_row_optional(struct prb_row *row, int64_t otherwise)
{
	if (sqlite3_column_type(row->stmt, row->cell) != SQLITE_NULL)
		return prb_row_integer(row, 0, INT64_MAX);
	row->cell++;
	return otherwise;
}

uint64_t prb_row_count(struct prb_row *row)
{
	return (uint64_t)prb_row_integer(row, 0, INT64_MAX);
}

double prb_row_real(struct prb_row *row, double high)
{
	int type = sqlite3_column_type(row->stmt, row->cell);
	double value = sqlite3_column_double(row->stmt, row->cell++);

	if ((type != SQLITE_FLOAT && type != SQLITE_INTEGER) || !(value >= 0 && value <= high)) {
		prb_row_complain(row, "has a number that cannot be");
		return 0;
	}
	return value;
}

const char *prb_row_text(struct prb_row *row)
{
	int type = sqlite3_column_type(row->stmt, row->cell);
	const char *text = (const char *)sqlite3_column_text(row->stmt, row->cell++);

	if (type == SQLITE_NULL)
		return NULL;
	if (type != SQLITE_TEXT || !text) {
		prb_row_complain(row, "has no text where one belongs");
		return NULL;
	}
	return text;
}

void prb_row_number(struct prb_row *row, size_t expected)
{
	if (expected > MOST_ROWS)
		prb_row_complain(row, "is one too many");
	if (prb_row_integer(row, INT64_MIN, INT64_MAX) != (int64_t)expected)
		prb_row_complain(row, "is not numbered as they all are");
}
