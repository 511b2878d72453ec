/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The objects that an interpreter's garbage collector knows of, one by one or summed up by
 * type, read from outside.
 *
 * These are the objects of gc.get_objects(), and those that gc.freeze() put aside: containers,
 * instances of classes, functions, modules. Numbers, strings, bytes and what holds no reference
 * (also tuples and dicts of such, once the collector has seen that) are not among them. Up to
 * 3.8 all interpreters of a process share the lists, and each shows the same objects.
 *
 * `bytes` of an object are its own: what its type says (tp_basicsize and tp_itemsize for each item)
 * and what lies before it (the collector's head, and the pointers to the dict and the weak
 * references of an instance, 3.11+). They equal sys.getsizeof() for types without a __sizeof__() of
 * their own. Not covered: memory that the object points to, as the table of a dict or the items of
 * a list, the values that lie behind an instance (3.13+), and the frame inside of a generator
 * (3.11+).
 *
 * A live process changes its lists while they are read. Each step is checked by the pointers that
 * lead back; where they do not fit, the walk goes back to where they do and reads anew. If that
 * does not help, the rest of that list is left out. prb_heap_doubt() then says what may be missing.
 *
 * The walk reads through a cache of its own (blocks.h), so @p mem should be the target's memory
 * itself, rather than a view, which would keep a copy of all that is read; a view is needed only
 * where a snapshot is to have it.
 *
 * Threading: one thread at a time. Everything passed in must outlive the walk.
 */
#ifndef PRB_VALUES_HEAP_HEAP_H
#define PRB_VALUES_HEAP_HEAP_H

#include "base/error.h"
#include "base/vec.h"
#include "values/heap/gc.h"
#include "python/python.h"

struct prb_heap;

struct prb_heap_object {
	uint64_t address, type;
	int64_t refcount;   /**< -1: immortal (3.12+) */
	uint64_t bytes;	    /**< see above */
	uint8_t generation; /**< 0 to 2, always 0 in free-threaded builds; 3: gc.freeze()'s */
};

/**
 * Begins a walk over the objects of the interpreter at @p interp. PRB_ERROR_UNSUPPORTED if their
 * place is unknown.
 */
struct prb_error *prb_heap_create(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				  struct prb_heap **ret) PRB_MUST_CHECK;
void prb_heap_destroy(struct prb_heap *heap);

/** The next object; *more is false, and @p ret not set, when there is none left. */
struct prb_error *prb_heap_next(struct prb_heap *heap, struct prb_heap_object *ret,
				bool *more) PRB_MUST_CHECK;

/** After the walk: why objects may be missing or be counted twice; NULL if all was read. */
const char *prb_heap_doubt(const struct prb_heap *heap);

/**
 * "module.Qualified.name" of a type that the walk met; without module for builtins. An unreadable
 * type is named by its address. The walk owns it.
 */
struct prb_error *prb_heap_type_name(struct prb_heap *heap, uint64_t type,
				     const char **ret) PRB_MUST_CHECK;

/** The walk's cached memory, for callers that read the objects themselves. */
struct prb_mem *prb_heap_mem(struct prb_heap *heap);

struct prb_heap_type {
	uint64_t type;
	char *name; /**< from prb_heap_type_name() */
	uint64_t count, bytes;
	uint64_t references; /**< sum of the reference counts of all that are not immortal */
};

struct prb_heap_types {
	PRB_VEC(struct prb_heap_type) list; /**< in no order */
	const char *doubt;		    /**< as prb_heap_doubt() */
};

/** Walks all objects and sums them up by type. */
struct prb_error *prb_heap_types_read(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				      struct prb_heap_types *ret) PRB_MUST_CHECK;
void prb_heap_types_deinit(struct prb_heap_types *types);

#endif
