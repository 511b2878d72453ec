/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "clickhouse/schema.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* Columns of each table. `_ring` and `_row` identify a row permanently: see ship.h. */
static const struct {
	const char *name, *type, *codec;
	bool few; /* values: they are numbered where the server can */
} lead[] = {
	{"job", "String", NULL, true},
	{"host", "String", NULL, true},
	{"uid", "UInt32", NULL},
	{"rank", "Nullable(Int32)", NULL},
	{"role", "Nullable(String)", NULL, true},
	{"pid", "UInt32", NULL},
	{"tid", "UInt32", NULL},
	{"timestamp", "Float64", "Gorilla, LZ4"},
	{"_ring", "UInt64", NULL},
	{"_row", "UInt64", "DoubleDelta, LZ4"},
	{"_shipped", "Date", NULL},
};

static const struct {
	const char *type, *suffix;
} types[PRB_RING_TYPES] = {
	[PRB_RING_INTEGER] = {"Nullable(Int64)", "integer"},
	[PRB_RING_REAL] = {"Nullable(Float64)", "real"},
	[PRB_RING_TEXT] = {"Nullable(String)", "text"},
};

static bool is_name(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return !*text;
}

struct prb_error *prb_table_name(const struct prb_ring_header *header, bool ours,
				 char ret[PRB_TABLE_NAME])
{
	static const char *const schemas[] = {"user", "python", "main"};
	bool known =
		ours && (!strcmp(header->schema, "probing") || !strcmp(header->schema, "profile"));

	for (size_t i = 0; i < PRB_ARRAY_SIZE(schemas); i++)
		known |= !strcmp(schemas[i], header->schema);
	if (!known || !is_name(header->name))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"its schema has to be user, python or main, and its name "
					"a word");
	snprintf(ret, PRB_TABLE_NAME, "%s_%s", header->schema, header->name);
	return NULL;
}

/** Number of the column that each table has, or -1. */
static int lead_of(const char *name)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(lead); i++)
		if (!strcasecmp(lead[i].name, name))
			return (int)i;
	return -1;
}

static bool is_lead(const char *name)
{
	return lead_of(name) >= 0;
}

static struct prb_table_column *find(const struct prb_clickhouse_table *table, const char *name)
{
	struct prb_table_column *c;

	prb_vec_each (c, &table->columns)
		if (!strcasecmp(c->name, name))
			return c;
	return NULL;
}

/** True if the column is of that type, or can be made. */
static bool can_be(const struct prb_clickhouse_table *table, const struct prb_table_column *column)
{
	const struct prb_table_column *known = find(table, column->name), *other;

	if (known)
		return known->type == column->type;
	prb_vec_each (other, &table->others)
		if (!strcasecmp(other->name, column->name))
			return false;
	return true;
}

/** Which column of the table a column of the ring is; *ret->name is "" if there is none yet. */
static struct prb_error *choose(const struct prb_clickhouse_table *table,
				const struct prb_ring_column *column, struct prb_table_column *ret)
{
	if (!is_name(column->name))
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "the name of a column is no word");
	ret->type = (enum prb_ring_type)column->type;
	snprintf(ret->name, sizeof(ret->name), "%s%s", column->name,
		 is_lead(column->name) ? "_" : "");
	if (can_be(table, ret))
		return NULL;
	snprintf(ret->name, sizeof(ret->name), "%s__%s", column->name, types[column->type].suffix);
	return can_be(table, ret) ? NULL
				  : prb_error_create(PRB_ERROR_UNSUPPORTED,
						     "its column %s has another type in ClickHouse",
						     column->name);
}

/** Texts that are numbered, and indices: before, both were experiments. */
static bool has_more(const struct prb_clickhouse *server)
{
	return prb_clickhouse_is_from(server, 20, 3);
}

static void put_type(const struct prb_clickhouse *server, const char *type, bool few,
		     struct prb_str *s)
{
	prb_str_printf(s, few && has_more(server) ? " LowCardinality(%s)" : " %s", type);
}

