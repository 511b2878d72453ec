/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Images of Pillow, and where their pixels are.
 *
 * Pixels are in memory of Pillow's C library. Its structure has one of two layouts, by the version;
 * one is believed only if its size, its bands and its pointers are those of the image.
 *
 * Threading and errors: as python/repr/core/repr_private.h.
 */
#ifndef PRB_PYTHON_REPR_ARRAYS_PILLOW_H
#define PRB_PYTHON_REPR_ARRAYS_PILLOW_H

#include "python/repr/arrays/elements.h"
#include "python/repr/core/repr_private.h"

/** All but the count. PRB_ERROR_UNSUPPORTED if its pixels are no numbers that can be seen as they
 * are, or are not loaded. */
struct prb_error *prb_repr_open_image(struct prb_repr *r, uint64_t object,
				      struct prb_elements *ret) PRB_MUST_CHECK;

#endif
