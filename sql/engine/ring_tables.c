/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/ring_tables.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "records/ring.h"
#include "sql/engine/instant.h"
#include "target/recorded/recorded.h"

/* Schemas that a program's tables may be in. */
static const char *const schemas[] = {"user", "python", "main"};

static const struct prb_column lead[PRB_RING_TABLE_LEAD] = {
	[PRB_RING_TABLE_TIME] = {"timestamp", PRB_COLUMN_REAL,
				 "When the row was written, in seconds since the epoch", "s",
				 .flags = PRB_COLUMN_TIME},
	[PRB_RING_TABLE_PID] = {"pid", PRB_COLUMN_INTEGER, "Process that wrote it"},
	[PRB_RING_TABLE_TID] = {"tid", PRB_COLUMN_INTEGER, "Thread that wrote it"},
};

static struct prb_error *open_ring(const char *path, struct prb_ring **ret)
{
	int fd;

	PRB_TRY(prb_file_open(-1, path, &fd));
	return prb_ring_open(fd, path, ret);
}

/** The names stand in statements of ours: no file may put more than a name there. */
static bool is_name(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return !*text;
}

/** True if the name of column @p index is one, and no column before it has it. */
static bool is_column_name(const struct prb_ring *ring, uint32_t index)
{
	const char *name = ring->columns[index].name;
	bool taken = false;

	for (size_t i = 0; i < PRB_RING_TABLE_LEAD; i++)
		taken |= !strcasecmp(lead[i].name, name);
	for (uint32_t i = 0; i < index; i++)
		taken |= !strcasecmp(ring->columns[i].name, name);
	return is_name(name) && !taken && strncasecmp(name, "_target", 8) != 0 &&
	       strncasecmp(name, "_pid", 5) != 0 && strncasecmp(name, "_rank", 6) != 0;
}

static struct prb_error *check_names(const struct prb_ring *ring)
{
	const struct prb_ring_header *h = &ring->header;
	bool known = false;

	for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++)
		known |= !strcmp(schemas[i], h->schema);
	for (uint32_t i = 0; known && i < h->column_count; i++)
		known = is_column_name(ring, i);
	if (known && is_name(h->name) && !prb_table_find(h->schema, h->name))
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
					       "SQL cannot have the table or a column of %s",
					       ring->path),
			      "its schema has to be user, python or main; 'probing ring FILE' "
			      "prints the rows");
}

static bool has_name(const struct prb_ring *ring, const char *schema, const char *name)
{
	return !strcasecmp(schema, ring->header.schema) && !strcasecmp(name, ring->header.name);
}

static bool has_columns(const struct prb_ring_table *table, const struct prb_ring *ring)
{
	uint32_t count = ring->header.column_count;

	return !table->columns[PRB_RING_TABLE_LEAD + count].name &&
	       !memcmp(table->own, ring->columns, count * sizeof(*table->own));
}

static void put(struct prb_scan *scan, const struct prb_ring *ring, const struct prb_ring_item *row)
{
	prb_put_real(scan, PRB_RING_TABLE_TIME, (double)row->time / 1e9);
	prb_put_integer(scan, PRB_RING_TABLE_PID, row->pid);
	prb_put_integer(scan, PRB_RING_TABLE_TID, row->tid);
	for (unsigned i = 0; i < ring->header.column_count; i++) {
		unsigned column = PRB_RING_TABLE_LEAD + i;
		double real;

		if (row->nulls >> i & 1)
			continue;
		if (ring->columns[i].type == PRB_RING_TEXT) {
			prb_put_bytes(scan, column, row->texts[i], row->lengths[i]);
		} else if (ring->columns[i].type == PRB_RING_REAL) {
			memcpy(&real, &row->cells[i], sizeof(real));
			prb_put_real(scan, column, real);
		} else {
			prb_put_integer(scan, column, (int64_t)row->cells[i]);
		}
	}
}

static void end(void *state)
{
	prb_ring_close(state);
}

static struct prb_error *begin(struct prb_scan *scan)
{
	const struct prb_table *spec = scan->table;
	const char *path = prb_recorded_ring(prb_instant_target(scan->instant));
	struct prb_ring *ring;