static void put_codec(const struct prb_clickhouse *server, const char *codec, struct prb_str *s)
{
	/* 19.11 brought these two. */
	if (codec && prb_clickhouse_is_from(server, 19, 11))
		prb_str_printf(s, " CODEC(%s)", codec);
}

static struct prb_error *make(struct prb_clickhouse *server,
			      const struct prb_clickhouse_table *table,
			      const struct prb_ring_column *columns, uint32_t count, bool ours)
{
	prb_auto_str struct prb_str sql = {};
	bool steps = false;

	prb_str_printf(&sql, "CREATE TABLE IF NOT EXISTS `%s`.`%s` (", server->url.database,
		       table->name);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(lead); i++) {
		prb_str_printf(&sql, "%s`%s`", i ? ", " : "", lead[i].name);
		put_type(server, lead[i].type, lead[i].few, &sql);
		put_codec(server, lead[i].codec, &sql);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct prb_table_column column;

		if (ours && is_lead(columns[i].name))
			continue;
		PRB_TRY(choose(table, &columns[i], &column));
		prb_str_printf(&sql, ", `%s`", column.name);
		/* Texts of our own tables repeat, so they are numbered. */
		put_type(server, types[column.type].type, ours && column.type == PRB_RING_TEXT,
			 &sql);
		steps |= !strcmp(column.name, "step") && column.type == PRB_RING_INTEGER;
	}
	/* Within a job, later steps have later times: conditions on them leave most rows out. */
	if (has_more(server))
		prb_str_puts(&sql, ", INDEX `_time` timestamp TYPE minmax GRANULARITY 1");
	prb_str_printf(&sql,
		       ") ENGINE = MergeTree PARTITION BY _shipped ORDER BY (job, %sifNull(rank, "
		       "-1), _ring, _row)",
		       steps ? "ifNull(step, -1), " : "");
	return sql.failed ? prb_error_nomem()
			  : prb_clickhouse_ask(server, prb_str_text(&sql), NULL);
}

/** True if @p said is @p type, or what is the same in RowBinary. */
static bool is_type(const char *said, size_t length, const char *type)
{
	static const char before[] = "LowCardinality(";

	if (length > strlen(before) && !strncmp(said, before, strlen(before))) {
		said += strlen(before);
		length -= strlen(before) + 1;
	}
	return strlen(type) == length && !memcmp(type, said, length);
}

/** A column that each table has: bytes of another type would be read as something else. */
static struct prb_error *take_lead(struct prb_clickhouse_table *table, int number, const char *type,
				   size_t length)
{
	table->lead |= 1u << number;
	if (is_type(type, length, lead[number].type))
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA,
				"the column %s of %s has to be %s, and is another type",
				lead[number].name, table->name, lead[number].type);
}

/** A line "NAME\tTYPE" of system.columns. */
static struct prb_error *take_column(struct prb_clickhouse_table *table, const char *line,
				     size_t length)
{
	const char *tab = memchr(line, '\t', length);
	struct prb_table_column column = {.type = PRB_RING_TYPES}, *slot;
	size_t name = tab ? (size_t)(tab - line) : 0, type = length - name - 1;

	if (!tab || !name || name >= PRB_TABLE_COLUMN)
		return NULL;
	memcpy(column.name, line, name);
	if (is_lead(column.name))
		return take_lead(table, lead_of(column.name), tab + 1, type);
	if (!is_name(column.name))
		return NULL;
	for (enum prb_ring_type t = 0; t < PRB_RING_TYPES; t++)
		if (is_type(tab + 1, type, types[t].type))
			column.type = t;
	if (table->columns.count + table->others.count == PRB_TABLE_COLUMNS - 1)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s has over %d columns", table->name,
					PRB_TABLE_COLUMNS - 2);
	slot = column.type == PRB_RING_TYPES ? prb_vec_push(&table->others)
					     : prb_vec_push(&table->columns);
	if (!slot)
		return prb_error_nomem();
	*slot = column;
	return NULL;
}

