/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Growable arrays of any type: `struct { T *items; size_t count, capacity; }`.
 *
 *     PRB_VEC(struct foo) foos = {};
 *     struct foo *f = prb_vec_push(&foos);    // zeroed, NULL when out of memory
 *     prb_vec_each (f, &foos) …
 *     prb_vec_free(&foos);
 *
 * Pointers to items are valid until the next push.
 */
#ifndef PRB_BASE_VEC_H
#define PRB_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/** Declares an anonymous vector type; a struct member or variable of it starts as {}. */
#define PRB_VEC(type)                   \
	struct {                        \
		type *items;            \
		size_t count, capacity; \
	}

/** Makes room for @p extra more items of @p size bytes; false when out of memory. */
bool prb_vec_grow(void **items, size_t *capacity, size_t count, size_t extra, size_t size);

#define prb_vec_reserve(vec, extra)                                                   \
	prb_vec_grow((void **)&(vec)->items, &(vec)->capacity, (vec)->count, (extra), \
		     sizeof(*(vec)->items))

/** Appends a zeroed item and gives its address, or NULL when out of memory. */
#define prb_vec_push(vec)                                                                       \
	(prb_vec_reserve(vec, 1)                                                                \
		 ? (__typeof__((vec)->items))__builtin_memset(&(vec)->items[(vec)->count++], 0, \
							      sizeof(*(vec)->items))            \
		 : NULL)

#define prb_vec_each(item, vec) \
	for (item = (vec)->items; item && item < (vec)->items + (vec)->count; item++)

#define prb_vec_free(vec)                           \
	do {                                        \
		free((vec)->items);                 \
		(vec)->items = NULL;                \
		(vec)->count = (vec)->capacity = 0; \
	} while (0)

#endif
