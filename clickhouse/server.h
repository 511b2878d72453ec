/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A ClickHouse server: questions with small answers, and inserts that happen at most once.
 *
 * Inserts go through a session of the server, which must exist when they arrive
 * (`session_check=1`). An insert whose end is not known is fenced by prb_clickhouse_fence(): it
 * returns when the session is gone, so that what still is on its way is refused. After that the
 * rows in a table say what arrived.
 *
 * Threading: one thread at a time. Errors: PRB_ERROR_FAILED with the server's words, and those of
 * http.h. The server's messages are escaped and bounded.
 */
#ifndef PRB_CLICKHOUSE_SERVER_H
#define PRB_CLICKHOUSE_SERVER_H

#include <stdbool.h>

#include "base/error.h"
#include "base/str.h"
#include "clickhouse/url.h"
#include "remote/http.h"

enum {
	PRB_CLICKHOUSE_SESSION = 33, /**< bytes of a session's name with its NUL */
	PRB_CLICKHOUSE_UNKNOWN_TABLE = 60,
	PRB_CLICKHOUSE_UNKNOWN_DATABASE = 81,
	PRB_CLICKHOUSE_LOCKED = 373, /**< the session's last request is about to end */
};

struct prb_clickhouse {
	struct prb_clickhouse_url url;
	struct prb_http *http;
	unsigned major, minor;		      /**< of its version; 0: not asked yet */
	char session[PRB_CLICKHOUSE_SESSION]; /**< that inserts use; "": none */
	bool (*stop)(void *);		      /**< ends requests; or NULL */
	void *stop_context;
	int code; /**< of the last refusal, as the server numbers them; 0: another failure */
};

/** Does not connect yet. @p url is copied, its job too. */
struct prb_error *prb_clickhouse_open(const char *url, const char *password_file,
				      struct prb_clickhouse *ret) PRB_MUST_CHECK;
void prb_clickhouse_close(struct prb_clickhouse *server);
/** Reads the password again, for the next requests. */
struct prb_error *prb_clickhouse_log_in(struct prb_clickhouse *server,
					const char *password_file) PRB_MUST_CHECK;

/** Asks for its version, unless it is known. */
struct prb_error *prb_clickhouse_greet(struct prb_clickhouse *server) PRB_MUST_CHECK;
bool prb_clickhouse_is_from(const struct prb_clickhouse *server, unsigned major, unsigned minor);

/** Runs a statement, whose answer is appended to @p ret, or not wanted if it is NULL. */
struct prb_error *prb_clickhouse_ask(struct prb_clickhouse *server, const char *sql,
				     struct prb_str *ret) PRB_MUST_CHECK;

/**
 * As above, for a statement that only reads, with a sink, and no bounds but those of the sink and
 * of @p timeout_s.
 */
struct prb_error *prb_clickhouse_select(struct prb_clickhouse *server, const char *sql,
					double timeout_s, prb_http_sink *sink,
					void *context) PRB_MUST_CHECK;

/** Begins a session with this name, a fresh one. */
struct prb_error *prb_clickhouse_begin(struct prb_clickhouse *server,
				       const char *session) PRB_MUST_CHECK;

/**
 * Inserts. After an error, *known says if it is certain that nothing was inserted; and no session
 * is there any more if it had ended.
 */
struct prb_error *prb_clickhouse_insert(struct prb_clickhouse *server, const char *sql,
					const struct prb_str *rows, bool *known) PRB_MUST_CHECK;

/**
 * Ends that session; *done: no insert of it runs or will. Else ask again, after some time: it
 * still runs, or its time has not passed.
 */
struct prb_error *prb_clickhouse_fence(struct prb_clickhouse *server, const char *session,
				       bool *done) PRB_MUST_CHECK;

/** Appends @p text in quotes for a statement. */
void prb_clickhouse_quote(struct prb_str *s, const char *text);

#endif
