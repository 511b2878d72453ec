/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The elements of a torch tensor, as far as they lie in memory of the CPU.
 *
 * Elements are read only where the tensor checks (tensor.h): a number type that is known, plain
 * dispatch keys, and a storage in which all elements lie. Others have no values.
 *
 * Threading and errors: as python/repr/core/repr_private.h; unreadable elements are no error.
 */
#ifndef PRB_PYTHON_REPR_ARRAYS_TENSOR_VALUES_H
#define PRB_PYTHON_REPR_ARRAYS_TENSOR_VALUES_H

#include "python/repr/arrays/tensor.h"
#include "python/repr/core/repr_private.h"

/** Appends the first elements, [[0.5, 1.0, …+98], …+9], at most max_items; *shown: it did. */
struct prb_error *prb_tensor_put_values(struct prb_repr *r, const struct prb_tensor *tensor,
					bool *shown) PRB_MUST_CHECK;

/** Appends ", nan=3, inf=1" if the first 4096 elements have some. */
struct prb_error *prb_tensor_put_counts(struct prb_repr *r,
					const struct prb_tensor *tensor) PRB_MUST_CHECK;

/** The number of a tensor of one element; ret->kind stays if it has another number of them, or if
 * it is complex. */
struct prb_error *prb_tensor_number(struct prb_repr *r, const struct prb_tensor *tensor,
				    struct prb_object_number *ret) PRB_MUST_CHECK;

/**
 * The code of its numbers: as struct has it, 'F' and 'D' complex, 'g' bfloat16; and the address of
 * the first. 0 if they are not in the CPU's memory, or not as they lie there.
 */
char prb_tensor_values_code(const struct prb_tensor *tensor, uint64_t *first);

/** The number of such a code in 16 bytes, of which @p size are its own. ret->kind stays for complex
 * ones, and for integers over INT64_MAX. */
void prb_tensor_values_number(char code, unsigned size, const uint8_t *bytes,
			      struct prb_object_number *ret);

#endif
