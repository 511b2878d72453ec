/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The virtual table module of all tables: turns a spec into a declaration, constraints into keys,
 * and pages of rows into SQLite's values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sql/engine/page.h"
#include "sql/engine/table_sources.h"
#include "sql/engine/vtab_private.h"

struct cursor {
	sqlite3_vtab_cursor base;
	struct prb_scan scan;
	struct prb_key keys[PRB_MAX_KEYS];
	sqlite3_value *values[PRB_MAX_KEYS];
	struct prb_str key_text;     /**< all keys as one text, to compare with another scan's */
	struct prb_grouped *grouped; /**< all rows by groups, for GROUP BY; or NULL */
	size_t target;		     /**< index of the session's target being read */
	size_t row;		     /**< index in the page */
	sqlite3_int64 rowid;
	bool end;
};

int prb_vtab_fail(struct prb_vtab *table, struct prb_error *err)
{
	int code = err->code == PRB_ERROR_NOMEM ? SQLITE_NOMEM
		   : err->code == PRB_ERROR_CANCELLED || err->code == PRB_ERROR_TIMEOUT
			   ? SQLITE_INTERRUPT
			   : SQLITE_ERROR;

	sqlite3_free(table->base.zErrMsg);
	table->base.zErrMsg = sqlite3_mprintf("%s", err->message);
	prb_error_destroy(table->session->error);
	table->session->error = err;
	return code;
}

/* Declaration */

static const char *type_name(enum prb_column_type type)
{
	static const char *const names[] = {
		[PRB_COLUMN_INTEGER] = "INTEGER",
		[PRB_COLUMN_REAL] = "REAL",
		[PRB_COLUMN_TEXT] = "TEXT",
		[PRB_COLUMN_ANY] = "",
	};

	return names[type];
}

static void declare_lead(struct prb_str *s, const char *suffix)
{
	prb_str_printf(s, ", _target TEXT%s, _pid INTEGER%s, _rank INTEGER%s", suffix, suffix,
		       suffix);
}

static void declaration(const struct prb_vtab *table, struct prb_str *ret)
{
	prb_str_puts(ret, "CREATE TABLE x(");
	if (table->lead) {
		declare_lead(ret, "");
		/* Removes the comma before the first column. */
		prb_str_remove(ret, strlen("CREATE TABLE x("), strlen(", "));
	}
	for (const struct prb_column *c = table->spec->columns; c->name; c++)
		prb_str_printf(ret, "%s\"%s\" %s%s%s",
			       c == table->spec->columns && !table->lead ? "" : ", ", c->name,
			       type_name(c->type),
			       c->flags & PRB_COLUMN_REPR ? " COLLATE " PRB_COLLATION_REPR : "",
			       c->flags & PRB_COLUMN_HIDDEN ? " HIDDEN" : "");
	if (!table->lead && !(table->spec->flags & PRB_TABLE_GLOBAL))
		declare_lead(ret, " HIDDEN");
	prb_str_putc(ret, ')');
}

/** SQLite calls the authorizer for the declaration too; `declaring` lets it pass. */
static int declare(struct prb_session *session, const char *text)
{
	bool before = session->declaring;

	session->declaring = true;
	int rc = sqlite3_declare_vtab(session->db, text);
	session->declaring = before;
	return rc;
}

static int connect_table(sqlite3 *db, void *context, int argc, const char *const *argv,
			 sqlite3_vtab **ret, char **message)
{
	struct prb_session *session = context;
	prb_auto_str struct prb_str text = {};
	struct prb_vtab *table;

	(void)db;
	(void)argc;
	const struct prb_table *spec = prb_session_find_table(session, argv[1], argv[2]);

	if (!spec) {
		*message = sqlite3_mprintf("no table is named %s.%s", argv[1], argv[2]);
		return SQLITE_ERROR;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return SQLITE_NOMEM;
	table->session = session;
	table->spec = spec;
	while (spec->columns[table->column_count].name)
		table->column_count++;
	if (session->targets.count > 1 && !(spec->flags & PRB_TABLE_GLOBAL))
		table->lead = PRB_LEAD_COUNT;
	declaration(table, &text);
	int rc = text.failed ? SQLITE_NOMEM : declare(session, prb_str_text(&text));
	if (rc)
		free(table);
	else
		*ret = &table->base;
	return rc;
}

/*
 * Must differ from connect_table(): SQLite allows undeclared use of a module whose xCreate is its
 * xConnect, in any schema.
 */
static int create_table(sqlite3 *db, void *context, int argc, const char *const *argv,
			sqlite3_vtab **ret, char **message)
{
	return connect_table(db, context, argc, argv, ret, message);
}

static int disconnect_table(sqlite3_vtab *vtab)
{
	struct prb_vtab *table = prb_vtab_of(vtab);

	prb_page_release(table->kept);
	free(table->kept_keys);
	free(table);
	return SQLITE_OK;
}

/* Reading */

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
	struct cursor *cursor = calloc(1, sizeof(*cursor));

	(void)vtab;
	if (!cursor)
		return SQLITE_NOMEM;
	*ret = &cursor->base;
	return SQLITE_OK;
}

