/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the user's own extensions say about a target: texts of objects, words for waits, rows
 * of tables, findings. A target has one of these, or none; readers ask it in the moment that they
 * print.
 *
 * Code of the user takes long, so that no thread of the target may be stopped by us meanwhile. A
 * repr() therefore only marks such objects while it reads, and prb_custom_expand() puts the texts
 * there afterwards. All functions are called on the thread that reads the target.
 */
#ifndef PRB_TARGET_CUSTOM_H
#define PRB_TARGET_CUSTOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/** Where a thread is, for prb_custom.wait. */
struct prb_custom_frame {
	pid_t tid;
	unsigned depth;			    /**< of the Python frame; 0 is the innermost */
	const char *file, *func, *qualname; /**< NULL if unknown */
};

struct prb_custom {
	void *context;

	/** True if there are texts for objects of the class, "package.module.Class". Must be fast:
	 * threads may be stopped. */
	bool (*has_class)(void *context, const char *name);

	/** Appends the text of an object of such a class, as UTF-8. False: the usual one is shown.
	 */
	bool (*object)(void *context, uint64_t address, uint64_t type, struct prb_str *ret);

	/** Appends words for what the thread waits for in that frame. False: there are none. */
	bool (*wait)(void *context, const struct prb_custom_frame *frame, struct prb_str *ret);

	/**
	 * Appends the rows of a table as JSON: an array whose first item is the array of the
	 * columns' names; the others are rows, arrays as long as that. PRB_ERROR_NOT_FOUND if there
	 * is no such table.
	 */
	struct prb_error *(*table)(void *context, const char *name,
				   struct prb_str *ret)PRB_MUST_CHECK;

	/**
	 * Appends what rules find, as fields that end with NUL: the rule's name, a sentence, the
	 * confidence, what would refute it, a command, lines of evidence, and an empty one. False:
	 * nothing. NULL: there are no rules.
	 */
	bool (*findings)(void *context, struct prb_str *ret);
};

/** Around the usual text of an object that has a text of its own. */
void prb_custom_begin(struct prb_str *out, uint64_t object, uint64_t type);
void prb_custom_end(struct prb_str *out);

/** Puts the texts of extensions in place of what is marked. @p custom may be NULL. */
struct prb_error *prb_custom_expand(const struct prb_custom *custom,
				    struct prb_str *text) PRB_MUST_CHECK;

#endif