static struct prb_error *read_columns(struct prb_clickhouse *server,
				      struct prb_clickhouse_table *table)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_free char *sql = prb_format("SELECT name, type FROM system.columns WHERE "
					     "database = '%s' AND table = '%s' FORMAT TabSeparated",
					     server->url.database, table->name);

	if (!sql)
		return prb_error_nomem();
	PRB_TRY(prb_clickhouse_ask(server, sql, &text));
	table->columns.count = table->others.count = 0;
	table->lead = 0;
	for (const char *at = prb_str_text(&text); *at;) {
		size_t length = strcspn(at, "\n");

		PRB_TRY(take_column(table, at, length));
		at += length + (at[length] == '\n');
	}
	table->known = text.length > 0;
	return NULL;
}

static struct prb_error *add_column(struct prb_clickhouse *server,
				    const struct prb_clickhouse_table *table, const char *name,
				    const char *type)
{
	const int duplicate = 44; /* another daemon was faster */
	prb_auto_free char *sql = prb_format("ALTER TABLE `%s`.`%s` ADD COLUMN `%s` %s",
					     server->url.database, table->name, name, type);
	struct prb_error *err = sql ? prb_clickhouse_ask(server, sql, NULL) : prb_error_nomem();

	if (err && server->code == duplicate) {
		prb_error_destroy(err);
		return NULL;
	}
	return err;
}

/** Adds what an older version of probing had not in each table. */
static struct prb_error *complete(struct prb_clickhouse *server, struct prb_clickhouse_table *table)
{
	const uint32_t all = (1u << PRB_ARRAY_SIZE(lead)) - 1;
	const uint32_t before = table->lead;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(lead); i++)
		if (!(before >> i & 1))
			PRB_TRY(add_column(server, table, lead[i].name, lead[i].type));
	if (before != all)
		PRB_TRY(read_columns(server, table));
	return NULL;
}

/** False if a column is missing. */
static struct prb_error *find_places(const struct prb_clickhouse_table *table,
				     const struct prb_ring_column *columns, uint32_t count,
				     bool ours, struct prb_table_places *ret,
				     struct prb_table_column *missing)
{
	*missing->name = '\0';
	for (uint32_t i = 0; i < count; i++) {
		struct prb_table_column column;
		const struct prb_table_column *known;

		ret->of[i] = PRB_TABLE_NOT_THERE;
		if (ours && is_lead(columns[i].name))
			continue;
		PRB_TRY(choose(table, &columns[i], &column));
		known = find(table, column.name);
		if (!known) {
			*missing = column;
			return NULL;
		}
		ret->of[i] = (uint8_t)(known - table->columns.items);
	}
	return NULL;
}

struct prb_error *prb_table_prepare(struct prb_clickhouse *server,
				    struct prb_clickhouse_table *table,
				    const struct prb_ring_header *header,
				    const struct prb_ring_column *columns, bool ours,
				    struct prb_table_places *places)
{
	struct prb_table_column missing;

	if (!table->known) {
		PRB_TRY(read_columns(server, table));
		table->made = !table->known;
		if (table->made) {
			PRB_TRY(make(server, table, columns, header->column_count, ours));
			PRB_TRY(read_columns(server, table));
		}
	}
	PRB_TRY(complete(server, table));
	for (unsigned tries = 0; tries <= PRB_RING_COLUMNS; tries++) {
		PRB_TRY(find_places(table, columns, header->column_count, ours, places, &missing));
		if (!*missing.name)
			return NULL;
		PRB_TRY(add_column(server, table, missing.name, types[missing.type].type));
		PRB_TRY(read_columns(server, table));
	}
	return prb_error_create(PRB_ERROR_BAD_DATA,
				"%s of ClickHouse has no column %s although it "
				"was made",
				table->name, missing.name);
}

void prb_table_deinit(struct prb_clickhouse_table *table)
{
	prb_vec_free(&table->columns);
	prb_vec_free(&table->others);
}

/** Partitions are days: "2026-01-02". */
static struct prb_error *drop(struct prb_clickhouse *server,
			      const struct prb_clickhouse_table *table, const char *day)
{
	prb_auto_free char *sql = prb_format("ALTER TABLE `%s`.`%s` DROP PARTITION '%.10s'",
					     server->url.database, table->name, day);

	return sql ? prb_clickhouse_ask(server, sql, NULL) : prb_error_nomem();
}