static void end_scan(struct cursor *cursor)
{
	prb_scan_end(&cursor->scan);
	prb_page_release(cursor->scan.page);
	prb_grouped_destroy(cursor->grouped);
	cursor->grouped = NULL;
	cursor->scan = (struct prb_scan){};
	cursor->row = 0;
}

static void forget_keys(struct cursor *cursor)
{
	for (unsigned i = 0; i < PRB_MAX_KEYS; i++) {
		sqlite3_value_free(cursor->values[i]);
		cursor->values[i] = NULL;
	}
	prb_str_truncate(&cursor->key_text, 0);
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	end_scan(cursor);
	forget_keys(cursor);
	prb_str_deinit(&cursor->key_text);
	free(cursor);
	return SQLITE_OK;
}

/** Reuses the page of an earlier scan with the same keys, if it held all rows of the target. */
static bool take_kept(struct prb_vtab *table, struct cursor *cursor)
{
	if (!table->kept || table->kept_target != cursor->target ||
	    table->kept_generation != table->session->generation ||
	    strcmp(table->kept_keys, prb_str_text(&cursor->key_text)) != 0)
		return false;
	cursor->scan.page = prb_page_reference(table->kept);
	cursor->scan.more = false;
	return true;
}

static void keep(struct prb_vtab *table, const struct cursor *cursor)
{
	char *keys = strdup(prb_str_text(&cursor->key_text));

	if (!keys)
		return;
	prb_page_release(table->kept);
	free(table->kept_keys);
	table->kept = prb_page_reference(cursor->scan.page);
	table->kept_keys = keys;
	table->kept_target = cursor->target;
	table->kept_generation = table->session->generation;
}

/** Reads the next page of the present target. */
static struct prb_error *fetch(struct prb_vtab *table, struct cursor *cursor, bool first)
{
	struct prb_scan *scan = &cursor->scan;

	prb_page_clear(scan->page);
	cursor->row = 0;
	scan->more = false;
	PRB_TRY(prb_session_check(table->session));
	PRB_TRY(table->spec->scan(scan));
	if (scan->page->text.failed)
		return prb_error_nomem();
	if (first && !scan->more)
		keep(table, cursor);
	return NULL;
}

/** Begins reading the target at cursor->target. */
static struct prb_error *begin(struct prb_vtab *table, struct cursor *cursor, uint64_t used,
			       unsigned key_count)
{
	struct prb_scan *scan = &cursor->scan;

	end_scan(cursor);
	scan->table = table->spec;
	scan->session = table->session;
	scan->used = used;
	scan->keys = cursor->keys;
	scan->key_count = key_count;
	if (take_kept(table, cursor))
		return NULL;
	if (!(table->spec->flags & PRB_TABLE_GLOBAL))
		PRB_TRY(prb_session_instant(table->session, cursor->target, &scan->instant));
	PRB_TRY(prb_page_create(table->column_count, used, &scan->page));
	return fetch(table, cursor, true);
}

/** With several targets, a failing target is left out with a warning. */
static struct prb_error *leave_out(struct prb_vtab *table, struct cursor *cursor,
				   struct prb_error *err)
{
	struct prb_session *session = table->session;

	if (!err || session->targets.count < 2 || table->spec->flags & PRB_TABLE_GLOBAL ||
	    err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_CANCELLED ||
	    err->code == PRB_ERROR_TIMEOUT)
		return err;
	err = prb_error_prefix(err, "%s is left out", session->targets.items[cursor->target].name);
	prb_session_warn(session, err->message);
	if (session->failure)
		prb_error_destroy(err);
	else
		session->failure = err;
	end_scan(cursor);
	return NULL;
}

/** Continues until there is a row or the last target has ended. */
static int settle(struct prb_vtab *table, struct cursor *cursor, struct prb_error *err)
{
	size_t targets = table->spec->flags & PRB_TABLE_GLOBAL ? 1 : table->session->targets.count;
	uint64_t used = cursor->scan.used;
	unsigned key_count = cursor->scan.key_count;

	for (;;) {
		err = leave_out(table, cursor, err);
		if (err)
			return prb_vtab_fail(table, err);
		if (cursor->scan.page && cursor->row < cursor->scan.page->rows)
			return SQLITE_OK;
		if (cursor->scan.page && cursor->scan.more) {
			err = fetch(table, cursor, false);
			continue;
		}
		if (++cursor->target >= targets)
			break;
		err = begin(table, cursor, used, key_count);
	}
	cursor->end = true;
	return SQLITE_OK;
}

