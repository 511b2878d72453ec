/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A torch tensor in a target's memory, without running any code there.
 *
 * A tensor object leads to a TensorImpl, which points back at it. The sizes follow that pointer in
 * all versions, and the number of elements, which must fit them, the type and the device follow the
 * sizes. The storage lies before the pointer; it must be on the same device and hold the elements.
 * Where something does not fit, it is unknown (or, of the sizes, BAD_DATA). The dispatch keys
 * behind the type say whether the elements are read as they lie there, or conjugated or negated.
 *
 * Threading: as python/repr/core/repr.h. Errors: PRB_ERROR_FAULT or PRB_ERROR_BAD_DATA for what is
 * no such tensor.
 */
#ifndef PRB_PYTHON_REPR_ARRAYS_TENSOR_H
#define PRB_PYTHON_REPR_ARRAYS_TENSOR_H

#include <stdbool.h>

#include "base/error.h"
#include "python/python.h"

enum { PRB_TENSOR_DIMENSIONS = 64 };

struct prb_tensor {
	uint64_t dimensions, shape[PRB_TENSOR_DIMENSIONS];
	uint64_t strides[PRB_TENSOR_DIMENSIONS]; /**< in elements */
	uint64_t offset;			 /**< of the first element, in elements */
	const char *dtype;			 /**< "float32" */
	uint64_t item_bytes; /**< bytes of one element; 0: it is less than a byte */
	const char *device;  /**< "cuda"; NULL if it has none */
	int8_t device_index; /**< negative if it has none */
	uint64_t elements;
	uint64_t bytes;		/**< of the elements */
	uint64_t storage;	/**< address of the StorageImpl that tensors share; 0 unknown */
	uint64_t data;		/**< where the storage's memory lies, on its device */
	uint64_t storage_bytes; /**< 0 if unknown */
	int8_t requires_grad;	/**< 1, 0; -1 unknown */
	uint64_t grad;		/**< TensorImpl of its gradient; 0 if it has none */
	uint64_t function;	/**< the Node that computes its gradient; 0 if it has none */
	bool plain;		/**< its elements are what lies in the storage (from torch 1.12) */
	unsigned head;		/**< index of the word of a TensorImpl that points at its object */
};

/** The tensor object at @p object. */
struct prb_error *prb_tensor_read(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				  struct prb_tensor *ret) PRB_MUST_CHECK;

/** The gradient of @p of, which may have no object in Python. PRB_ERROR_NOT_FOUND without one. */
struct prb_error *prb_tensor_grad(struct prb_mem *mem, const struct prb_tensor *of,
				  struct prb_tensor *ret) PRB_MUST_CHECK;

/** By torch's own number of it; NULL if unknown. */
const char *prb_tensor_dtype_name(unsigned number);
const char *prb_tensor_device_name(unsigned number);

#endif
