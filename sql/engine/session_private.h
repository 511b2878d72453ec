/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the parts of a session. Internal to sql/. */
#ifndef PRB_SQL_ENGINE_SESSION_PRIVATE_H
#define PRB_SQL_ENGINE_SESSION_PRIVATE_H

#include <sqlite3.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "sql/functions/functions.h"
#include "sql/engine/instant.h"
#include "sql/engine/ring_tables.h"
#include "sql/engine/session.h"

struct prb_expression_table;
struct prb_global_table;
struct prb_global_ask;

/** Tables that are made for statements; what knows their kind is above a session. */
struct prb_expression_tables {
	struct prb_expression_table **items;
	size_t count, capacity;
};
struct prb_global_tables {
	struct prb_global_table **items;
	size_t count, capacity;
};

struct prb_session_target {
	struct prb_target *target;
	char *name;
	long rank;   /**< see prb_session_rank() */
	bool ranked; /**< it is known */
	/** Of the statement that runs; NULL until a table is read. */
	struct prb_instant *instant;
};

struct prb_session {
	sqlite3 *db;
	bool prepared;		/**< functions, module and guard are there */
	PRB_VEC(bool) declared; /**< to SQLite, by the number of the table (table_sources.h) */
	struct prb_ring_tables rings;
	struct prb_expression_tables expressions;
	struct prb_global_tables globals;
	/** Brings their rows (prb_global_reader), or NULL. */
	struct prb_error *(*global)(void *context, const struct prb_global_ask *ask,
				    struct prb_scan *scan);
	void *global_context;
	const struct prb_custom *custom;  /**< of the user's extensions, or NULL */
	PRB_VEC(char *) extension_tables; /**< names of those that SQLite has now */
	bool allow_changes;		  /**< see prb_session_allow_changes() */
	uint32_t attached;		  /**< bit N: schema N of prb_schemas */
	bool declaring;			  /**< SQLite is being told of tables, by us */
	PRB_VEC(struct prb_session_target) targets;
	prb_warning_handler *warn;
	void *warn_context;
	prb_poll_handler *poll;
	void *poll_context;
	double polled;		   /**< when, CLOCK_MONOTONIC seconds */
	PRB_VEC(char *) told;	   /**< warnings and notes, so that each is told once */
	struct prb_error *error;   /**< of a scan, richer than what SQLite passes on; or NULL */
	struct prb_error *failure; /**< see prb_session_failure() */
	enum prb_dump_mode mode;
	struct prb_value_limits values;
	struct prb_repr_options dumped; /**< variables of a dump, by these */
	double timeout;			/**< seconds; 0: none */
	size_t text_max;		/**< bytes of a cell's text; longer ones are cut */
	uint64_t memory_limit;		/**< of what a statement collects, bytes */
	int64_t memory_before;		/**< SQLite's, when the statement began */
	double deadline;		/**< CLOCK_MONOTONIC seconds; 0: none */
	/** For functions: the time when the statement began, and whether it must end. */
	struct prb_functions_host host;
	atomic_bool cancelled;
	struct prb_plan plan; /**< of the statement that is being prepared or runs */
	uint64_t generation;  /**< counts instants, so that pages of an older one are not used */
};

/** Most that text_max can be: SQLite's own limit lies above. */
enum { PRB_TEXT_MAX = 16 * 1024 * 1024 };

/** Columns that each table of targets has besides its own. */
enum { PRB_LEAD_TARGET, PRB_LEAD_PID, PRB_LEAD_RANK, PRB_LEAD_COUNT };

/** Its rank in a distributed job, by its environment, which is read when it is first asked for; -1
 * if it has none. */
long prb_session_rank(struct prb_session_target *target);

/** The instant of target @p index for the statement that runs. */
struct prb_error *prb_session_instant(struct prb_session *session, size_t index,
				      struct prb_instant **ret) PRB_MUST_CHECK;

/** Begins a statement's time: deadline, now(). */
void prb_session_begin(struct prb_session *session);

/** True if @p sql has @p name in it, as a word. */
bool prb_sql_mentions(const char *sql, const char *name);

/** Has functions, the module and the guard there. */
struct prb_error *prb_session_prepared(struct prb_session *session) PRB_MUST_CHECK;

/** Declares the tables that @p sql may be about (declare.c). */
struct prb_error *prb_declare_tables(struct prb_session *session, const char *sql) PRB_MUST_CHECK;

/** Runs a statement of ours, which the guard lets pass; NULL: SQLITE_NOMEM. SQLite's code. */
int prb_declare_by(struct prb_session *session, const char *sql);

/** Makes a table of ours under any name. SQLite's code. */
int prb_declare_virtual(struct prb_session *session, const char *schema, const char *name);

/** Attaches the schema, if it is not. */
struct prb_error *prb_declare_schema(struct prb_session *session,
				     const char *schema) PRB_MUST_CHECK;

/** Makes the one virtual table known to SQLite (vtab.c). */
struct prb_error *prb_vtab_register(struct prb_session *session) PRB_MUST_CHECK;

/** Forbids all but reading, and lowers SQLite's limits (guard.c). */
void prb_guard_begin(struct prb_session *session);

/** An error if sorting and grouping took more memory since the statement began than is allowed. */
struct prb_error *prb_guard_memory(const struct prb_session *session) PRB_MUST_CHECK;

/** For a statement that does not only read. */
struct prb_error *prb_sql_error_writes(void) PRB_MUST_CHECK __attribute__((returns_nonnull));

/** SQLite's present error of the statement @p sql, with the nearest names where one is unknown
 * (sql_errors.c). */
struct prb_error *prb_sql_error(struct prb_session *session, const char *sql) PRB_MUST_CHECK
	__attribute__((returns_nonnull));

#endif