/** Parses the keys that best_index() wrote; copies the values, since pages outlive the call. */
static unsigned take_keys(struct cursor *cursor, const char *text, sqlite3_value **argv)
{
	unsigned count = 0, next = 0;

	prb_str_puts(&cursor->key_text, text);
	for (text = strchr(text, ','); text && count < PRB_MAX_KEYS; text = strchr(text, ',')) {
		char *end;
		struct prb_key *key = &cursor->keys[count];

		key->column = (unsigned)strtoul(text + 1, &end, 10);
		key->value = NULL;
		key->bound = *end == '<' || *end == '>' ? *end : '\0';
		text = end;
		if (*end != '?') {
			cursor->values[count] = sqlite3_value_dup(argv[next++]);
			key->value = cursor->values[count];
			const unsigned char *value = sqlite3_value_text(cursor->values[count]);
			prb_str_putc(&cursor->key_text, '\n');
			prb_str_puts(&cursor->key_text, value ? (const char *)value : "");
		}
		count++;
	}
	return count;
}

/** Parses the columns of GROUP BY that best_index() wrote. */
static unsigned take_groups(const char *text, struct prb_group_key ret[PRB_GROUP_KEYS])
{
	unsigned count = 0;

	for (text = strchr(text, ';'); text && count < PRB_GROUP_KEYS; text = strchr(text, ';')) {
		char *end;

		ret[count].column = (unsigned)strtoul(text + 1, &end, 10);
		ret[count++].descending = *end == '-';
		text = end;
	}
	return count;
}

/** Reads all rows, to return them group by group. */
static struct prb_error *collect(struct prb_vtab *table, struct cursor *cursor,
				 const struct prb_group_key *keys, unsigned count)
{
	PRB_TRY(prb_grouped_create(cursor->scan.page, keys, count, &cursor->grouped));
	for (;;) {
		PRB_TRY(prb_grouped_add(cursor->grouped, cursor->scan.page));
		PRB_TRY(prb_guard_memory(table->session));
		if (!cursor->scan.more)
			break;
		PRB_TRY(fetch(table, cursor, false));
	}
	prb_grouped_sort(cursor->grouped);
	cursor->end = !prb_grouped_next(cursor->grouped);
	return NULL;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
		  sqlite3_value **argv)
{
	struct cursor *cursor = (struct cursor *)base;
	struct prb_vtab *table = prb_vtab_of(base->pVtab);
	uint64_t used = strtoull(text, NULL, 16);
	struct prb_group_key groups[PRB_GROUP_KEYS];

	(void)number;
	(void)argc;
	forget_keys(cursor);
	cursor->target = 0;
	cursor->rowid = 0;
	cursor->end = false;
	if (!(table->spec->flags & PRB_TABLE_GLOBAL) && !table->session->targets.count)
		return prb_vtab_fail(
			table, prb_error_hint(prb_error_create(
						      PRB_ERROR_USAGE, "table %s.%s needs a target",
						      table->spec->schema, table->spec->name),
					      "give one with -t TARGET; 'probing list' shows which "
					      "Python processes there are"));
	unsigned count = take_keys(cursor, text, argv);
	int rc = settle(table, cursor, begin(table, cursor, used, count));

	count = take_groups(text, groups);
	if (rc || cursor->end || !count)
		return rc;
	struct prb_error *err = collect(table, cursor, groups, count);

	return err ? prb_vtab_fail(table, err) : SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->rowid++;
	if (cursor->grouped) {
		cursor->end = !prb_grouped_next(cursor->grouped);
		return SQLITE_OK;
	}
	if (++cursor->row < cursor->scan.page->rows)
		return SQLITE_OK;
	return settle(prb_vtab_of(base->pVtab), cursor, NULL);
}

static int eof(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->end;
}

static void lead_column(const struct prb_vtab *table, const struct cursor *cursor, unsigned column,
			sqlite3_context *context)
{
	struct prb_session_target *target = &table->session->targets.items[cursor->target];

	if (column == PRB_LEAD_TARGET)
		sqlite3_result_text(context, target->name, -1, SQLITE_STATIC);
	else if (column == PRB_LEAD_PID && target->target->pid)
		sqlite3_result_int64(context, target->target->pid);
	else if (column == PRB_LEAD_RANK && prb_session_rank(target) >= 0)
		sqlite3_result_int64(context, target->rank);
}

