/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the tables of one object: its parts are found at the first call of the scan and
 * told in pages.
 */
#ifndef PRB_SQL_TABLES_VALUES_H
#define PRB_SQL_TABLES_VALUES_H

#include "base/vec.h"
#include "python/python.h"
#include "python/repr/object.h"
#include "sql/spec/table.h"

/** A part of an object: an attribute, or an item. */
struct prb_value_part {
	uint64_t key, value; /**< objects; 0: none */
	char *name, *text;   /**< of attributes: the text of a value that is no object */
	const char *kind;    /**< the same; static */
	char *owner;	     /**< the same: class */
};

struct prb_value_parts {
	struct prb_python *py;
	struct prb_mem *mem;
	uint64_t object;
	struct prb_objects *objects;
	PRB_VEC(struct prb_value_part) list;
	unsigned error; /**< column for what went wrong */
	bool torn;
	struct prb_error *err; /**< of a visit */
};

/** Appends a zeroed part, or sets parts->err and gives NULL. */
struct prb_value_part *prb_value_part_add(struct prb_value_parts *parts);

/** Finds the parts of parts->object with parts->py and parts->mem. */
typedef struct prb_error *prb_value_finder(struct prb_value_parts *parts);
/** Fills the cells of a row. */
typedef struct prb_error *prb_value_putter(struct prb_scan *scan, struct prb_value_parts *parts,
					   size_t index);

/** A scan of the parts of the object whose address is the key @p address. What went wrong is put
 * into the column @p error. */
struct prb_error *prb_value_scan(struct prb_scan *scan, unsigned address, unsigned error,
				 prb_value_finder *find, prb_value_putter *put) PRB_MUST_CHECK;

/** The type of an object. */
struct prb_error *prb_put_type(struct prb_scan *scan, const struct prb_value_parts *parts,
			       unsigned type, uint64_t object) PRB_MUST_CHECK;

/** Type, repr() and address of an object into three columns in this order. */
struct prb_error *prb_put_value(struct prb_scan *scan, const struct prb_value_parts *parts,
				unsigned type, uint64_t object, const char *text) PRB_MUST_CHECK;

#endif
