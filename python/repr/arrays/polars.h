/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Columns of polars, which keeps them in memory of Rust. Not thread-safe beyond what a
 * prb_repr is; owns nothing.
 *
 * Rust describes its structures nowhere, so they are known by version (prb_polars_check() refuses
 * all others), and each is checked by what it must agree with: the type of a column with that of
 * its Arrow arrays and with the bytes that these have, lengths with each other, texts with being
 * UTF-8. Disagreement is PRB_ERROR_BAD_DATA.
 */
#ifndef PRB_PYTHON_REPR_ARRAYS_POLARS_H
#define PRB_PYTHON_REPR_ARRAYS_POLARS_H

#include "python/repr/core/repr_private.h"

/** How the values of a type are shown. */
enum prb_polars_kind {
	PRB_POLARS_UNREAD, /**< only the type and the count */
	PRB_POLARS_NULLS,
	PRB_POLARS_NUMBER,
	PRB_POLARS_BOOLEAN,
	PRB_POLARS_TEXT,
	PRB_POLARS_BINARY,
	PRB_POLARS_DATE,
	PRB_POLARS_MOMENT,
	PRB_POLARS_SPAN,
	PRB_POLARS_TIME,
};

/** A text of Rust: bytes of UTF-8. */
struct prb_polars_text {
	uint64_t address, length;
};

struct prb_polars_dtype {
	const char *name;
	enum prb_polars_kind kind;
	unsigned number, width;	     /**< type number of numpy's C interface, bytes of a value */
	unsigned arrow;		     /**< the type that the arrays must have */
	unsigned single;	     /**< the same of a value that stands for all rows */
	unsigned unit;		     /**< of moments and spans: 0 ns, 1 µs, 2 ms */
	struct prb_polars_text zone; /**< of moments; address 0: none */
};

struct prb_polars_series {
	struct prb_polars_text name;
	struct prb_polars_dtype dtype;
	uint64_t length;
	uint64_t chunks, chunk_count; /**< pairs of words: an Arrow array, and its functions */
	uint64_t single;	      /**< address of the one value for all rows, or 0 */
};

/** Checks that the polars that @p type is a class of has structures that are known. */
struct prb_error *prb_polars_check(struct prb_repr *r, const struct prb_type *type) PRB_MUST_CHECK;
/** Reads the series that the words at @p address lead to. */
struct prb_error *prb_polars_series_open(struct prb_repr *r, uint64_t address,
					 struct prb_polars_series *ret) PRB_MUST_CHECK;
/** Reads column @p address of a frame of @p height rows. */
struct prb_error *prb_polars_column_open(struct prb_repr *r, uint64_t address, uint64_t height,
					 struct prb_polars_series *ret) PRB_MUST_CHECK;
/** Appends the type: Int64, Datetime(time_unit='us', time_zone=None). */
struct prb_error *prb_polars_put_dtype(struct prb_repr *r,
				       const struct prb_polars_dtype *dtype) PRB_MUST_CHECK;
/** Appends the first values in brackets. */
struct prb_error *prb_polars_put_values(struct prb_repr *r,
					const struct prb_polars_series *series) PRB_MUST_CHECK;
/** Appends a text as a literal. */
struct prb_error *prb_polars_put_text(struct prb_repr *r,
				      struct prb_polars_text text) PRB_MUST_CHECK;

#endif
