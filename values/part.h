/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reading one part of an object whose address is known: an attribute, an item, its length.
 *
 * Found as in an expression (expression.h), without running code. The reader keeps the types that
 * it has met; prb_parts_forget() ends that, and belongs to each new epoch of the memory.
 *
 * Threading: as python/repr/core/repr.h. Errors: PRB_ERROR_NOT_FOUND where there is no such part,
 * or where code would run (*needs_code), memory errors as mem.h.
 */
#ifndef PRB_VALUES_PART_H
#define PRB_VALUES_PART_H

#include "base/str.h"
#include "python/python.h"

enum prb_part {
	PRB_PART_SELF,
	PRB_PART_ATTRIBUTE,
	PRB_PART_KEY,
	PRB_PART_INDEX,
	PRB_PART_LENGTH,
	PRB_PART_TYPE,
	PRB_PART_REPR,
	PRB_PART_TEXT,
};

enum prb_part_kind {
	PRB_PART_OTHER,
	PRB_PART_NONE,
	PRB_PART_BOOL,
	PRB_PART_INT,
	PRB_PART_LARGE,
	PRB_PART_FLOAT,
	PRB_PART_STR,
	PRB_PART_WORDS,
};

struct prb_part_answer {
	uint64_t object, type; /**< 0: it is no object of the target, but `text` */
	enum prb_part_kind kind;
	int64_t integer;
	double real;
	struct prb_str text; /**< the reader's, until its next call */
};

struct prb_parts;
struct prb_error *prb_parts_create(struct prb_python *py, struct prb_mem *mem,
				   struct prb_parts **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_parts_destroy(struct prb_parts *parts);
void prb_parts_forget(struct prb_parts *parts);

/** Which part, of what. */
struct prb_part_wanted {
	uint64_t object;
	uint64_t type; /**< that the object must have; 0: any */
	enum prb_part part;
	const char *name;
	int64_t index;
	size_t text_max; /**< bytes of texts */
};

/** *ret is set, and borrowed, also after an error. */
struct prb_error *prb_parts_read(struct prb_parts *parts, const struct prb_part_wanted *wanted,
				 const struct prb_part_answer **ret,
				 bool *needs_code) PRB_MUST_CHECK;

#endif
