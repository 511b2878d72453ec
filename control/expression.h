/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file An expression of a Python process as rows: its value is computed by the agent in the
 * namespace of __main__, and taken apart there (control/expression.py).
 *
 * Threading: one thread at a time per target. Ownership: the rows are the caller's. Errors: those
 * of control/eval.h; PRB_ERROR_FAILED with the last line of an exception.
 */
#ifndef PRB_CONTROL_EXPRESSION_H
#define PRB_CONTROL_EXPRESSION_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "target/target.h"

enum { PRB_EXPRESSION_COLUMNS = 64 };

struct prb_expression_cell {
	enum {
		PRB_EXPRESSION_NULL,
		PRB_EXPRESSION_INTEGER,
		PRB_EXPRESSION_REAL,
		PRB_EXPRESSION_TEXT
	} kind;
	uint32_t length; /**< of a text */
	union {
		int64_t integer;
		double real;
		size_t offset; /**< of a text, in `text` */
	};
};

struct prb_expression_rows {
	unsigned columns;
	char *names[PRB_EXPRESSION_COLUMNS];
	PRB_VEC(struct prb_expression_cell) cells; /**< row by row */
	struct prb_str text;
	bool more; /**< there were more rows than are given */
};

/** Evaluates @p expression; loads the agent if there is none. @p ret was zeroed. */
struct prb_error *prb_expression_evaluate(struct prb_target *t, const char *expression,
					  double timeout,
					  struct prb_expression_rows *ret) PRB_MUST_CHECK;
void prb_expression_rows_deinit(struct prb_expression_rows *rows);

#endif
