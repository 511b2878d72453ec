/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Arithmetic on numbers that come from a target or a file: it fails instead of wrapping.
 *
 * Each returns true when the exact result fits and stores it; false otherwise, *result unspecified.
 */
#ifndef PRB_BASE_CHECKED_H
#define PRB_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRB_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
/** The smaller, the larger of two values without side effects: one is evaluated twice. */
#define PRB_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PRB_MAX(a, b) ((a) > (b) ? (a) : (b))

static inline bool prb_add(uint64_t a, uint64_t b, uint64_t *result)
{
	return !__builtin_add_overflow(a, b, result);
}

static inline bool prb_mul(uint64_t a, uint64_t b, uint64_t *result)
{
	return !__builtin_mul_overflow(a, b, result);
}

/** True if [start, start+length) lies inside [0, size). */
static inline bool prb_inside(uint64_t start, uint64_t length, uint64_t size)
{
	return start <= size && length <= size - start;
}

#endif
