/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Columns and indexes of pandas: values that lie in arrays of numpy, which pandas wraps in
 * classes of its own. Not thread-safe beyond what a prb_repr is; owns nothing. Columns outside of
 * numpy's arrays (Arrow's memory) have no values here, and are named by their class.
 */
#ifndef PRB_PYTHON_REPR_ARRAYS_PANDAS_H
#define PRB_PYTHON_REPR_ARRAYS_PANDAS_H

#include "python/repr/arrays/numpy.h"

#define PRB_FRAME_UNKNOWN UINT64_MAX /* a count that could not be read */

enum prb_frame_column_kind {
	PRB_FRAME_UNREAD, /**< only the class is known */
	PRB_FRAME_ARRAY,
	PRB_FRAME_RANGE,  /**< start and step of a RangeIndex */
	PRB_FRAME_LEVELS, /**< of a MultiIndex: codes and levels of each part */
};

struct prb_frame_column {
	enum prb_frame_column_kind kind;
	uint64_t count; /**< of values, or PRB_FRAME_UNKNOWN */
	struct prb_dtype dtype;
	uint64_t first, stride;	    /**< address of the first value, distance of the others */
	uint64_t mask, mask_stride; /**< bytes that are 1 where a value is missing, or 0 */
	uint64_t categories;	    /**< index object that the values are positions in, or 0 */
	bool utc;		    /**< moments with a time zone, which lie in UTC */
	int64_t start, stop, step;
	uint64_t levels, codes; /**< lists, of a MultiIndex */
	char name[80];		/**< of the dtype, or of the class whose values are not read */
};

/** Opens the values of a column: an array, or what pandas wraps it in. @p row is the row of an
 * array that has two dimensions. */
struct prb_error *prb_frame_column_open(struct prb_repr *r, uint64_t values, uint64_t row,
					struct prb_frame_column *ret) PRB_MUST_CHECK;
/** As above, for an Index. */
struct prb_error *prb_frame_column_open_index(struct prb_repr *r, uint64_t index,
					      struct prb_frame_column *ret) PRB_MUST_CHECK;
/** Appends the value in that row. */
struct prb_error *prb_frame_column_put(struct prb_repr *r, const struct prb_frame_column *column,
				       uint64_t row) PRB_MUST_CHECK;
/** Appends the first values in brackets; @p count is how many there are if the column does not know
 * it. */
struct prb_error *prb_frame_column_put_all(struct prb_repr *r,
					   const struct prb_frame_column *column,
					   uint64_t count) PRB_MUST_CHECK;

/** The row that has the text; PRB_ERROR_NOT_FOUND, or PRB_ERROR_BAD_DATA if the values are no
 * objects. */
struct prb_error *prb_frame_column_find(struct prb_repr *r, const struct prb_frame_column *column,
					const char *text, uint64_t *row) PRB_MUST_CHECK;

/** The first object among the words of @p object, which is of a type written in C, that @p wanted
 * accepts; PRB_ERROR_NOT_FOUND. Words that are no objects are passed over. */
typedef bool prb_part_wanted_fn(const struct prb_type *type);
struct prb_error *prb_repr_find_word(struct prb_repr *r, uint64_t object,
				     prb_part_wanted_fn *wanted, uint64_t *ret) PRB_MUST_CHECK;
/** Address of the items of a list or a class derived from it, and their count. */
struct prb_error *prb_repr_list(struct prb_repr *r, uint64_t object, uint64_t *items,
				uint64_t *count) PRB_MUST_CHECK;

/** The last part of the name of a type. */
const char *prb_type_short_name(const struct prb_type *type);

#endif