struct prb_error *prb_table_retain(struct prb_clickhouse *server,
				   const struct prb_clickhouse_table *table, int days)
{
	prb_auto_free char *sql = prb_format(
		"SELECT DISTINCT partition FROM system.parts WHERE database = '%s' AND table = "
		"'%s' AND active AND partition < toString(today() - %d) FORMAT TabSeparated",
		server->url.database, table->name, days);
	prb_auto_str struct prb_str text = {};

	if (!sql)
		return prb_error_nomem();
	PRB_TRY(prb_clickhouse_ask(server, sql, &text));
	for (const char *at = prb_str_text(&text); *at;) {
		size_t length = strcspn(at, "\n");

		if (length == strlen("2026-01-02") && length == strspn(at, "0123456789-"))
			PRB_TRY(drop(server, table, at));
		at += length + (at[length] == '\n');
	}
	return NULL;
}

void prb_table_put_insert(const struct prb_clickhouse *server,
			  const struct prb_clickhouse_table *table, struct prb_str *s)
{
	const struct prb_table_column *column;

	prb_str_printf(s, "INSERT INTO `%s`.`%s` (", server->url.database, table->name);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(lead); i++)
		prb_str_printf(s, "%s`%s`", i ? ", " : "", lead[i].name);
	prb_vec_each (column, &table->columns)
		prb_str_printf(s, ", `%s`", column->name);
	prb_str_puts(s, ") FORMAT RowBinary");
}

/* RowBinary has the machine's own order of bytes on all that ClickHouse runs on. */
#define PUT(s, value) prb_str_append(s, &(__typeof__(value)){value}, sizeof(value))

static void put_text(struct prb_str *s, const char *text, size_t length)
{
	size_t rest = length;

	while (rest >= 0x80) {
		prb_str_putc(s, (char)(0x80 | (rest & 0x7f)));
		rest >>= 7;
	}
	prb_str_putc(s, (char)rest);
	prb_str_append(s, text, length);
}

static void put_lead(const struct prb_row_place *place, const struct prb_ring_item *row,
		     struct prb_str *s)
{
	const double time = (double)row->time / 1e9;
	const bool ranked = place->rank >= 0 && place->rank <= INT32_MAX;

	put_text(s, place->job, strlen(place->job));
	put_text(s, place->host, strlen(place->host));
	PUT(s, place->uid);
	prb_str_putc(s, !ranked);
	if (ranked)
		PUT(s, (int32_t)place->rank);
	prb_str_putc(s, !place->role);
	if (place->role)
		put_text(s, place->role, strlen(place->role));
	PUT(s, row->pid);
	PUT(s, row->tid);
	PUT(s, time);
	PUT(s, place->ring);
	PUT(s, row->number);
	PUT(s, place->day);
}

void prb_table_put_row(const struct prb_clickhouse_table *table,
		       const struct prb_table_places *places, const struct prb_row_place *place,
		       const struct prb_ring_column *columns, uint32_t count,
		       const struct prb_ring_item *row, struct prb_str *s)
{
	uint8_t from[PRB_TABLE_COLUMNS];

	memset(from, PRB_TABLE_NOT_THERE, table->columns.count);
	for (uint32_t i = 0; i < count; i++)
		if (places->of[i] != PRB_TABLE_NOT_THERE)
			from[places->of[i]] = (uint8_t)i;
	put_lead(place, row, s);
	for (size_t i = 0; i < table->columns.count; i++) {
		bool null = from[i] == PRB_TABLE_NOT_THERE || row->nulls >> from[i] & 1;

		prb_str_putc(s, null);
		if (null)
			continue;
		if (columns[from[i]].type == PRB_RING_TEXT)
			put_text(s, row->texts[from[i]], row->lengths[from[i]]);
		else
			prb_str_append(s, &row->cells[from[i]], sizeof(uint64_t));
	}
}
