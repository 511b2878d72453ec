/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The numbers in an array of numpy, a torch tensor on the CPU or an image of Pillow, one by
 * one, in the order of their indexes, the last of which runs fastest.
 *
 * Threading: as python/repr/core/repr.h. Owns nothing.
 */
#ifndef PRB_PYTHON_REPR_ARRAYS_ELEMENTS_H
#define PRB_PYTHON_REPR_ARRAYS_ELEMENTS_H

#include "python/repr/core/repr.h"

enum { PRB_ELEMENTS_DIMENSIONS = 64, PRB_ELEMENTS_WINDOW = 4096 };

struct prb_elements {
	const char *dtype; /**< "float32"; static */
	char code;	   /**< struct code of the numbers, or 'g': bfloat16 */
	bool swapped;	   /**< they are in the other byte order */
	unsigned size;	   /**< bytes of one: 1 to 8 */
	uint64_t dimensions, shape[PRB_ELEMENTS_DIMENSIONS];
	uint64_t strides[PRB_ELEMENTS_DIMENSIONS]; /**< in bytes; negative ones wrap around */
	uint64_t first, count;			   /**< address; how many there are */
	/** Address of pointers, one for each index of the first dimension, in place of `first` and
	 * of that dimension's stride; 0: none. */
	uint64_t rows;
	/** What is read is an index into the palette, four bytes for each colour; the last index
	 * is that of a byte of the colour. */
	bool has_palette;
	uint8_t palette[1024];

	/* The bytes that were read last; the reader's own. */
	uint64_t at, held;
	uint64_t row, row_address; /* whose pointer was read last, and that pointer; 0: none yet */
	uint8_t window[PRB_ELEMENTS_WINDOW];
};

/**
 * Opens the object at @p object. PRB_ERROR_UNSUPPORTED if it is no such array, its elements are no
 * real numbers, or they are not in the memory of the CPU; PRB_ERROR_FAULT and PRB_ERROR_BAD_DATA if
 * it cannot be read.
 */
struct prb_error *prb_objects_elements(struct prb_objects *objects, uint64_t object,
				       struct prb_elements *ret) PRB_MUST_CHECK;

/**
 * The number of index @p index, less than `count`; ret->kind is that of none for an integer that
 * does not fit into 64 bits with a sign. @p mem: whose memory holds them, now.
 */
struct prb_error *prb_elements_read(struct prb_elements *elements, struct prb_mem *mem,
				    uint64_t index, struct prb_object_number *ret) PRB_MUST_CHECK;

#endif