static int column(sqlite3_vtab_cursor *base, sqlite3_context *context, int index)
{
	const struct cursor *cursor = (struct cursor *)base;
	const struct prb_vtab *table = prb_vtab_of(base->pVtab);
	unsigned own = (unsigned)index - table->lead;

	if ((unsigned)index < table->lead)
		lead_column(table, cursor, (unsigned)index, context);
	else if (own >= table->column_count)
		lead_column(table, cursor, own - table->column_count, context);
	else if (cursor->grouped)
		prb_grouped_result(cursor->grouped, own, context);
	else
		prb_page_result(cursor->scan.page, cursor->row, own, context);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	*ret = ((struct cursor *)base)->rowid;
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.iVersion = 1,
	.xCreate = create_table,
	.xConnect = connect_table,
	.xBestIndex = prb_vtab_best_index,
	.xDisconnect = disconnect_table,
	.xDestroy = disconnect_table,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter,
	.xNext = next,
	.xEof = eof,
	.xColumn = column,
	.xRowid = rowid,
};

struct prb_error *prb_vtab_register(struct prb_session *session)
{
	return sqlite3_create_module_v2(session->db, "prb", &module, session, NULL)
		       ? prb_error_nomem()
		       : NULL;
}

/* Keys for scans */

/*
 * The type of a key, SQLITE_INTEGER also for an integer as text. sqlite3_value_numeric_type() locks
 * the value's connection since SQLite 3.53, and a copied value has none.
 */
static int key_type(sqlite3_value *value)
{
	int type = sqlite3_value_type(value);
	char text[24];

	if (type != SQLITE_TEXT)
		return type;
	snprintf(text, sizeof(text), "%lld", (long long)sqlite3_value_int64(value));
	return strcmp(text, (const char *)sqlite3_value_text(value)) ? type : SQLITE_INTEGER;
}

static const sqlite3_value *key_value(const struct prb_scan *scan, unsigned column)
{
	for (unsigned i = 0; i < scan->key_count; i++)
		if (scan->keys[i].column == column && scan->keys[i].value && !scan->keys[i].bound)
			return scan->keys[i].value;
	return NULL;
}

bool prb_scan_keyed(const struct prb_scan *scan, unsigned column)
{
	for (unsigned i = 0; i < scan->key_count; i++)
		if (scan->keys[i].column == column)
			return true;
	return false;
}

void prb_scan_range(const struct prb_scan *scan, unsigned column, double *from, double *to)
{
	for (unsigned i = 0; i < scan->key_count; i++) {
		const struct prb_key *key = &scan->keys[i];
		sqlite3_value *value = (sqlite3_value *)key->value;
		int type = value ? key_type(value) : SQLITE_NULL;

		if (key->column != column || (type != SQLITE_INTEGER && type != SQLITE_FLOAT))
			continue;
		if (key->bound != '<')
			*from = PRB_MAX(*from, sqlite3_value_double(value));
		if (key->bound != '>')
			*to = PRB_MIN(*to, sqlite3_value_double(value));
	}
}

bool prb_scan_key_integer(const struct prb_scan *scan, unsigned column, int64_t *ret)
{
	sqlite3_value *value = (sqlite3_value *)key_value(scan, column);

	if (!value || key_type(value) != SQLITE_INTEGER)
		return false;
	*ret = sqlite3_value_int64(value);
	return true;
}

bool prb_scan_key_text(const struct prb_scan *scan, unsigned column, const char **ret)
{
	sqlite3_value *value = (sqlite3_value *)key_value(scan, column);

	if (!value || sqlite3_value_type(value) != SQLITE_TEXT)
		return false;
	*ret = (const char *)sqlite3_value_text(value);
	return true;
}

/** Appends a value as an SQL literal; false if it has none. */
static bool put_literal(struct prb_str *s, sqlite3_value *value)
{
	char *text = NULL;

	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
		prb_str_printf(s, "%lld", (long long)sqlite3_value_int64(value));
		return true;
	case SQLITE_FLOAT:
		text = sqlite3_mprintf("%!.17g", sqlite3_value_double(value));
		break;
	case SQLITE_TEXT:
		if (strlen((const char *)sqlite3_value_text(value)) !=
		    (size_t)sqlite3_value_bytes(value))
			return false;
		text = sqlite3_mprintf("%Q", sqlite3_value_text(value));
		break;
	default:
		return false;
	}
	prb_str_puts(s, text ? text : "");
	s->failed |= !text;
	sqlite3_free(text);
	return true;
}

bool prb_scan_condition(const struct prb_scan *scan, unsigned n, struct prb_str *ret)
{
	prb_auto_str struct prb_str value = {};
	const struct prb_key *key = &scan->keys[n];

	if (n >= scan->key_count)
		return false;
	if (key->value && put_literal(&value, (sqlite3_value *)key->value))
		prb_str_printf(ret, "\"%s\" %s %s", scan->table->columns[key->column].name,
			       key->bound == '<'   ? "<="
			       : key->bound == '>' ? ">="
						   : "=",
			       prb_str_text(&value));
	ret->failed |= value.failed;
	return true;
}
