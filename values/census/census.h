/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A census of an interpreter's memory: each object once, with what it takes, and how it is
 * reached. Read from outside, without stopping anything.
 *
 * The walk begins at the imported modules and at the variables of all frames, and follows the
 * references of what it finds, nearest first, so that the way by which an object was found is a
 * shortest one. Then come the objects that the garbage collector knows and nothing led to. So
 * strings, numbers, and tuples and dicts that the collector does not track are counted too, if
 * something that was found refers to them.
 *
 * References are the items of containers, the attributes of instances, and each word of an object
 * of another type (also of extensions) that is the address of an object. A word is believed if a
 * type and a plausible reference count are there. Objects that only C or C++ code refers to, such
 * as autograd's graph, are not found.
 *
 * Bytes of an object are its own, with the collector's head, and what it alone owns: the table of a
 * dict or set, the array of a list, the buffer of a bytearray, array.array, numpy array or mmap,
 * the storage of a tensor in the process's memory (of tensors that share one: that which was found
 * first).
 *
 * A process that runs changes its objects meanwhile: counts may be off by what it made or freed
 * during the walk. prb_census_doubt() says what else may be missing.
 *
 * Threading: one thread at a time. Everything passed in must outlive the census. Its memory is some
 * 50 bytes for each object, and at most 200 MiB beside. Ways to objects in large containers take
 * some 70 bytes for each item of the last eight of these.
 */
#ifndef PRB_VALUES_CENSUS_CENSUS_H
#define PRB_VALUES_CENSUS_CENSUS_H

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "python/python.h"

struct prb_census;

enum {
	PRB_CENSUS_OBJECTS = 40000000, /**< default of max_objects */
	PRB_CENSUS_SECONDS = 60,       /**< default of max_seconds */
};

struct prb_census_limits {
	uint64_t max_objects; /**< 0: the default */
	double max_seconds;   /**< 0: the default */
};

/** Walks the objects of the interpreter at @p interp. @p mem as for prb_heap_create(). */
struct prb_error *prb_census_create(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				    const struct prb_census_limits *limits,
				    struct prb_census **ret) PRB_MUST_CHECK;
void prb_census_destroy(struct prb_census *census);

static inline void prb_census_guard(struct prb_census **census)
{
	prb_census_destroy(*census);
}
#define prb_auto_census __attribute__((cleanup(prb_census_guard)))

/** Why objects may be missing; NULL if all was read. */
const char *prb_census_doubt(const struct prb_census *census);

struct prb_census_totals {
	uint64_t objects, bytes;
	uint64_t unheld, unheld_bytes; /**< the ones that no module or frame leads to */
	uint64_t garbage,
		garbage_bytes; /**< of those, the ones that nothing refers to from elsewhere */
	double seconds;	       /**< the walk took */
};
struct prb_census_totals prb_census_totals(const struct prb_census *census);

struct prb_census_type {
	uint64_t address;
	const char *name;      /**< with its module; the census's */
	uint64_t count, bytes; /**< bytes with what the objects own */
	uint64_t owned;	       /**< of the bytes, those outside of the objects */
};

/** The type at @p index, from 0; false behind the last. In no order; some have no objects. */
bool prb_census_type(struct prb_census *census, size_t index, struct prb_census_type *ret);

/** Objects are named by their index, in the order in which they were found. */
enum { PRB_CENSUS_NONE = UINT32_MAX };

struct prb_census_object {
	uint64_t address, bytes;
	uint32_t type;	 /**< index of its type */
	uint32_t parent; /**< through which it was found; PRB_CENSUS_NONE: a root of the walk */
	bool held;	 /**< a module or frame leads to it */
};
bool prb_census_object(const struct prb_census *census, uint32_t index,
		       struct prb_census_object *ret);
/** True if only cycles hold it: the collector would free it. */
bool prb_census_is_garbage(const struct prb_census *census, uint32_t index);
/** The index of the object at @p address, or PRB_CENSUS_NONE. */
uint32_t prb_census_find(const struct prb_census *census, uint64_t address);

/**
 * Appends how an object is reached, as an expression where there is one: "app.CACHE['a'][3].rows",
 * "batch in train()"; behind "?" for what no module or frame leads to.
 */
struct prb_error *prb_census_path(struct prb_census *census, uint32_t index,
				  struct prb_str *ret) PRB_MUST_CHECK;
/**
 * As above, for all objects reached in this way: items of containers are "[…]", and are not looked
 * for.
 */
struct prb_error *prb_census_pattern(struct prb_census *census, uint32_t index,
				     struct prb_str *ret) PRB_MUST_CHECK;

/** Called for each object that refers to one of interest, once for each pair. */
typedef struct prb_error *prb_census_holder(void *context, uint32_t holder, uint32_t object);

/** All objects that refer to @p object: one more pass over all objects. */
struct prb_error *prb_census_referrers(struct prb_census *census, uint32_t object,
				       prb_census_holder *visit, void *context) PRB_MUST_CHECK;

/** A tensor, or the gradient of one, which is held by that one, whether it has an object or not. */
struct prb_census_tensor {
	uint32_t object; /**< of the tensor, or whose gradient it is */
	bool gradient;
	bool first;		    /**< of those with this storage: its bytes count here */
	const char *dtype, *device; /**< device NULL if unknown */
	int8_t device_index, requires_grad;
	uint64_t dimensions, shape[8]; /**< of more dimensions the first */
	uint64_t bytes, storage, storage_bytes;
};
const struct prb_census_tensor *prb_census_tensors(const struct prb_census *census, size_t *count);

/** Python's allocator for small objects, as far as objects that were found lie in its pools. */
struct prb_census_pools {
	uint64_t arenas, pools; /**< how many */
	uint64_t arena_bytes;	/**< of one; 0: this Python has no such allocator */
	uint64_t pool_bytes;	/**< of one */
	uint64_t used;		/**< bytes of blocks in use */
	uint64_t free;		/**< bytes of free blocks in these pools */
	uint64_t unused;	/**< bytes of arenas outside of these pools */
};
struct prb_error *prb_census_pools(struct prb_census *census,
				   struct prb_census_pools *ret) PRB_MUST_CHECK;

#endif
