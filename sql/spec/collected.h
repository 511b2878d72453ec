/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Tables that a program's own rings have (docs/ring-format.md), as data: what their columns
 * mean, and what starts to record them. A ring that is not listed is a table too, without docs.
 *
 * Threading: constant.
 */
#ifndef PRB_SQL_SPEC_COLLECTED_H
#define PRB_SQL_SPEC_COLLECTED_H

#include <stdbool.h>
#include <stddef.h>

struct prb_collected_column {
	const char *name; /**< NULL ends the array */
	const char *doc;
	/* Of a view: the column of the source that this is, and its unit. */
	const char *source, *unit;
};

struct prb_collected {
	const char *schema, *name; /**< NULL ends the array */
	const char *doc;	   /**< one line, without full stop */
	const char *start;	   /**< how to record it, as a hint */
	const struct prb_collected_column *columns;
	/* A view: rows of another ring's table, where the text `filter` has the value `value`. */
	const char *source_schema, *source_name, *filter, *value;
	bool history; /**< older rows are of several steps: rings/history.h */
};

extern const struct prb_collected prb_collected_tables[];

/** By its names, or NULL; letters' case is ignored. @p schema may be NULL. */
const struct prb_collected *prb_collected_find(const char *schema, const char *name);
/** As above, for "SCHEMA.NAME" or "NAME". */
const struct prb_collected *prb_collected_find_qualified(const char *word);

#endif
