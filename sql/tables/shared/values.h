/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the tables of one object: its parts are found at the first call of the scan and
 * put in pages.
 */
#ifndef PRB_SQL_TABLES_SHARED_VALUES_H
#define PRB_SQL_TABLES_SHARED_VALUES_H

#include "base/vec.h"
#include "python/python.h"
#include "python/repr/core/repr.h"
#include "sql/spec/table.h"

/** A part of an object: an attribute, or an item. */
struct prb_value_part {
	uint64_t key, value; /**< objects; 0: none */
	char *name, *text;   /**< of attributes: the text of a value that is no object */
	const char *kind;    /**< the same; static */
	char *owner;	     /**< the same: class */
	bool computed;	     /**< its value is a descriptor, of which only the type is shown */

	bool shown; /**< the rest is set */
	struct prb_str key_text, value_text, type;
	struct prb_object_number number;
	char *why; /**< the type could not be read */
};

struct prb_value_parts {
	struct prb_python *py;
	struct prb_mem *mem;
	uint64_t object;
	struct prb_objects *objects;
	struct prb_repr_options options; /**< of their texts */
	PRB_VEC(struct prb_value_part) list;
	size_t from, to; /**< places of the parts that the statement asks for; to is not one */
	bool torn;	 /**< it was changing while it was read */
	bool cut;	 /**< it has more parts than are kept */
	bool garbled;	 /**< a text says that something could not be read */
	struct prb_error *err; /**< of a visit */
};

/** Appends a zeroed part. NULL ends the visit: parts->cut or parts->err is set. */
struct prb_value_part *prb_value_part_add(struct prb_value_parts *parts);

/** The differences between the tables. */
struct prb_value_table {
	unsigned address, error; /**< columns: the key; what went wrong */
	unsigned key;		 /**< column with the text of a part's key */
	unsigned type;		 /**< column of the type; value and its address are behind it */
	unsigned number;	 /**< column of a value that is a number; 0: it has none */
	/** Column of a part's place, a PRB_COLUMN_RANGE, plus 1: others are not read; 0: none. */
	unsigned place;
	/** Finds the parts of parts->object with parts->py and parts->mem. */
	struct prb_error *(*find)(struct prb_value_parts *parts);
	/** Fills the other cells of a row. */
	void (*put)(struct prb_scan *scan, const struct prb_value_part *part, size_t index);
};

/**
 * Reads the address that a table is asked about, its key @p column; *known is false if it has no
 * rows: in a join, the address is not known. Without any condition on it, an error says that the
 * address of @p what is needed, with a query for the variable @p name.
 */
struct prb_error *prb_value_address(const struct prb_scan *scan, unsigned column, const char *what,
				    const char *name, uint64_t *ret, bool *known) PRB_MUST_CHECK;

/** Puts a row for @p object that says why there are no others. Takes over @p err. */
struct prb_error *prb_value_failure(struct prb_scan *scan, unsigned address, unsigned error,
				    uint64_t object, struct prb_error *err) PRB_MUST_CHECK;

/** A scan of the parts of one object. */
struct prb_error *prb_value_scan(struct prb_scan *scan,
				 const struct prb_value_table *table) PRB_MUST_CHECK;

#endif
