/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "target/proc/process.h"
#include "sql/engine/session_private.h"
#include "sql/engine/table_sources.h"
#include "values/environment.h"

/* Limit of memory for sorting and grouping: more than any useful query needs. */
enum { DEFAULT_MEMORY = 512 << 20 };

static bool has_to_end(void *context)
{
	struct prb_error *err = prb_session_check(context);

	prb_error_destroy(err);
	return err != NULL;
}

/*
 * Keeps only these of SQLite's own tables: the others depend on SQLite's build. Newer versions do
 * not call the authorizer for the kept ones; older ones do at their first use, and it would refuse.
 * So they are used here first.
 */
static void keep_json_tables(sqlite3 *db)
{
	const char *kept[] = {"json_each", "json_tree", NULL};

	sqlite3_drop_modules(db, kept);
	sqlite3_exec(db, "SELECT 1 FROM json_each('[]'), json_tree('[]')", NULL, NULL, NULL);
}

struct prb_error *prb_session_create(struct prb_session **ret)
{
	struct prb_session *session = calloc(1, sizeof(*session));

	if (!session)
		return prb_error_nomem();
	/* Statements of one session do not run at the same time, so SQLite needs no locks. */
	if (sqlite3_open_v2(":memory:", &session->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX,
			    NULL)) {
		prb_session_destroy(session);
		return prb_error_nomem();
	}
	sqlite3_extended_result_codes(session->db, 1);
#ifdef SQLITE_DBCONFIG_FP_DIGITS
	/* Before SQLite 3.52, numbers had no more digits as text. */
	sqlite3_db_config(session->db, SQLITE_DBCONFIG_FP_DIGITS, 15, NULL);
#endif
	keep_json_tables(session->db);
	session->memory_limit = DEFAULT_MEMORY;
	session->text_max = PRB_TEXT_MAX;
	session->host = (struct prb_functions_host){.cancelled = has_to_end, .context = session};
	*ret = session;
	return NULL;
}

void prb_session_destroy(struct prb_session *session)
{
	struct prb_session_target *target;
	char **told;

	if (!session)
		return;
	sqlite3_close(session->db);
	prb_session_end_instants(session);
	prb_vec_each (target, &session->targets) {
		prb_target_destroy(target->target);
		free(target->name);
	}
	prb_vec_free(&session->declared);
	prb_session_deinit_tables(session);
	prb_vec_free(&session->targets);
	prb_vec_each (told, &session->told)
		free(*told);
	prb_vec_free(&session->told);
	prb_error_destroy(session->error);
	prb_error_destroy(session->failure);
	free(session);
}

long prb_session_rank(struct prb_session_target *target)
{
	prb_auto_str struct prb_str environment = {};
	struct prb_error *err;

	if (target->ranked)
		return target->rank;
	err = prb_environment_read(target->target, &environment, NULL);
	target->rank = err ? -1 : prb_process_job(&environment).rank;
	target->ranked = true;
	prb_error_destroy(err);
	return target->rank;
}

void prb_session_set_rank(struct prb_session *session, long rank)
{
	struct prb_session_target *target = &session->targets.items[session->targets.count - 1];

	target->rank = rank;
	target->ranked = true;
}

struct prb_error *prb_session_add_target(struct prb_session *session, const char *name,
					 struct prb_target *target)
{
	struct prb_session_target *t = prb_vec_push(&session->targets);

	if (t)
		*t = (struct prb_session_target){.target = target, .name = strdup(name)};
	if (!t || !t->name) {
		if (t)
			session->targets.count--;
		prb_target_destroy(target);
		return prb_error_nomem();
	}
	if (session->custom)
		target->custom = session->custom;
	/* Rings of a live process are searched when a statement names a table. */
	return target->live ? NULL : prb_ring_tables_add(session, target);
}

void prb_session_set_custom(struct prb_session *session, const struct prb_custom *custom)
{
	struct prb_session_target *t;

	session->custom = custom;
	prb_vec_each (t, &session->targets)
		t->target->custom = custom;
}

const struct prb_custom *prb_session_custom(const struct prb_session *session)
{
	return session->custom;
}

void prb_session_allow_changes(struct prb_session *session)
{
	session->allow_changes = true;
}

