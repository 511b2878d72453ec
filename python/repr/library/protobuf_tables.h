/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Maps and the names of enums in the memory of protobuf's upb, of 4.25 and later.
 *
 * Like definitions, their layout changes from version to version. It is recognised by what has to
 * be true of it: a map has as many entries as it says, values of an enum lead back to the enum.
 *
 * Threading: as repr.h. Errors: PRB_ERROR_BAD_DATA for what does not fit together.
 */
#ifndef PRB_PYTHON_REPR_LIBRARY_PROTOBUF_TABLES_H
#define PRB_PYTHON_REPR_LIBRARY_PROTOBUF_TABLES_H

#include "python/repr/core/handlers.h"

/** A map that is walked. */
struct prb_upb_map {
	struct prb_repr *r;
	uint64_t entries; /**< address of the table */
	uint64_t size;	  /**< slots of it */
	uint64_t count;	  /**< entries */
	uint64_t at;	  /**< the next slot */
	uint64_t zero;	  /**< address of the value of the number 0, which is in no slot; or 0 */
	bool value_first; /**< in a slot */
	bool chained;	  /**< a slot is in use if its last word is not 0; else its key is not */
	bool texts;	  /**< keys are addresses of bytes behind a length, also of numbers */
};

struct prb_upb_entry {
	uint64_t key;	 /**< address of the number or, of a text, of its bytes */
	uint32_t length; /**< of a text */
	uint64_t value;	 /**< address of the value, or of the word that leads to it */
};

struct prb_error *prb_upb_map_open(struct prb_repr *r, uint64_t map,
				   struct prb_upb_map *ret) PRB_MUST_CHECK;

/** @p ret->value is 0 at the end. */
struct prb_error *prb_upb_map_next(struct prb_upb_map *map,
				   struct prb_upb_entry *ret) PRB_MUST_CHECK;

enum { PRB_UPB_NAME = 256 };

/** "" if the enum has no such value, or cannot be read. */
void prb_upb_enum_name(struct prb_repr *r, uint64_t definition, int32_t number,
		       char ret[PRB_UPB_NAME]);

/** A name as protobuf has them, with dots; false: something else is there. */
bool prb_upb_name(struct prb_repr *r, uint64_t address, char ret[PRB_UPB_NAME]);

#endif
