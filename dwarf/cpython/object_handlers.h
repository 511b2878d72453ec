/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The handlers of single kinds of objects, by the file that has them. See object_private.h
 * for what a handler may do; object_table.c says which types they print.
 */
#ifndef PRB_CPYTHON_OBJECT_HANDLERS_H
#define PRB_CPYTHON_OBJECT_HANDLERS_H

#include "dwarf/cpython/object_private.h"

/* object_table.c */
/** The handler for the repr that the builtin or extension type @p name brings, or NULL. */
prb_repr_handler *prb_repr_c_handler(const char *name);

/* object.c */
prb_repr_handler prb_repr_handle_default;

/* object_str.c, object_bytes.c */
prb_repr_handler prb_repr_handle_str, prb_repr_handle_bytes, prb_repr_handle_bytearray;

/* object_number.c */
prb_repr_handler prb_repr_handle_int, prb_repr_handle_bool, prb_repr_handle_float,
	prb_repr_handle_complex;
void prb_repr_put_complex(struct prb_repr *r, double real, double imaginary);
void prb_repr_put_digits(struct prb_repr *r, const char *text);

/* object_bytes.c */
struct prb_error *prb_repr_put_bytes(struct prb_repr *r, uint64_t address,
				     uint64_t length) PRB_MUST_CHECK;

/* object_container.c */
/** Prints @p count objects whose addresses lie at @p address, separated by ", ". */
struct prb_error *prb_repr_array(struct prb_repr *r, uint64_t address,
				 uint64_t count) PRB_MUST_CHECK;
prb_repr_handler prb_repr_handle_list, prb_repr_handle_tuple, prb_repr_handle_set,
	prb_repr_handle_range, prb_repr_handle_slice, prb_repr_handle_deque;

/* object_mapping.c */
prb_repr_handler prb_repr_handle_dict, prb_repr_handle_dict_keys, prb_repr_handle_dict_values,
	prb_repr_handle_dict_items, prb_repr_handle_defaultdict, prb_repr_handle_ordered_dict,
	prb_repr_handle_mappingproxy, prb_repr_handle_namespace;

#endif
