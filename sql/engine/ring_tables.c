/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of tables of rings; ring_scan.c has their rows. */
#include "sql/engine/ring_tables.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "rings/files.h"
#include "rings/history.h"
#include "sql/engine/ring_scan.h"
#include "sql/engine/session_private.h"
#include "sql/engine/table_sources.h"

/* Schemas allowed for a program's tables. */
static const char *const schemas[] = {"user", "python", "main"};

static const struct prb_column lead[PRB_RING_TABLE_LEAD] = {
	[PRB_RING_TABLE_TIME] = {"timestamp", PRB_COLUMN_REAL,
				 "When the row was written, in seconds since the epoch", "s",
				 .flags = PRB_COLUMN_TIME | PRB_COLUMN_KEY | PRB_COLUMN_RANGE},
	[PRB_RING_TABLE_PID] = {"pid", PRB_COLUMN_INTEGER, "Process that wrote it"},
	[PRB_RING_TABLE_TID] = {"tid", PRB_COLUMN_INTEGER, "Thread that wrote it"},
	[PRB_RING_TABLE_RANK] = {"rank", PRB_COLUMN_INTEGER,
				 "Rank of the process in its job; NULL if it has none"},
	[PRB_RING_TABLE_ROLE] = {"role", PRB_COLUMN_TEXT,
				 "What probing.set_role() says; NULL if nothing"},
};

/** Names from files are used in SQL that we write, so only identifiers are allowed. */
static bool is_name(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return !*text;
}

/** A ring's own column may replace these. */
static bool may_be_hidden(unsigned column)
{
	return column == PRB_RING_TABLE_RANK || column == PRB_RING_TABLE_ROLE;
}

/** True if column @p index has a valid name that no column before it has. */
static bool is_column_name(const struct prb_ring *ring, uint32_t index)
{
	const char *name = ring->columns[index].name;
	bool taken = false;

	for (unsigned i = 0; i < PRB_RING_TABLE_LEAD; i++)
		taken |= !may_be_hidden(i) && !strcasecmp(lead[i].name, name);
	for (uint32_t i = 0; i < index; i++)
		taken |= !strcasecmp(ring->columns[i].name, name);
	return is_name(name) && !taken && strncasecmp(name, "_target", 8) != 0 &&
	       strncasecmp(name, "_pid", 5) != 0 && strncasecmp(name, "_rank", 6) != 0;
}

static struct prb_error *check_names(const struct prb_ring *ring)
{
	const struct prb_ring_header *h = &ring->header;
	const struct prb_collected *view = prb_collected_find(h->schema, h->name);
	bool known = false;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(schemas); i++)
		known |= !strcmp(schemas[i], h->schema);
	for (uint32_t i = 0; known && i < h->column_count; i++)
		known = is_column_name(ring, i);
	if (known && is_name(h->name) && !prb_table_find(h->schema, h->name) &&
	    !(view && view->source_name))
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
					       "SQL cannot have the table or a column of %s",
					       ring->path),
			      "its schema has to be user, python or main; 'probing ring FILE' "
			      "prints the rows");
}

static const char *doc_of(const struct prb_collected *known, const char *column)
{
	if (known)
		for (const struct prb_collected_column *c = known->columns; c->name; c++)
			if (!strcmp(c->name, column))
				return c->doc;
	return "Written by the program";
}

static enum prb_column_type type_of(const struct prb_ring_column *column)
{
	static const enum prb_column_type types[PRB_RING_TYPES] = {
		[PRB_RING_INTEGER] = PRB_COLUMN_INTEGER,
		[PRB_RING_REAL] = PRB_COLUMN_REAL,
		[PRB_RING_TEXT] = PRB_COLUMN_TEXT,
	};

	return types[column->type];
}

/** Index of the ring's column @p name, or -1. */
static int find_own(const struct prb_ring_table *table, const char *name)
{
	for (uint32_t i = 0; i < table->own_count; i++)
		if (!strcasecmp(table->own[i].name, name))
			return (int)i;
	return -1;
}

static struct prb_ring_table *begin_table(const struct prb_ring *ring)
{
	struct prb_ring_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	memcpy(table->source_schema, ring->header.schema, sizeof(table->source_schema));
	memcpy(table->source_name, ring->header.name, sizeof(table->source_name));
	table->own_count = ring->header.column_count;
	memcpy(table->own, ring->columns, table->own_count * sizeof(*table->own));
	table->filter = -1;
	return table;
}

