/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Columns and indexes of pandas: values that lie in arrays of numpy, which pandas wraps in
 * classes of its own, and texts in Arrow's memory. Not thread-safe beyond what a prb_repr is; owns
 * nothing. Other columns of Arrow have no values here, and are named by their class.
 */
#ifndef PRB_PYTHON_REPR_ARRAYS_PANDAS_H
#define PRB_PYTHON_REPR_ARRAYS_PANDAS_H

#include "python/repr/arrays/numpy.h"

#define PRB_FRAME_UNKNOWN UINT64_MAX /* a count that could not be read */

enum prb_frame_column_kind {
	PRB_FRAME_UNREAD, /**< only the class is known */
	PRB_FRAME_ARRAY,
	PRB_FRAME_RANGE,     /**< start and step of a RangeIndex */
	PRB_FRAME_LEVELS,    /**< of a MultiIndex: codes and levels of each part */
	PRB_FRAME_INTERVALS, /**< the values of each end are in `levels` and `codes` */
	PRB_FRAME_TEXTS,     /**< in Arrow's memory: shared pointers to arrays are at `first` */
};

struct prb_frame_column {
	enum prb_frame_column_kind kind;
	uint64_t count; /**< of values, or PRB_FRAME_UNKNOWN */
	struct prb_dtype dtype;
	uint64_t first, stride;	    /**< address of the first value, distance of the others */
	uint64_t chunks;	    /**< how many arrays of Arrow */
	uint64_t mask, mask_stride; /**< bytes that are 1 where a value is missing, or 0 */
	uint64_t categories;	    /**< index object that the values are positions in, or 0 */
	bool utc;		    /**< moments with a time zone, which lie in UTC */
	uint32_t period;	    /**< the number of a frequency of pandas, of which it counts */
	bool span;		    /**< spans, shown as days and time */
	char ends[2];		    /**< brackets around an interval */
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
/* pandas_scalars.c */
/** Appends a period as it prints itself, by the number of its frequency. */
struct prb_error *prb_pandas_put_period(struct prb_repr *r, int64_t ordinal,
					uint32_t frequency) PRB_MUST_CHECK;
/** Set in the number of a frequency of pandas before 2.2, where some had other names. */
#define PRB_PANDAS_OLD_FREQUENCY (1u << 31)
/** Appends the name of a frequency: M, Q-DEC. */
void prb_pandas_put_frequency(struct prb_str *out, uint32_t frequency);
/** The number of a frequency: of the dtype of a Period, or of an array of them. */
struct prb_error *prb_pandas_frequency(struct prb_repr *r, uint64_t dtype,
				       uint32_t *ret) PRB_MUST_CHECK;
/** Appends the categories of a Categorical, and whether they are ordered. */
struct prb_error *prb_pandas_put_categories(struct prb_repr *r, uint64_t object,
					    const struct prb_frame_column *values) PRB_MUST_CHECK;
/** Appends a span: 1 days 02:03:04.500000. */
void prb_pandas_put_span(struct prb_repr *r, int64_t value, int32_t unit);

/* pandas_arrow.c */
/** Opens texts: sets all of @p ret but the name. @p object is a ChunkedArray of pyarrow.
 * PRB_ERROR_BAD_DATA if it is not as known. */
struct prb_error *prb_arrow_texts_open(struct prb_repr *r, uint64_t object,
				       struct prb_frame_column *ret) PRB_MUST_CHECK;
/** Appends the text in that row, or how its dtype writes that there is none. */
struct prb_error *prb_arrow_put_text(struct prb_repr *r, const struct prb_frame_column *column,
				     uint64_t row) PRB_MUST_CHECK;
/** Whether that row has the text. */
struct prb_error *prb_arrow_text_is(struct prb_repr *r, const struct prb_frame_column *column,
				    uint64_t row, const char *wanted, bool *same) PRB_MUST_CHECK;

/* pandas_column.c */
/** True of CategoricalDtype. */
bool prb_is_category_dtype(const struct prb_type *type);
/** Address of the items of a list or a class derived from it, and their count. */
struct prb_error *prb_repr_list(struct prb_repr *r, uint64_t object, uint64_t *items,
				uint64_t *count) PRB_MUST_CHECK;

/** The last part of the name of a type. */
const char *prb_type_short_name(const struct prb_type *type);

#endif
