/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Values at the paths of a description (engine.h), read from an interpreter of a process.
 *
 * Threading: as values/part.h. Internal to inference/.
 */
#ifndef PRB_INFERENCE_VALUE_H
#define PRB_INFERENCE_VALUE_H

#include "base/str.h"
#include "inference/engine.h"
#include "values/interpreters.h"
#include "values/part.h"

/** An object that the first name of a path may mean. */
struct prb_engine_named {
	const char *name;
	uint64_t object; /**< 0: it was not found */
};

/** Where the names of a path are looked up. */
struct prb_engine_scope {
	struct prb_parts *parts;
	const struct prb_engine_named *roots;
	size_t root_count;
	uint64_t object; /**< not 0: the first name is an attribute of this */
	const char *id;	 /**< for [$id]; or NULL */
};

struct prb_engine_value {
	enum prb_part_kind kind; /**< PRB_PART_NONE also where nothing is */
	uint64_t object;
	int64_t integer;
	double real;
	/** There is no such attribute: the name of the class and of what it lacks. Else "". */
	struct prb_str missing;
};

void prb_engine_value_deinit(struct prb_engine_value *value);
#define prb_auto_engine_value __attribute__((cleanup(prb_engine_value_deinit)))

/** Finds the value at @p path; a None on the way is one. PRB_ERROR_NOMEM is the only error. */
struct prb_error *prb_engine_read(const struct prb_engine_scope *scope,
				  const struct prb_engine_path *path,
				  struct prb_engine_value *ret) PRB_MUST_CHECK;

/** Appends the text of a str, or of another object its repr(). */
struct prb_error *prb_engine_put_text(struct prb_parts *parts, const struct prb_engine_value *value,
				      size_t max, struct prb_str *out) PRB_MUST_CHECK;

#endif
