/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Translates the SQL dialect that users type to SQLite's.
 *
 * A script is taken apart into statements at its semicolons. For each there is a translation, if
 * it holds something that other databases know and SQLite does not:
 *
 *     interval '5 minutes', INTERVAL 5 MINUTE        a number of seconds
 *     TIMESTAMP '2026-01-02 03:04:05'                seconds since the epoch (UTC unless it says)
 *     a ~ 're', a ~* 're', a !~ 're', a !~* 're'     a [NOT] REGEXP 're'
 *     a ILIKE 'x%', x::real, EXTRACT(hour FROM t)    LIKE, CAST, hour(t)
 *     percentile_cont(0.9) WITHIN GROUP (ORDER BY x) percentile_cont(x, 0.9)
 *     SHOW TABLES, SHOW COLUMNS FROM t, SHOW SCHEMAS, SHOW ALL, SHOW key, DESCRIBE t
 *                                                    queries of information_schema
 *
 * and SET key = value, which is no SQL at all:
 *
 *     do {
 *             PRB_TRY(prb_dialect_next(script, length, at, &statement));
 *             at = statement.next;
 *             …
 *             prb_dialect_statement_deinit(&statement);
 *     } while (at < length);
 *
 * A caller prepares the user's own text first, and the translation only if SQLite refuses that:
 * what is SQL already keeps its meaning, also where it uses such words as names. Text that is not
 * recognised with certainty stays as it is.
 *
 * Threading: none of it has state. Ownership: what a statement points to is the statement's.
 */
#ifndef PRB_SQL_DIALECT_DIALECT_H
#define PRB_SQL_DIALECT_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

enum prb_statement_kind {
	PRB_STATEMENT_NONE, /**< there are no more */
	PRB_STATEMENT_SQL,
	PRB_STATEMENT_SET, /**< `key` is to become `value` */
};

/** From byte `translated` of a translation on, the bytes come from byte `own` of the script. */
struct prb_statement_piece {
	size_t translated, own;
	bool copied; /**< byte by byte; otherwise all of it stands for what begins at `own` */
};

struct prb_dialect_statement {
	enum prb_statement_kind kind;
	/** The user's text is bytes [start, end) of the script: no semicolon, no blanks around. */
	size_t start, end;
	size_t next; /**< where to look for the next statement */

	/** The text to prepare if SQLite refuses the user's; NULL if there is nothing to
	 * translate. */
	char *translation;
	PRB_VEC(struct prb_statement_piece) pieces;

	/**
	 * Why there is no translation of something that asks for one (an interval of months); NULL
	 * otherwise. It is to be shown in place of what SQLite says, at byte `refused_at` of the
	 * script.
	 */
	struct prb_error *refusal;
	size_t refused_at;

	char *key, *value; /**< of PRB_STATEMENT_SET */
};

void prb_dialect_statement_deinit(struct prb_dialect_statement *statement);

/**
 * Takes the next statement from @p length bytes of @p script, at @p at or later. PRB_ERROR_USAGE
 * for a script with a NUL byte, PRB_ERROR_NOMEM; then there is nothing to deinit.
 */
struct prb_error *prb_dialect_next(const char *script, size_t length, size_t at,
				   struct prb_dialect_statement *ret) PRB_MUST_CHECK;

/**
 * The byte of the script that byte @p offset of the statement's translation comes from; without a
 * translation, of the user's own text. Never outside of the statement.
 */
size_t prb_dialect_locate(const struct prb_dialect_statement *statement, size_t offset);

/** Line and column of a byte, both from 1; columns are characters. */
struct prb_script_position {
	size_t line, column;
};

struct prb_script_position prb_script_position(const char *script, size_t length, size_t offset);

/**
 * Appends the line that byte @p offset is in and, below, a caret under that byte, both after two
 * spaces, without a line feed at the end. Long lines are cut to what is around it; what a terminal
 * would take for a command is escaped.
 */
void prb_script_point(struct prb_str *s, const char *script, size_t length, size_t offset);

/**
 * Says in @p err where it is: puts "line 2, column 14: " in front of the message, unless the
 * script is a single line, and the picture of prb_script_point() in front of the hint.
 */
struct prb_error *prb_script_error(struct prb_error *err, const char *script, size_t length,
				   size_t offset) PRB_MUST_CHECK;

#endif