static void end_table(struct prb_ring_table *table, const char *schema, const char *name,
		      const char *doc)
{
	snprintf(table->schema, sizeof(table->schema), "%s", schema);
	snprintf(table->name, sizeof(table->name), "%s", name);
	table->spec = (struct prb_table){
		.schema = table->schema,
		.name = table->name,
		.doc = doc,
		.columns = table->columns,
		.flags = PRB_TABLE_COSTLY | PRB_TABLE_LONG,
		.rows = 100000,
		.scan = prb_ring_scan,
	};
}

static unsigned add_lead(struct prb_ring_table *table, bool is_view)
{
	unsigned count = 0;

	for (unsigned i = 0; i < PRB_RING_TABLE_LEAD; i++) {
		if (!is_view && find_own(table, lead[i].name) >= 0)
			continue;
		table->columns[count] = lead[i];
		table->from[count++] = (uint8_t)i;
	}
	return count;
}

/** A column "steps" is a number; X_min and X_max are of column X. False: there is no X. */
static bool describe_history(const struct prb_ring_table *table, const char *name,
			     struct prb_ring_column *ret)
{
	char of[PRB_RING_NAME];
	int own;

	snprintf(of, sizeof(of), "%.*s", (int)strlen(name) - (int)strlen("_min"), name);
	own = find_own(table, of);
	*ret = (struct prb_ring_column){.type = PRB_RING_INTEGER};
	if (own >= 0)
		*ret = table->own[own];
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	return own >= 0 || !strcmp(name, "steps");
}

/** Adds the columns that rows of the table's history have beside those of the ring. */
static void add_history(struct prb_ring_table *table, const struct prb_collected *known,
			unsigned count)
{
	uint32_t place = table->own_count;

	for (const struct prb_collected_column *c = known->columns; c->name; c++) {
		struct prb_ring_column *own = &table->own[place];

		if (find_own(table, c->name) >= 0 || place == PRB_ARRAY_SIZE(table->own) ||
		    !describe_history(table, c->name, own))
			continue;
		if (own->type == PRB_RING_INTEGER)
			table->steps = count;
		table->columns[count] = (struct prb_column){
			.name = own->name,
			.type = type_of(own),
			.doc = c->doc,
			.unit = *own->unit ? own->unit : NULL,
			.flags = own->type == PRB_RING_INTEGER ? 0 : PRB_COLUMN_HIDDEN,
		};
		table->from[count++] = (uint8_t)(PRB_RING_TABLE_LEAD + place++);
	}
	table->history = true;
}

static struct prb_ring_table *create(const struct prb_ring *ring)
{
	const struct prb_collected *known =
		prb_collected_find(ring->header.schema, ring->header.name);
	struct prb_ring_table *table = begin_table(ring);
	unsigned count;

	if (!table)
		return NULL;
	count = add_lead(table, false);
	for (uint32_t i = 0; i < table->own_count; i++, count++) {
		const struct prb_ring_column *own = &table->own[i];

		table->columns[count] = (struct prb_column){
			.name = own->name,
			.type = type_of(own),
			.doc = doc_of(known, own->name),
			.unit = *own->unit ? own->unit : NULL,
		};
		table->from[count] = (uint8_t)(PRB_RING_TABLE_LEAD + i);
	}
	if (known && known->history)
		add_history(table, known, count);
	end_table(table, ring->header.schema, ring->header.name,
		  known ? known->doc : "Rows of a ring");
	return table;
}

/** *ret is NULL if the ring lacks one of the view's columns. */
static struct prb_error *create_view(const struct prb_ring *ring, const struct prb_collected *view,
				     struct prb_ring_table **ret)
{
	prb_auto_free struct prb_ring_table *table = begin_table(ring);
	unsigned count;

	*ret = NULL;
	if (!table)
		return prb_error_nomem();
	count = add_lead(table, true);
	for (const struct prb_collected_column *c = view->columns; c->name; c++, count++) {
		int own = find_own(table, c->source);

		if (own < 0)
			return NULL;
		table->columns[count] = (struct prb_column){
			.name = c->name,
			.type = type_of(&table->own[own]),
			.doc = c->doc,
			.unit = c->unit,
		};
		table->from[count] = (uint8_t)(PRB_RING_TABLE_LEAD + own);
	}
	table->filter = view->filter ? find_own(table, view->filter) : -1;
	table->value = view->value;
	if (view->filter && (table->filter < 0 || table->own[table->filter].type != PRB_RING_TEXT))
		return NULL;
	end_table(table, view->schema, view->name, view->doc);
	*ret = prb_steal(&table);
	return NULL;
}

