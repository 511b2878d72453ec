/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the parts of `probing query`: a session and its output format.
 */
#ifndef PRB_CLI_COMMANDS_QUERY_QUERY_H
#define PRB_CLI_COMMANDS_QUERY_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "command/command.h"
#include "base/error.h"
#include "base/str.h"
#include "sql/render/renderer.h"
#include "sql/engine/session.h"

struct prb_query {
	struct prb_session *session;
	const struct prb_renderer_format *format;
	bool wide;		 /**< a table is not made to fit the terminal */
	uint64_t rows;		 /**< shown of each result at most; 0: all */
	struct prb_str *capture; /**< results go here instead of to stdout, or NULL */
	size_t results;		 /**< shown so far */

	size_t targets, lost;	   /**< targets named; targets that cannot be opened */
	struct prb_error *failure; /**< of the first of them, or NULL */
	const char *target;	   /**< the first one as the user named it, or NULL */
};

/** The format of a name; PRB_ERROR_USAGE with the names there are, and *ret as it was. */
struct prb_error *prb_query_format(const char *name,
				   const struct prb_renderer_format **ret) PRB_MUST_CHECK;

/**
 * Opens the targets of @p cli; with @p all, all processes that they match, and without any, all
 * there are. One of several that cannot be opened is reported by a warning and kept in `failure`.
 */
struct prb_error *prb_query_open(struct prb_query *query, const struct prb_cli *cli,
				 bool all) PRB_MUST_CHECK;

/** Reads a whole file of SQL, or stdin for NULL. */
struct prb_error *prb_query_read(const char *path, struct prb_str *ret) PRB_MUST_CHECK;

/**
 * Runs the statements of a script and shows their results. Errors say which statement is meant if
 * there are several.
 */
struct prb_error *prb_query_run(struct prb_query *query, const char *sql,
				size_t length) PRB_MUST_CHECK;

/**
 * If the script names a table that has no rows, and that the process has begun to record: says so,
 * and waits some seconds for the first one.
 */
void prb_query_wait(struct prb_query *query, const char *sql, size_t length);

/** A renderer for stdout as the query wants it. */
struct prb_error *prb_query_renderer(struct prb_query *query,
				     struct prb_renderer **ret) PRB_MUST_CHECK;

/** Prints the footer of a result: how many rows, and what is left out; @p more: of them. */
void prb_query_tell_rest(const struct prb_query *query, const struct prb_renderer *renderer,
			 bool more);

/** Runs it again and again, @p seconds apart, until the user or a target ends it. */
struct prb_error *prb_query_watch(struct prb_query *query, const char *sql, size_t length,
				  double seconds) PRB_MUST_CHECK;

/** Runs what was typed at a prompt: statements, or one of its commands. Errors are printed. */
void prb_query_typed(struct prb_query *query, const char *text, size_t length);

/** Reads statements from the terminal and runs them until the user ends it. */
struct prb_error *prb_query_prompt(struct prb_query *query) PRB_MUST_CHECK;

/**
 * As above, for a prompt elsewhere: each text of stdin, ended by a NUL, is run, and @p mark printed
 * on both streams after its output. The empty text is not run, but ends what Ctrl-C began.
 */
struct prb_error *prb_query_relay(struct prb_query *query, const char *mark) PRB_MUST_CHECK;

#endif