	if (!path)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the table %s.%s is in rings, and this target is none",
					spec->schema, spec->name);
	PRB_TRY(open_ring(path, &ring));
	scan->state = ring;
	scan->end = end;
	if (has_name(ring, spec->schema, spec->name) &&
	    !has_columns((const struct prb_ring_table *)spec, ring))
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"%s.%s has other columns in %s than in the ring before it",
					spec->schema, spec->name, path);
	return NULL;
}

/** What is not among the rows is said, as 'probing ring' says it. */
static void note_missing(struct prb_scan *scan, const struct prb_ring *ring)
{
	if (ring->header.lost)
		prb_scan_note(scan, "%s: %llu rows could not be written", ring->path,
			      (unsigned long long)ring->header.lost);
	if (ring->missing)
		prb_scan_note(scan, "%s: the file was cut: %llu slots are missing", ring->path,
			      (unsigned long long)ring->missing);
	if (ring->damaged)
		prb_scan_note(scan, "%s: %llu damaged rows are left out", ring->path,
			      (unsigned long long)ring->damaged);
	if (ring->overtaken)
		prb_scan_note(scan, "%s: %llu chunks were overwritten while they were read",
			      ring->path, (unsigned long long)ring->overtaken);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	static const struct prb_ring_range always = PRB_RING_ALWAYS;
	struct prb_ring_item row;
	struct prb_ring *ring;
	bool more;

	if (!scan->state)
		PRB_TRY(begin(scan));
	ring = scan->state;
	while (has_name(ring, scan->table->schema, scan->table->name)) {
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		if (prb_ring_next_row(ring, &row)) {
			PRB_TRY(prb_scan_row(scan));
			put(scan, ring, &row);
			continue;
		}
		PRB_TRY(prb_ring_next_chunk(ring, &always, &more));
		if (!more)
			break;
	}
	note_missing(scan, ring);
	return NULL;
}

static struct prb_ring_table *create(const struct prb_ring *ring)
{
	static const enum prb_column_type types[PRB_RING_TYPES] = {
		[PRB_RING_INTEGER] = PRB_COLUMN_INTEGER,
		[PRB_RING_REAL] = PRB_COLUMN_REAL,
		[PRB_RING_TEXT] = PRB_COLUMN_TEXT,
	};
	struct prb_ring_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	memcpy(table->schema, ring->header.schema, sizeof(table->schema));
	memcpy(table->name, ring->header.name, sizeof(table->name));
	memcpy(table->own, ring->columns, ring->header.column_count * sizeof(*table->own));
	memcpy(table->columns, lead, sizeof(lead));
	for (uint32_t i = 0; i < ring->header.column_count; i++) {
		const struct prb_ring_column *own = &table->own[i];

		table->columns[PRB_RING_TABLE_LEAD + i] = (struct prb_column){
			.name = own->name,
			.type = types[own->type],
			.doc = "Written by the program",
			.unit = *own->unit ? own->unit : NULL,
		};
	}
	table->spec = (struct prb_table){
		.schema = table->schema,
		.name = table->name,
		.doc = "Rows of a ring",
		.columns = table->columns,
		.flags = PRB_TABLE_COSTLY,
		.rows = 100000,
		.scan = scan,
	};
	return table;
}

struct prb_error *prb_ring_tables_add(struct prb_ring_tables *tables,
				      const struct prb_target *target)
{
	const char *path = prb_recorded_ring(target);
	prb_auto_ring struct prb_ring *ring = NULL;
	struct prb_ring_table **place;

	if (!path)
		return NULL;
	PRB_TRY(open_ring(path, &ring));
	PRB_TRY(check_names(ring));
	if (prb_ring_tables_find(tables, ring->header.schema, ring->header.name))
		return NULL;
	place = prb_vec_push(tables);
	if (!place)
		return prb_error_nomem();
	*place = create(ring);
	if (*place)
		return NULL;
	tables->count--;
	return prb_error_nomem();
}

void prb_ring_tables_free(struct prb_ring_tables *tables)
{
	struct prb_ring_table **table;

	prb_vec_each (table, tables)
		free(*table);
	prb_vec_free(tables);
}

const struct prb_table *prb_ring_tables_find(const struct prb_ring_tables *tables,
					     const char *schema, const char *name)
{
	struct prb_ring_table **table;

	prb_vec_each (table, tables)
		if (!strcasecmp((*table)->schema, schema) && !strcasecmp((*table)->name, name))
			return &(*table)->spec;
	return NULL;
}
