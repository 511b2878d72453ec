/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The attributes of an object in a target's memory, without running any code there.
 *
 * Visits, in this order: the entries of its __dict__ (a dict, or the values that an instance keeps
 * in its place), in the order of insertion; its slots and the fields of C types, which member
 * descriptors of its classes describe; and, if they are wanted, the variables of a generator,
 * coroutine or frame that has not ended, and the names of what its classes would compute
 * (properties and other descriptors), which are named and never called.
 *
 * Nothing is taken from memory that does not fit together: an object whose parts are of different
 * moments is visited as far as possible, and `torn` says that more may be missing.
 *
 * Threading: as repr.h. Errors: PRB_ERROR_FAULT or PRB_ERROR_BAD_DATA if there is no object or it
 * makes no sense; what was visited before is right.
 */
#ifndef PRB_PYTHON_REPR_CORE_ATTRIBUTES_H
#define PRB_PYTHON_REPR_CORE_ATTRIBUTES_H

#include "base/error.h"
#include "python/python.h"

enum prb_attribute_kind {
	PRB_ATTRIBUTE_DICT = 1 << 0,	 /**< in its __dict__ */
	PRB_ATTRIBUTE_SLOT = 1 << 1,	 /**< of __slots__, or a field of a C type */
	PRB_ATTRIBUTE_COMPUTED = 1 << 2, /**< `object` is the descriptor */
	PRB_ATTRIBUTE_LOCAL = 1 << 3,	 /**< a variable of its frame */
	/**
	 * Not a kind: values that the object's class hides are visited, too. Without it, they are
	 * the text "<hidden>".
	 */
	PRB_ATTRIBUTE_SECRETS = 1 << 4,
};

struct prb_attribute {
	enum prb_attribute_kind kind;
	const char *name;  /**< "" where the key of a __dict__ is no str */
	uint64_t key;	   /**< the key in a __dict__; else 0 */
	uint64_t object;   /**< the value; 0 if it is only a number or text in C, or hidden */
	const char *text;  /**< repr() of that; NULL if it is an object */
	const char *owner; /**< tp_name of the class that has the slot or descriptor, or NULL */
};

typedef bool prb_attribute_visit(void *context, const struct prb_attribute *attribute);

/**
 * Calls @p visit for each attribute of the @p kinds (enum prb_attribute_kind, or-ed) until it
 * returns false. A slot that is not set is left out. @p torn may be NULL.
 */
struct prb_error *prb_object_attributes(struct prb_python *py, struct prb_mem *mem, uint64_t object,
					unsigned kinds, prb_attribute_visit *visit, void *context,
					bool *torn) PRB_MUST_CHECK;

#endif
