/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The schema of a .profile file, which docs/profile-format.md explains.
 *
 * The writer makes these tables, and the reader accepts no others in their place.
 *
 * Threading: constants. Internal to profile/store/.
 */
#ifndef PRB_PROFILE_STORE_SCHEMA_H
#define PRB_PROFILE_STORE_SCHEMA_H

#include "profile/recording/recording.h"

enum {
	PRB_SCHEMA_FORMAT = 4,	  /**< user_version */
	PRB_SCHEMA_TOTALS_S = 60, /**< seconds that a row of `totals` is for, at first */
};

struct prb_schema_table {
	const char *name;  /**< NULL ends the array */
	const char *sql;   /**< as SQLite keeps it */
	unsigned optional; /**< a bit of those below: older recordings have none; 0: all have it */
};
enum {
	PRB_SCHEMA_SOURCE = 1,
	PRB_SCHEMA_IMAGES = 2,
	PRB_SCHEMA_ORIGINS = 4,
	PRB_SCHEMA_UNSTOPPED = 8,
};
extern const struct prb_schema_table prb_schema_tables[];

/** The text for `recording.ended`. */
const char *prb_schema_end(enum prb_profile_end end);
enum prb_profile_end prb_schema_end_of(const char *word);

/** False if there is no such kind of wait. */
bool prb_schema_wait_of(const char *word, enum prb_wait_kind *ret);

/** Of what `functions.kind` holds; false for an unknown word. */
bool prb_schema_kind_of(const char *word, enum prb_function_kind *ret);

#endif
