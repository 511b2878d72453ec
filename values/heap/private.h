/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the files of the walk: its state, and the types that it has met. Internal to
 * values/heap/.
 */
#ifndef PRB_VALUES_HEAP_PRIVATE_H
#define PRB_VALUES_HEAP_PRIVATE_H

#include "values/heap/heap.h"
#include "target/mem/blocks.h"

/** A type, with the sums over its objects. */
struct prb_heap_entry {
	uint64_t address;
	uint64_t basicsize; /**< with what lies before each object */
	uint64_t itemsize;  /**< 0 for objects of one size */
	bool int_tag;	    /**< counts its items as ints of 3.12+ do */
	uint64_t count, bytes, references;
	char *name; /**< NULL until it is asked for */
};

enum { PRB_HEAP_TRAIL = 64 /* nodes to which a walk can go back */ };

/** A walk along the lists of the garbage collector; lists.c. */
struct prb_heap_lists {
	struct prb_gc_lists gc;
	unsigned list;			/**< that is being walked */
	uint64_t trail[PRB_HEAP_TRAIL]; /**< nodes met last, a ring; the first is a list's head */
	size_t oldest;			/**< the first step of which the trail still has the node */
	size_t steps;	    /**< nodes ever put on the trail of this list; 0: not begun */
	uint64_t anchor;    /**< a node of this list; met again, the list is a circle */
	size_t next_anchor; /**< step at which the anchor is set anew */
	bool collecting;    /**< pointers back mean something else meanwhile */
};

/** A walk over the pages of mimalloc, in which free-threaded builds have them; pages.c. */
struct prb_heap_pages {
	PRB_VEC(uint64_t) list;	    /**< addresses of the descriptions of all pages */
	size_t next;		    /**< index of the page to be begun next */
	PRB_VEC(uint64_t) segments; /**< in which they lie */
	/* The page that is being walked: */
	uint64_t blocks, block_size;
	unsigned capacity, block;	  /**< how many blocks; the next one */
	unsigned offset;		  /**< of the object in its block */
	uint8_t free[UINT16_MAX / 8 + 1]; /**< bit N % 8 of byte N / 8: block N is free */
};

struct prb_heap {
	struct prb_python *py;
	struct prb_mem *mem; /**< the target's, uncached */
	uint64_t interp;
	struct prb_blocks *blocks;
	struct prb_heap_lists lists; /**< but for free-threaded builds */
	struct prb_heap_pages pages;
	uint64_t collections; /**< of all generations, when the walk began */
	const char *doubt;
	PRB_VEC(struct prb_heap_entry) types;
	uint32_t *table; /**< index + 1 into types, 0 empty; open addressing */
	size_t table_size;
	size_t last_type; /**< index of the type found last */
};

/* types.c */
/** The entry of a type; BAD_DATA or FAULT if there is no type at @p address. Valid until the
 * next call. */
struct prb_error *prb_heap_entry(struct prb_heap *heap, uint64_t address,
				 struct prb_heap_entry **ret) PRB_MUST_CHECK;

/* heap.c */
/**
 * Fills @p ret, but for the generation, from an object in the target. BAD_DATA or FAULT if it is
 * none. @p header is object_size bytes of it.
 */
struct prb_error *prb_heap_describe(struct prb_heap *heap, uint64_t address, const void *header,
				    struct prb_heap_object *ret) PRB_MUST_CHECK;
/** The first doubt is kept. @p reason is static. */
void prb_heap_set_doubt(struct prb_heap *heap, const char *reason);

/** Notes that the data read is inconsistent, with the doubt that fits the target. */
void prb_heap_torn(struct prb_heap *heap);

/* lists.c */
struct prb_error *prb_heap_lists_init(struct prb_heap *heap) PRB_MUST_CHECK;
struct prb_error *prb_heap_lists_next(struct prb_heap *heap, struct prb_heap_object *ret,
				      bool *more) PRB_MUST_CHECK;

/* pages.c */
struct prb_error *prb_heap_pages_init(struct prb_heap *heap) PRB_MUST_CHECK;
struct prb_error *prb_heap_pages_next(struct prb_heap *heap, struct prb_heap_object *ret,
				      bool *more) PRB_MUST_CHECK;

#endif
