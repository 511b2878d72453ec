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

/** Tables made for single statements; their types are defined above the session. */
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
	bool ranked; /**< `rank` is known */
	/** Of the running statement; NULL until a table is read. */
	struct prb_instant *instant;
};

struct prb_session {
	sqlite3 *db;
	bool prepared;		/**< functions, module and guard are registered */
	PRB_VEC(bool) declared; /**< to SQLite, by table number (table_sources.h) */
	struct prb_ring_tables rings;
	struct prb_expression_tables expressions;
	struct prb_global_tables globals;
	/** Reads the rows of global tables (prb_global_reader), or NULL. */
	struct prb_error *(*global)(void *context, const struct prb_global_ask *ask,
				    struct prb_scan *scan);
	void *global_context;
	const struct prb_custom *custom;  /**< of the user's extensions, or NULL */
	PRB_VEC(char *) extension_tables; /**< names of the tables that SQLite has now */
	bool allow_changes;		  /**< see prb_session_allow_changes() */
	uint32_t attached;		  /**< bit N: schema N of prb_schemas */
	bool declaring;			  /**< we are declaring tables to SQLite */
	PRB_VEC(struct prb_session_target) targets;
	prb_warning_handler *warn;
	void *warn_context;
	prb_poll_handler *poll;
	void *poll_context;
	double polled; /**< time of the last poll, CLOCK_MONOTONIC seconds */
	PRB_VEC(char *)
	told; /**< warnings and notes printed so far, so that each is printed once */
	struct prb_error *error; /**< of a scan, with more detail than SQLite passes on; or NULL */
	struct prb_error *failure; /**< see prb_session_failure() */
	enum prb_dump_mode mode;
	struct prb_value_limits values;
	struct prb_repr_options dumped; /**< limits of variables in a dump */
	double timeout;			/**< seconds; 0: none */
	size_t text_max;		/**< bytes of a cell's text; longer ones are cut */
	uint64_t memory_limit;		/**< for the data that a statement collects, bytes */
	int64_t memory_before;		/**< SQLite's, when the statement began */
	double deadline;		/**< CLOCK_MONOTONIC seconds; 0: none */
	/** For SQL functions: the time when the statement began, and whether it must end. */
	struct prb_functions_host host;
	atomic_bool cancelled;
	struct prb_plan plan; /**< of the statement being prepared or running */
	uint64_t generation;  /**< counts instants, so that pages of an older one are not reused */
};

/** Largest text_max: SQLite's own limit is higher. */
enum { PRB_TEXT_MAX = 16 * 1024 * 1024 };

/** Columns that each table of targets has besides its own. */
enum { PRB_LEAD_TARGET, PRB_LEAD_PID, PRB_LEAD_RANK, PRB_LEAD_COUNT };

/**
 * The target's rank in a distributed job, from its environment, read at the first call; -1 if none.
 */
long prb_session_rank(struct prb_session_target *target);

/** The instant of target @p index for the running statement. */
struct prb_error *prb_session_instant(struct prb_session *session, size_t index,
				      struct prb_instant **ret) PRB_MUST_CHECK;

/** Begins a statement's time: deadline, now(). */
void prb_session_begin(struct prb_session *session);

/** Registers functions, module and guard. */
struct prb_error *prb_session_prepared(struct prb_session *session) PRB_MUST_CHECK;

/** Declares the tables that @p sql may name (declare.c). */
struct prb_error *prb_declare_tables(struct prb_session *session, const char *sql) PRB_MUST_CHECK;

/**
 * Runs a statement of ours past the guard; @p sql NULL: returns SQLITE_NOMEM. Returns SQLite's
 * code.
 */
int prb_declare_by(struct prb_session *session, const char *sql);

/** Declares a virtual table under any name. Returns SQLite's code. */
int prb_declare_virtual(struct prb_session *session, const char *schema, const char *name);

/** Attaches the schema if it is missing. */
struct prb_error *prb_declare_schema(struct prb_session *session,
				     const char *schema) PRB_MUST_CHECK;

/** Registers the virtual table's module with SQLite (vtab.c). */
struct prb_error *prb_vtab_register(struct prb_session *session) PRB_MUST_CHECK;

/** Forbids everything but reading, and lowers SQLite's limits (guard.c). */
void prb_guard_begin(struct prb_session *session);

/** An error if the statement's sorting and grouping took more memory than allowed. */
struct prb_error *prb_guard_memory(const struct prb_session *session) PRB_MUST_CHECK;

/** The error for a statement that does more than read. */
struct prb_error *prb_sql_error_writes(void) PRB_MUST_CHECK __attribute__((returns_nonnull));

/**
 * SQLite's present error of the statement @p sql, with the nearest names if a name is unknown
 * (sql_errors.c).
 */
struct prb_error *prb_sql_error(struct prb_session *session, const char *sql) PRB_MUST_CHECK
	__attribute__((returns_nonnull));

#endif
