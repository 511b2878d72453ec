/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file repr() of an object in a target's memory, without running any code there.
 *
 * The answer is what repr() would print in the process for the types listed in the user's guide;
 * other objects, among them those whose class defines __repr__ in Python and is not of the standard
 * library, are shown with their attributes as "<module.Class step=3 name='x'>", or as
 * "<module.Class object at 0x…>" if they have none, or lie too deep. Two kinds of objects have a
 * form of their own: array([1, 2], shape=(2,), dtype=int64) for numpy arrays and tensor([0.5],
 * shape=(1,), dtype=float32, device='cpu') for torch tensors.
 *
 * Where a part cannot be read, its place is taken by "<unreadable at 0x…>" and the rest is printed.
 * Depth, items and text are bounded by the options; what is left out shows as "…" with the count
 * of what is missing: [0, 1, …+98], 'abc'…+17.
 */
#ifndef PRB_PYTHON_REPR_CORE_REPR_H
#define PRB_PYTHON_REPR_CORE_REPR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "python/python.h"

struct prb_repr_options {
	unsigned max_depth; /**< nesting of containers; 0: default (4) */
	unsigned max_items; /**< per container; 0: default (20) */
	unsigned max_text;  /**< characters of one string; 0: default (200) */
	unsigned max_total; /**< bytes of the whole text; 0: default (2000) */
	/** Levels of instances, counted like max_depth, that show their attributes; 0: none. Where
	 * there are no options at all it is 1. */
	unsigned max_objects;
	bool objects_alone;	 /**< containers around them do not count for that */
	unsigned max_attributes; /**< of one of them; 0: default (12) */
	bool long_attributes;	 /**< as long as single values */
	bool secrets;		 /**< also what an object's own class hides (hidden.c) */
	/** As debuggers show objects: those of classes derived from list, str and the like with
	 * class and attributes, and frames with their variables. */
	bool whole;
	bool marked; /**< the caller calls prb_custom_expand() of target/custom.h */
};

/**
 * Appends repr(@p object) to @p ret. Memory that cannot be read is no error but shows in the text,
 * also where a sealed view has not got it: compare prb_view_misses() before and after.
 */
struct prb_error *prb_object_repr(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				  const struct prb_repr_options *options,
				  struct prb_str *ret) PRB_MUST_CHECK;

/** Appends the name of the object's type, like type(x).__name__. */
struct prb_error *prb_object_type_name(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				       struct prb_str *ret) PRB_MUST_CHECK;

/** The kind of a number, of exactly these types, and of tensors of torch with one element. */
enum prb_number_kind {
	PRB_NUMBER_NONE,    /**< another object, or an int that does not fit */
	PRB_NUMBER_INTEGER, /**< int and bool */
	PRB_NUMBER_REAL,
};

/**
 * As above, for many objects of one instant, whose types are read only once: for as long as @p mem
 * is the same epoch of a view, or memory that does not change. @p options are copied; NULL: the
 * default limits.
 */
struct prb_objects;
struct prb_error *prb_objects_create(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_repr_options *options,
				     struct prb_objects **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_objects_destroy(struct prb_objects *objects);
struct prb_error *prb_objects_repr(struct prb_objects *objects, uint64_t object,
				   struct prb_str *ret) PRB_MUST_CHECK;
struct prb_error *prb_objects_type_name(struct prb_objects *objects, uint64_t object,
					struct prb_str *ret) PRB_MUST_CHECK;

/** The class of an object, and its number if it is one. */
struct prb_object_number {
	uint64_t type;
	enum prb_number_kind kind;
	int64_t integer;
	double real;
};
struct prb_error *prb_objects_number(struct prb_objects *objects, uint64_t object,
				     struct prb_object_number *ret) PRB_MUST_CHECK;

/** The name of the type of a value in C that is given as text (attributes.h): "int", "str", …;
 * NULL if it is hidden. */
const char *prb_repr_text_type(const char *text);

/* Building blocks that others need too. */

/** Text of a str object, as UTF-8 with lone surrogates as \udXXX. At most @p max characters. */
struct prb_error *prb_object_str(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				 size_t max, struct prb_str *ret) PRB_MUST_CHECK;

/** True if it is the type of code objects, by its tp_members, which have the places that the layout
 * has: for one whose name cannot be read. */
bool prb_object_is_code_type(struct prb_python *py, struct prb_mem *mem, uint64_t address);

/**
 * A number that identifies the text of the str @p object: its hash, or a substitute while it has
 * none.
 */
struct prb_error *prb_object_str_sum(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				     uint64_t *ret) PRB_MUST_CHECK;

/** Calls @p visit for each entry of a dict until it returns false. Bounded by the dict's own size.
 */
struct prb_error *prb_object_dict_each(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				       bool (*visit)(void *context, uint64_t key, uint64_t value),
				       void *context) PRB_MUST_CHECK;

/** The value of the str key @p name in a dict; PRB_ERROR_NOT_FOUND. */
struct prb_error *prb_object_dict_get(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				      const char *name, uint64_t *ret) PRB_MUST_CHECK;

/** An instance attribute by name: managed or inline values, __dict__, __slots__. NOT_FOUND. */
struct prb_error *prb_object_attribute(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				       const char *name, uint64_t *ret) PRB_MUST_CHECK;

/** Value of an int object; PRB_ERROR_BAD_DATA if it is not an int or does not fit. */
struct prb_error *prb_object_int(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				 int64_t *ret) PRB_MUST_CHECK;

#endif
