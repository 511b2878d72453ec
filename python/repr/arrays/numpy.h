/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Arrays of numpy in memory, for printers of types made of arrays. Not thread-safe beyond
 * what a prb_repr is; owns nothing. Inconsistent data is PRB_ERROR_BAD_DATA.
 */
#ifndef PRB_PYTHON_REPR_ARRAYS_NUMPY_H
#define PRB_PYTHON_REPR_ARRAYS_NUMPY_H

#include "python/repr/core/repr_private.h"

enum { PRB_NDARRAY_DIMENSIONS = 64 };

/** A unit of datetime64 and timedelta64: the number in numpy's C interface, and how many make one
 * step. */
struct prb_numpy_unit {
	int32_t base, multiple;
};

/** The element type of an array. */
struct prb_dtype {
	unsigned number; /**< type number of numpy's C interface */
	uint64_t size;	 /**< bytes of an item */
	char order;	 /**< '>' for numbers in the other byte order */
	char kind;	 /**< letter that dtype strings begin with */
	struct prb_numpy_unit unit;
	uint64_t fields, names; /**< of one with fields: a dict and a tuple; else 0 */
	uint64_t subarray;	/**< of a field that is an array: its type and shape; else 0 */
};

struct prb_ndarray {
	struct prb_dtype dtype;
	uint64_t data;
	uint64_t dimensions;
	uint64_t shape[PRB_NDARRAY_DIMENSIONS], strides[PRB_NDARRAY_DIMENSIONS]; /**< in bytes */
};

struct prb_error *prb_ndarray_read(struct prb_repr *r, uint64_t object,
				   struct prb_ndarray *ret) PRB_MUST_CHECK;
/** Appends the array as dumps show it: array([1, 2], shape=(2,), dtype=int64). */
struct prb_error *prb_ndarray_put(struct prb_repr *r,
				  const struct prb_ndarray *array) PRB_MUST_CHECK;
/** The first item becomes that of number @p index along the first dimension, which ends; false if
 * there is none. */
bool prb_ndarray_enter(struct prb_ndarray *array, uint64_t index);
/** True if the items are objects. */
bool prb_dtype_is_object(const struct prb_dtype *dtype);
/** The name of a dtype of numbers, and their struct code, of 64 bits 'q' and 'Q'; NULL of others.
 */
const char *prb_dtype_number(const struct prb_dtype *dtype, char *code);
/** True if items of the kind can be printed. */
bool prb_dtype_is_printable(const struct prb_dtype *dtype);
/** Appends the name of the dtype: float64, datetime64[ns], or as "<U5" and ">f8", unquoted. */
void prb_dtype_put_name(struct prb_str *out, const struct prb_dtype *dtype);
/** Appends the item at @p address. */
struct prb_error *prb_ndarray_put_item(struct prb_repr *r, const struct prb_dtype *dtype,
				       uint64_t address) PRB_MUST_CHECK;
/** Appends the items from @p dimension on, the first of which is at @p address, as nested lists. */
struct prb_error *prb_ndarray_put_items(struct prb_repr *r, const struct prb_ndarray *array,
					unsigned dimension, uint64_t address) PRB_MUST_CHECK;
/** The item at @p address of an array of signed integers; PRB_ERROR_BAD_DATA for other arrays. */
struct prb_error *prb_ndarray_int(struct prb_repr *r, const struct prb_dtype *dtype,
				  uint64_t address, int64_t *ret) PRB_MUST_CHECK;

/**
 * Appends a number of at most 16 bytes in our byte order by its struct code, or 'F' or 'D' for the
 * two complex ones. False if it is not known how it looks.
 */
bool prb_numpy_put_number(struct prb_repr *r, char code, const uint8_t *bytes);
/** The value of a float16, and how far from it the next one lies. */
double prb_numpy_half(uint16_t half, double *step);

/** Appends a longdouble as numpy does, from 16 bytes. */
void prb_numpy_put_longdouble(struct prb_repr *r, const uint8_t *bytes, bool point);

/* numpy_fields.c */
/** Reads a dtype object. */
struct prb_error *prb_dtype_read(struct prb_repr *r, uint64_t object,
				 struct prb_dtype *ret) PRB_MUST_CHECK;
/** Appends the item at @p address of a dtype with fields, of an array as an item, or of bytes that
 * have no type. */
struct prb_error *prb_numpy_put_void(struct prb_repr *r, const struct prb_dtype *dtype,
				     uint64_t address) PRB_MUST_CHECK;
/** Appends the dtype as its constructor takes it: [('a', '<i4'), ('b', '<f8')]. */
struct prb_error *prb_numpy_put_fields(struct prb_repr *r,
				       const struct prb_dtype *dtype) PRB_MUST_CHECK;
/** Appends the letters of a dtype without fields: <i4, u1, <U5, O, <M8[ns]. */
void prb_dtype_put_code(struct prb_str *out, const struct prb_dtype *dtype);

/* numpy_time.c */
/** Appends what numpy says of a moment: 2024-05-06T07:08:09, or NaT. False for unknown units. */
bool prb_numpy_put_moment(struct prb_str *out, int64_t value, struct prb_numpy_unit unit);
/** Appends a unit: [ns], [25s]; nothing for that of numbers without one. False for unknown units.
 */
bool prb_numpy_put_unit(struct prb_str *out, struct prb_numpy_unit unit);
/** Appends the repr() of a single datetime64 or timedelta64, without its name. */
bool prb_numpy_put_time_scalar(struct prb_str *out, bool moment, int64_t value,
			       struct prb_numpy_unit unit, bool numpy2);

#endif