static const struct prb_table *find(const struct prb_session *session, const char *schema,
				    const char *name)
{
	struct prb_ring_table **table;

	prb_vec_each (table, &session->rings)
		if (!strcasecmp((*table)->schema, schema) && !strcasecmp((*table)->name, name))
			return &(*table)->spec;
	return NULL;
}

static struct prb_error *push(struct prb_ring_tables *tables, struct prb_ring_table *table)
{
	struct prb_ring_table **place = table ? prb_vec_push(tables) : NULL;

	if (!place) {
		free(table);
		return prb_error_nomem();
	}
	*place = table;
	return NULL;
}

/** True for a ring that is read as older rows of another table. */
static bool is_of_history(const struct prb_ring_header *header)
{
	for (const struct prb_collected *c = prb_collected_tables; c->name; c++)
		if (c->history && prb_history_level(header, c->schema, c->name) > 0)
			return true;
	return false;
}

static struct prb_error *add_ring(struct prb_session *session, const struct prb_ring *ring)
{
	const struct prb_ring_header *h = &ring->header;

	PRB_TRY(check_names(ring));
	if (is_of_history(h))
		return NULL;
	if (find(session, h->schema, h->name))
		return NULL;
	PRB_TRY(push(&session->rings, create(ring)));
	for (const struct prb_collected *v = prb_collected_tables; v->name; v++) {
		struct prb_ring_table *table;

		if (!v->source_name || strcmp(v->source_schema, h->schema) != 0 ||
		    strcmp(v->source_name, h->name) != 0)
			continue;
		PRB_TRY(create_view(ring, v, &table));
		if (table)
			PRB_TRY(push(&session->rings, table));
	}
	return NULL;
}

static struct prb_error *add_file(struct prb_session *session, struct prb_ring_files *files,
				  size_t index)
{
	prb_auto_ring struct prb_ring *ring = NULL;

	PRB_TRY(prb_ring_files_open(files, index, &ring));
	return add_ring(session, ring);
}

static struct prb_error *add_all(struct prb_session *session, struct prb_ring_files *files)
{
	for (size_t i = 0; i < files->list.count; i++) {
		struct prb_error *err = add_file(session, files, i);

		if (err && (files->list.count == 1 || err->code == PRB_ERROR_NOMEM))
			return err;
		if (err)
			prb_session_warn(session, err->message);
		prb_error_destroy(err);
	}
	if (files->unreadable) {
		prb_auto_free char *text =
			prb_format("%u rings cannot be read: %s", files->unreadable,
				   files->why ? files->why : "no memory");

		if (!text)
			return prb_error_nomem();
		prb_session_warn(session, text);
	}
	return NULL;
}

struct prb_error *prb_ring_tables_add(struct prb_session *session, struct prb_target *target)
{
	struct prb_ring_files files = {};
	struct prb_error *err = prb_ring_files_find(target, &files);

	if (!err)
		err = add_all(session, &files);
	prb_ring_files_deinit(&files);
	return err;
}

static struct prb_error *look(struct prb_session *session)
{
	struct prb_session_target *t;

	prb_vec_each (t, &session->targets) {
		struct prb_error *err = prb_ring_tables_add(session, t->target);

		/* Not an error here: an ended process reports it when its rows are read. */
		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		if (err)
			prb_session_warn(session, err->message);
		prb_error_destroy(err);
	}
	return NULL;
}

static void deinit(struct prb_session *session)
{
	struct prb_ring_table **table;

	prb_vec_each (table, &session->rings)
		free(*table);
	prb_vec_free(&session->rings);
}

static size_t count(const struct prb_session *session)
{
	return session->rings.count;
}

static const struct prb_table *at(const struct prb_session *session, size_t index)
{
	return &session->rings.items[index]->spec;
}

const struct prb_table_source prb_ring_source = {
	.find = find,
	.count = count,
	.at = at,
	.look = look,
	.deinit = deinit,
};
