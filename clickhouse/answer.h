/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reads an answer in the format TabSeparatedWithNamesAndTypes as it comes, row by row.
 *
 * The answer is not trusted: lines and columns are bounded, and what does not fit together is
 * PRB_ERROR_BAD_DATA. Numbers stay numbers; what is no 64-bit number is a text, also what
 * ClickHouse has types of its own for (Date, Array, UInt64 beyond 2^63).
 *
 * Threading: one thread at a time. Ownership: names and values are valid during the call.
 */
#ifndef PRB_CLICKHOUSE_ANSWER_H
#define PRB_CLICKHOUSE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"
#include "sql/engine/session.h"

enum { PRB_ANSWER_COLUMNS = 2048 };

struct prb_answer_handler {
	struct prb_error *(*begin)(void *context, const char *const *names, size_t count);
	/** PRB_ERROR_CANCELLED ends the reading. */
	struct prb_error *(*row)(void *context, const struct prb_value *values);
	void *context;
};

struct prb_answer {
	const struct prb_answer_handler *handler;
	struct prb_str line; /**< what came of the present one, or of the first two */
	struct prb_str cells;
	size_t columns;
	size_t lines;
	unsigned char kinds[PRB_ANSWER_COLUMNS];
	struct prb_value values[PRB_ANSWER_COLUMNS];
	char *names; /**< one after the other, each with its NUL */
};

/** Takes the next bytes. */
struct prb_error *prb_answer_take(struct prb_answer *answer, const char *data,
				  size_t length) PRB_MUST_CHECK;
/** After the last: an answer that ends within a line was cut. */
struct prb_error *prb_answer_end(struct prb_answer *answer) PRB_MUST_CHECK;
void prb_answer_deinit(struct prb_answer *answer);

#endif
