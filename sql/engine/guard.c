/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Restricts a user's SQL to reading tables, within bounds. Statements come from users who may
 * attach to the process anyway, but also from dashboards and scripts. Those must not open files,
 * load code or exhaust memory by mistake.
 */
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "sql/engine/session_private.h"

enum {
	/* Instructions of SQLite's machine between two checks of the clock: some 10 µs. */
	PROGRESS_STEPS = 1000,
};

static const struct {
	int limit, value;
} limits[] = {
	{SQLITE_LIMIT_LENGTH, 64 * 1024 * 1024},
	{SQLITE_LIMIT_SQL_LENGTH, 1024 * 1024},
	{SQLITE_LIMIT_COLUMN, 500},
	{SQLITE_LIMIT_EXPR_DEPTH, 200},
	{SQLITE_LIMIT_COMPOUND_SELECT, 100},
	{SQLITE_LIMIT_VDBE_OP, 250000},
	{SQLITE_LIMIT_FUNCTION_ARG, 100},
	{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
	{SQLITE_LIMIT_VARIABLE_NUMBER, 1000},
	{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
	{SQLITE_LIMIT_WORKER_THREADS, 0},
};

/* Functions of SQLite that access files or load code. */
static const char *const forbidden_functions[] = {"load_extension", "fts3_tokenizer", "readfile",
						  "writefile", "edit"};

/* Pragmas that only read. */
static const char *const harmless_pragmas[] = {"table_info",	 "table_xinfo",	  "table_list",
					       "database_list",	 "function_list", "collation_list",
					       "compile_options"};

static int authorize(void *context, int action, const char *a, const char *b, const char *schema,
		     const char *trigger)
{
	const struct prb_session *session = context;

	(void)schema;
	(void)trigger;
	if (session->declaring)
		return SQLITE_OK;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		for (size_t i = 0; i < PRB_ARRAY_SIZE(forbidden_functions); i++)
			if (!strcasecmp(b, forbidden_functions[i]))
				return SQLITE_DENY;
		return SQLITE_OK;
	case SQLITE_PRAGMA:
		for (size_t i = 0; i < PRB_ARRAY_SIZE(harmless_pragmas); i++)
			if (!strcasecmp(a, harmless_pragmas[i]))
				return SQLITE_OK;
		return SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

struct prb_error *prb_guard_memory(const struct prb_session *session)
{
	int64_t used = sqlite3_memory_used() - session->memory_before;

	if (used <= (int64_t)session->memory_limit)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
					       "the query takes more than %llu MiB of memory",
					       (unsigned long long)(session->memory_limit >> 20)),
			      "ask for fewer rows, or allow more: SET probing.query.memory = MIB");
}

/** Called while SQLite computes: ends a statement that was cancelled or is over its limits. */
static int progress(void *context)
{
	struct prb_session *session = context;
	struct prb_error *err = prb_session_check(session);

	if (!err)
		err = prb_guard_memory(session);
	if (!err)
		return 0;
	prb_error_destroy(session->error);
	session->error = err;
	return 1;
}

void prb_guard_begin(struct prb_session *session)
{
	sqlite3_db_config(session->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(session->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_db_config(session->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(session->db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0, NULL);
	/* Sorts in memory, where it is counted, instead of in files. */
	sqlite3_exec(session->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
	sqlite3_set_authorizer(session->db, authorize, session);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(limits); i++)
		sqlite3_limit(session->db, limits[i].limit, limits[i].value);
	sqlite3_progress_handler(session->db, PROGRESS_STEPS, progress, session);
}