struct prb_target *prb_session_target(const struct prb_session *session)
{
	return session->targets.count ? session->targets.items[0].target : NULL;
}

size_t prb_session_target_count(const struct prb_session *session)
{
	return session->targets.count;
}

void prb_session_on_warning(struct prb_session *session, prb_warning_handler *handler,
			    void *context)
{
	session->warn = handler;
	session->warn_context = context;
}

void prb_session_on_poll(struct prb_session *session, prb_poll_handler *handler, void *context)
{
	session->poll = handler;
	session->poll_context = context;
}

void prb_session_warn(struct prb_session *session, const char *text)
{
	char **told;

	prb_vec_each (told, &session->told)
		if (!strcmp(*told, text))
			return;
	char *copy = strdup(text);
	told = copy ? prb_vec_push(&session->told) : NULL;
	if (told)
		*told = copy;
	else
		free(copy);
	if (session->warn)
		session->warn(session->warn_context, text);
}

void prb_scan_note(struct prb_scan *scan, const char *format, ...)
{
	prb_auto_str struct prb_str text = {};
	va_list args;

	va_start(args, format);
	prb_str_vprintf(&text, format, args);
	va_end(args);
	prb_session_warn(scan->session, prb_str_text(&text));
}

void prb_session_cancel(struct prb_session *session)
{
	atomic_store(&session->cancelled, true);
}

void prb_session_set_timeout(struct prb_session *session, double seconds)
{
	session->timeout = seconds;
}

void prb_session_set_mode(struct prb_session *session, enum prb_dump_mode mode)
{
	session->mode = mode;
}

enum prb_dump_mode prb_session_mode(const struct prb_session *session)
{
	return session->mode;
}

size_t prb_session_text_max(const struct prb_session *session)
{
	return session->text_max;
}

void prb_session_set_values(struct prb_session *session, const struct prb_value_limits *limits)
{
	session->values = *limits;
	session->dumped = prb_value_options(limits, &(struct prb_repr_options){.max_objects = 1});
}

const struct prb_error *prb_session_failure(const struct prb_session *session)
{
	return session->failure;
}

/* Limits the calls of the poll handler: checks come by the million, and it may be slow. */
static bool poll_says_end(struct prb_session *session)
{
	static const double interval = 0.02;
	double now;

	if (!session->poll)
		return false;
	now = prb_clock_seconds();
	if (now - session->polled < interval)
		return false;
	session->polled = now;
	return session->poll(session->poll_context);
}

struct prb_error *prb_session_check(struct prb_session *session)
{
	if (poll_says_end(session))
		prb_session_cancel(session);
	if (atomic_load_explicit(&session->cancelled, memory_order_relaxed))
		return prb_error_create(PRB_ERROR_CANCELLED, "the query was cancelled");
	if (session->deadline && prb_clock_seconds() > session->deadline)
		return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
						       "the query took more than %g s",
						       session->timeout),
				      "allow more with --timeout, or ask for less");
	return NULL;
}

/** Call before a statement's first row. */
void prb_session_begin(struct prb_session *session)
{
	session->deadline = session->timeout ? prb_clock_seconds() + session->timeout : 0;
	session->memory_before = sqlite3_memory_used();
	session->host.now = prb_clock_calendar_seconds();
}

/* A cancellation or deadline of one statement does not end the next. */
void prb_session_settle(struct prb_session *session)
{
	atomic_store(&session->cancelled, false);
	session->deadline = 0;
}

static void warn(void *session, const char *text)
{
	prb_session_warn(session, text);
}

struct prb_error *prb_session_instant(struct prb_session *session, size_t index,
				      struct prb_instant **ret)
{
	struct prb_session_target *t = &session->targets.items[index];
	const struct prb_instant_host host = {
		.mode = &session->mode,
		.values = &session->values,
		.dumped = &session->dumped,
		.targets = &session->targets.count,
		.warn = warn,
		.context = session,
	};

	if (!t->instant)
		PRB_TRY(prb_instant_create(t->target, &session->plan, &host, &t->instant));
	*ret = t->instant;
	return NULL;
}

void prb_session_end_instants(struct prb_session *session)
{
	struct prb_session_target *t;

	session->generation++;
	prb_vec_each (t, &session->targets) {
		prb_instant_destroy(t->instant);
		t->instant = NULL;
	}
}
