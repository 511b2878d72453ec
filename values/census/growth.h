/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What grew between two censuses of one interpreter, and what holds it.
 *
 * An object is new if the earlier census has none of its type at its address. Its holder is the
 * nearest object on its path that the earlier census has: what new objects were put into. Objects
 * that are gone are taken off in the same way, so that a place where objects are made and freed all
 * the time shows its balance. A memory that is freed and used again for an object of the same type
 * is not told apart.
 *
 * Holders that are reached in the same way but for the item of a container, such as the history of
 * each session, are one: a leak may be spread over thousands of them.
 *
 * Threading: as census.h. Memory: some 20 bytes for each object of the later census.
 */
#ifndef PRB_VALUES_CENSUS_GROWTH_H
#define PRB_VALUES_CENSUS_GROWTH_H

#include "values/census/census.h"

struct prb_census_root;

struct prb_growth_type {
	const char *name;	/**< the later census's */
	int64_t objects, bytes; /**< the change */
	uint64_t now_objects, now_bytes;
};

enum { PRB_GROWTH_TYPES = 3 };

struct prb_growth_holder {
	uint32_t object; /**< of the later census; PRB_CENSUS_NONE: see `root` */
	char *pattern;	 /**< how each is reached: "app.SESSIONS[…].history"; NULL: it is one */
	uint32_t count;	 /**< how many are one; `object` is that which grew most */
	uint32_t number; /**< for growth.c */
	const struct prb_census_root *root_of; /**< for growth.c */
	char *root;   /**< "batch in train()", or NULL for what nothing was found to hold */
	bool garbage; /**< of that: only cycles hold it */
	int64_t objects, bytes; /**< the change of what it holds */
	/** Types of its new objects, the most bytes first. */
	struct {
		const char *name; /**< NULL: no more */
		uint64_t objects;
	} types[PRB_GROWTH_TYPES];
	uint32_t example; /**< one of its new objects, in the later census */
};

struct prb_growth {
	int64_t objects, bytes;			   /**< of all together */
	PRB_VEC(struct prb_growth_type) types;	   /**< changed types, the most growth first */
	PRB_VEC(struct prb_growth_holder) holders; /**< growing holders, the most growth first */
	uint64_t others;			   /**< holders beyond those */
	int64_t other_objects, other_bytes;
};

/** @p most: of the holders that are wanted. */
struct prb_error *prb_growth_create(struct prb_census *before, struct prb_census *after,
				    size_t most, struct prb_growth *ret) PRB_MUST_CHECK;
void prb_growth_deinit(struct prb_growth *growth);

#endif
