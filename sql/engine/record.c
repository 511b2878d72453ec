/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/record.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/engine/page.h"
#include "sql/engine/session_private.h"

/** The columns that are recorded, as a mask. */
static uint64_t recorded_columns(const struct prb_table *table, unsigned *count)
{
	uint64_t used = 0;

	for (*count = 0; table->columns[*count].name; ++*count)
		if (!(table->columns[*count].flags & PRB_COLUMN_COSTLY))
			used |= 1ULL << PRB_MIN(*count, 63u);
	return used;
}

static struct prb_error *scan_all(struct prb_scan *scan)
{
	do {
		prb_page_clear(scan->page);
		scan->more = false;
		PRB_TRY(scan->table->scan(scan));
	} while (scan->more);
	return NULL;
}

static struct prb_error *record_table(struct prb_session *session, struct prb_instant *instant,
				      const struct prb_table *table)
{
	struct prb_scan scan = {.table = table, .instant = instant, .session = session};
	unsigned count;
	struct prb_error *err;

	scan.used = recorded_columns(table, &count);
	PRB_TRY(prb_page_create(count, scan.used, &scan.page));
	err = scan_all(&scan);
	prb_scan_end(&scan);
	prb_page_release(scan.page);
	return err;
}

/* Costly tables of objects are recorded only with @p heap. */
static bool is_recorded(const struct prb_table *table, bool heap)
{
	if (table->flags & PRB_TABLE_GLOBAL)
		return false;
	return !(table->flags & PRB_TABLE_COSTLY) || (heap && !strcmp(table->schema, "python"));
}

/** Records the tables that show the dump, or the others. */
static void record_tables(struct prb_session *session, struct prb_instant *instant, bool of_dump,
			  bool heap)
{
	/* Warnings appear when the table is read from the snapshot. */
	prb_warning_handler *warn = prb_steal(&session->warn);

	for (const struct prb_table *const *t = prb_tables; *t; t++) {
		prb_auto_error struct prb_error *err = NULL;

		if (is_recorded(*t, heap) && ((*t)->needs != 0) == of_dump)
			err = record_table(session, instant, *t);
	}
	session->warn = warn;
}

/* Types of what all objects hold. Reading a type reads the page of the object. */
static const char *const of_objects[] = {
	"SELECT count(a.type) FROM python.objects o, python.attributes a "
	"WHERE a.address = o.address",
	"SELECT count(i.type), count(i.key) FROM python.objects o, python.items i "
	"WHERE i.address = o.address",
	/* A census of all objects, including those that the collector does not track. */
	"SELECT count(*) FROM torch.tensors",
};

static struct prb_error *run_to_end(struct prb_session *session, const char *sql)
{
	struct prb_statement *statement;
	struct prb_error *err = NULL;
	size_t at = 0;
	bool row = true;

	PRB_TRY(prb_session_prepare(session, sql, strlen(sql), &at, &statement));
	while (row && !err)
		err = prb_statement_next(statement, &row);
	prb_statement_destroy(statement);
	return err;
}

static void record_held_objects(struct prb_session *session)
{
	prb_warning_handler *warn = prb_steal(&session->warn);
	const enum prb_dump_mode mode = session->mode;

	/*
	 * Millions of objects cannot be of one instant; all are read through the statement's view,
	 * whose pages are noted.
	 */
	prb_session_set_mode(session, PRB_DUMP_NONBLOCKING);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(of_objects); i++)
		prb_error_destroy(run_to_end(session, of_objects[i]));
	prb_session_set_mode(session, mode);
	session->warn = warn;
}

struct prb_error *prb_record(struct prb_session *session, enum prb_record_values values,
			     size_t *ret_threads)
{
	const bool heap = values == PRB_RECORD_OBJECTS;
	struct prb_instant *instant;
	const struct prb_dump *dump;

	/* The recorder keeps the later of two readings, so this reading comes first. */
	if (heap)
		record_held_objects(session);
	session->plan = (struct prb_plan){
		.needs = PRB_NEED_THREADS | PRB_NEED_NATIVE | PRB_NEED_SOURCE | PRB_NEED_WAITS |
			 PRB_NEED_IDLE | PRB_NEED_MODULES | PRB_NEED_COMMAND |
			 (values != PRB_RECORD_NO_VALUES ? PRB_NEED_LOCALS | PRB_NEED_VALUES : 0),
		.no_values = values == PRB_RECORD_NO_VALUES,
		.several = true,
		.frames = UINT_MAX,
	};
	PRB_TRY(prb_session_instant(session, 0, &instant));
	/* The recorder keeps the later of two readings, which must be the pages of the dump. */
	record_tables(session, instant, false, heap);
	PRB_TRY(prb_instant_dump(instant, &dump));
	*ret_threads = dump->threads.count;
	record_tables(session, instant, true, heap);
	prb_session_end_instants(session);
	return NULL;
}
