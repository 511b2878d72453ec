/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file SQL over one or more targets: a session holds them, a statement runs a query.
 *
 *     prb_session_create(&session);
 *     prb_session_add_target(session, "4242", target);
 *     prb_session_prepare(session, sql, length, &consumed, &statement);
 *     while (!prb_statement_next(statement, &row) && row) …
 *
 * Each statement sees its own instant of the targets: its reads are cached until it is reset or
 * destroyed. With more than one target every table begins with the columns _target, _pid and _rank;
 * these are hidden otherwise. A target that cannot be read is reported by a warning, and its error
 * stored (prb_session_failure()), while the others go on; with a single target the query fails.
 *
 * Threading: one thread at a time and one statement stepping at a time, but for
 * prb_session_cancel(), which may be called from any thread and from signal handlers.
 */
#ifndef PRB_SQL_ENGINE_SESSION_H
#define PRB_SQL_ENGINE_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "target/target.h"
#include "dump/model/dump.h"
#include "sql/spec/table.h"
#include "values/limits.h"

struct prb_session;
struct prb_statement;

/**
 * Lets statements change the session's target: python.`EXPRESSION` runs code there, and SET changes
 * settings of the process. For commands whose user explicitly requested that (changes.h).
 */
void prb_session_allow_changes(struct prb_session *session);

/** The first target, or NULL; owned by the session. */
struct prb_target *prb_session_target(const struct prb_session *session);
size_t prb_session_target_count(const struct prb_session *session);

/** Sets the user's extensions, for the present targets and later ones; borrowed. */
struct prb_custom;
void prb_session_set_custom(struct prb_session *session, const struct prb_custom *custom);
const struct prb_custom *prb_session_custom(const struct prb_session *session);

/** Receives what is no failure: @p text is one line. */
typedef void prb_warning_handler(void *context, const char *text);

struct prb_error *prb_session_create(struct prb_session **ret) PRB_MUST_CHECK;
/** Frees the session and its targets; its statements must be destroyed before. */
void prb_session_destroy(struct prb_session *session);

/** Takes ownership of @p target. @p name is shown in `_target`. */
struct prb_error *prb_session_add_target(struct prb_session *session, const char *name,
					 struct prb_target *target) PRB_MUST_CHECK;

/** Sets `_rank` of the last added target, overriding its environment. */
void prb_session_set_rank(struct prb_session *session, long rank);

void prb_session_on_warning(struct prb_session *session, prb_warning_handler *handler,
			    void *context);

/**
 * Sets a handler that is called some times a second while a statement runs; not 0 cancels the
 * statement.
 */
typedef int prb_poll_handler(void *context);
void prb_session_on_poll(struct prb_session *session, prb_poll_handler *handler, void *context);

/**
 * Prepares the next statement of @p script, from byte *at on; *at becomes the end of the statement,
 * also after an error. *ret is NULL if only blanks and comments are left. Errors point at the
 * user's text and suggest names.
 */
struct prb_error *prb_session_prepare(struct prb_session *session, const char *script,
				      size_t length, size_t *at,
				      struct prb_statement **ret) PRB_MUST_CHECK;

/** Goes to the next row; *row is false after the last one. */
struct prb_error *prb_statement_next(struct prb_statement *statement, bool *row) PRB_MUST_CHECK;
/** Rewinds the statement: it runs again over a new instant. */
void prb_statement_reset(struct prb_statement *statement);
void prb_statement_destroy(struct prb_statement *statement);

static inline void prb_statement_guard(struct prb_statement **statement)
{
	prb_statement_destroy(*statement);
}
#define prb_auto_statement __attribute__((cleanup(prb_statement_guard)))

enum prb_value_kind {
	PRB_VALUE_NULL,
	PRB_VALUE_INTEGER,
	PRB_VALUE_REAL,
	PRB_VALUE_TEXT,
	PRB_VALUE_BLOB
};

struct prb_value {
	enum prb_value_kind kind;
	int64_t integer;
	double real;
	const char *text; /**< of text and blobs; valid until the next row */
	size_t length;	  /**< of it, bytes */
};

unsigned prb_statement_columns(const struct prb_statement *statement);
const char *prb_statement_name(const struct prb_statement *statement, unsigned column);
/** The table column that a result column shows unchanged, or NULL. */
const struct prb_column *prb_statement_origin(const struct prb_statement *statement,
					      unsigned column);
/* Conversions are SQLite's. The text is terminated, and valid until the next row. */
int64_t prb_statement_integer(struct prb_statement *statement, unsigned column);
double prb_statement_real(struct prb_statement *statement, unsigned column);
const char *prb_statement_text(struct prb_statement *statement, unsigned column, size_t *length);
void prb_statement_value(struct prb_statement *statement, unsigned column, struct prb_value *ret);

/** Ends the running statement, or the next one, at its next check, with PRB_ERROR_CANCELLED. */
void prb_session_cancel(struct prb_session *session);
/** Call after a statement's end: a late cancellation does not end the next statement. */
void prb_session_settle(struct prb_session *session);
/** Statements end with PRB_ERROR_TIMEOUT this many seconds after their first row; 0: never. */
void prb_session_set_timeout(struct prb_session *session, double seconds);
/** How threads are read; see dump/model/dump.h. */
void prb_session_set_mode(struct prb_session *session, enum prb_dump_mode mode);
enum prb_dump_mode prb_session_mode(const struct prb_session *session);
/** Longest text of a cell, bytes. */
size_t prb_session_text_max(const struct prb_session *session);
/** Limits of values. */
void prb_session_set_values(struct prb_session *session, const struct prb_value_limits *limits);

/** Prints a warning, once per session. */
void prb_session_warn(struct prb_session *session, const char *text);

/** Ends the instants of the targets: the next read begins a new one. */
void prb_session_end_instants(struct prb_session *session);

/** The first error of a target that was left out, or NULL; owned by the session. */
const struct prb_error *prb_session_failure(const struct prb_session *session);

/** PRB_ERROR_CANCELLED or PRB_ERROR_TIMEOUT if the running statement must end. */
struct prb_error *prb_session_check(struct prb_session *session) PRB_MUST_CHECK;

/** True if @p sql contains @p name as a word. */
bool prb_sql_mentions(const char *sql, const char *name);

#endif
