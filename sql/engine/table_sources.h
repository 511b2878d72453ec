/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The sources of a session's tables: the program's own, rings, the user's extensions,
 * expressions, other ranks of a job. Each source is one const struct, in its own file;
 * prb_table_sources lists them in the order of search.
 *
 * To add a source, declare its struct here and add it to that list. Unused functions are NULL.
 *
 * Threading and ownership: as the session, which owns all tables but the program's own. Internal
 * to sql/.
 */
#ifndef PRB_SQL_ENGINE_TABLE_SOURCES_H
#define PRB_SQL_ENGINE_TABLE_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

#include "sql/spec/table.h"

struct prb_session;

struct prb_table_source {
	/** The table with these names, or NULL. No function: SQLite holds the tables itself. */
	const struct prb_table *(*find)(const struct prb_session *session, const char *schema,
					const char *name);
	/**
	 * Number of tables that exist independently of statements. No function: all are made for
	 * statements, and are in no list.
	 */
	size_t (*count)(const struct prb_session *session);
	/** Table number @p index; a table keeps its number. */
	const struct prb_table *(*at)(const struct prb_session *session, size_t index);
	/** Adds tables that appeared in the targets since the last call. */
	struct prb_error *(*look)(struct prb_session *session)PRB_MUST_CHECK;
	/**
	 * Makes the table that @p sql means by @p word, which SQLite does not know. *ret is false
	 * if this source has no such table.
	 */
	struct prb_error *(*make)(struct prb_session *session, const char *sql, const char *word,
				  bool *ret)PRB_MUST_CHECK;
	/**
	 * Drops the tables made for statements, unless a statement that uses them may still run.
	 */
	void (*drop)(struct prb_session *session);
	/** Called when the session ends. */
	void (*deinit)(struct prb_session *session);
};

extern const struct prb_table_source prb_own_source;	    /**< own_tables.c */
extern const struct prb_table_source prb_ring_source;	    /**< ring_tables.c */
extern const struct prb_table_source prb_extension_source;  /**< extension_tables.c */
extern const struct prb_table_source prb_expression_source; /**< expression_tables.c */
extern const struct prb_table_source prb_global_source;	    /**< global_tables.c */

/** All of them; ends with NULL. */
extern const struct prb_table_source *const prb_table_sources[];

/** A table of any source by its names, or NULL. */
const struct prb_table *prb_session_find_table(const struct prb_session *session,
					       const char *schema, const char *name);

/** As above, only of listed tables. */
const struct prb_table *prb_session_find_listed(const struct prb_session *session,
						const char *schema, const char *name);

/**
 * Table number @p index of the session's list, or NULL after the last. A table keeps its number.
 */
const struct prb_table *prb_session_table(const struct prb_session *session, size_t index);

/** Searches all sources for new tables of the targets. */
struct prb_error *prb_session_look_for_tables(struct prb_session *session) PRB_MUST_CHECK;

/** Makes the table that @p sql means by @p word. *ret is false if no source knows it. */
struct prb_error *prb_session_make_table(struct prb_session *session, const char *sql,
					 const char *word, bool *ret) PRB_MUST_CHECK;

/** Drops the tables made for statements that have ended. */
void prb_session_drop_tables(struct prb_session *session);

/** Call when the session ends. */
void prb_session_deinit_tables(struct prb_session *session);

#endif
