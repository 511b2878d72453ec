/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/ring_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "rings/files.h"
#include "rings/history.h"
#include "sql/engine/instant.h"
#include "sql/engine/ring_tables.h"
#include "target/recorded/recorded.h"

/** The state of a scan from page to page. */
struct progress {
	struct prb_ring_files files;
	size_t next; /**< index in `files` */
	struct prb_ring *ring;
	bool foreign; /**< the ring belongs to the process that the target was forked from */
	struct prb_ring_range asked; /**< what the statement asks for */
	struct prb_ring_range range; /**< what of it counts in the present ring */
	struct prb_history history;
	/** The ring's column for each of the table's, or -1. */
	int8_t own[PRB_RING_TABLE_COLUMNS];
	bool found; /**< a ring of the table was found */
};

static void end(void *state)
{
	struct progress *progress = state;

	prb_ring_close(progress->ring);
	prb_ring_files_deinit(&progress->files);
	free(progress);
}

static const struct prb_ring_table *table_of(const struct prb_scan *scan)
{
	return (const struct prb_ring_table *)scan->table;
}

/** Seconds in nanoseconds; limited to the range of the type. */
static int64_t nanoseconds(double seconds)
{
	double ns = seconds * 1e9;

	return ns <= (double)INT64_MIN	 ? INT64_MIN
	       : ns >= (double)INT64_MAX ? INT64_MAX
					 : (int64_t)ns;
}

/** The time range of the statement, a little wider: SQLite compares again. */
static void find_range(const struct prb_scan *scan, struct prb_ring_range *ret)
{
	static const double slack = 1e-6;
	double from = -INFINITY, to = INFINITY;

	*ret = (struct prb_ring_range)PRB_RING_ALWAYS;
	prb_scan_range(scan, PRB_RING_TABLE_TIME, &from, &to);
	if (isfinite(from))
		ret->from = nanoseconds(from - slack);
	if (isfinite(to))
		ret->to = nanoseconds(to + slack);
}

static struct prb_error *begin(struct prb_scan *scan)
{
	struct progress *progress = calloc(1, sizeof(*progress));

	if (!progress)
		return prb_error_nomem();
	scan->state = progress;
	scan->end = end;
	find_range(scan, &progress->asked);
	PRB_TRY(prb_ring_files_find(prb_instant_target(scan->instant), &progress->files));
	if (!table_of(scan)->history)
		return NULL;
	return prb_history_find(&progress->files, table_of(scan)->source_schema,
				table_of(scan)->source_name, &progress->history);
}

/** The level of the ring in the table's history, 0 for its own ring; -1: of another table. */
static int level_of(const struct prb_ring_table *table, const struct prb_ring *ring)
{
	int level = prb_history_level(&ring->header, table->source_schema, table->source_name);

	return level > 0 && !table->history ? -1 : level;
}

static bool has_columns(const struct prb_ring_table *table, const struct prb_ring *ring, int level)
{
	if (level > 0)
		return true;
	return table->own_count == ring->header.column_count &&
	       !memcmp(table->own, ring->columns, table->own_count * sizeof(*table->own));
}

/** Finds the ring's column for each of the table. Sets the mask of the used ones: bit N is column
 * N. */
static void find_columns(const struct prb_scan *scan, struct progress *progress,
			 struct prb_ring *ring)
{
	const struct prb_ring_table *table = table_of(scan);

	ring->wanted = table->filter < 0 ? 0 : 1u << table->filter;
	for (unsigned i = 0; table->columns[i].name; i++) {
		const struct prb_ring_column *column;

		progress->own[i] = -1;
		if (table->from[i] < PRB_RING_TABLE_LEAD || !prb_scan_wants(scan, i))
			continue;
		column = &table->own[table->from[i] - PRB_RING_TABLE_LEAD];
		progress->own[i] = (int8_t)prb_ring_column(ring, column->name, column->type);
		if (progress->own[i] >= 0)
			ring->wanted |= 1u << progress->own[i];
	}
}

/** The times that the statement asks for, of those that count in a ring of that level. */
static struct prb_ring_range range_of(const struct prb_ring_table *table,
				      const struct progress *progress, int level)
{
	struct prb_ring_range range = progress->asked;

	if (table->history) {
		range.from = PRB_MAX(range.from, progress->history.levels[level].from);
		range.to = PRB_MIN(range.to, progress->history.levels[level].to);
	}
	return range;
}

/** Opens the next ring of the table; `ring` stays NULL after the last. */
static struct prb_error *open_next(struct prb_scan *scan, struct progress *progress)
{
	const struct prb_ring_table *table = table_of(scan);

	while (!progress->ring && progress->next < progress->files.list.count) {
		prb_auto_ring struct prb_ring *ring = NULL;
		struct prb_error *err =
			prb_ring_files_open(&progress->files, progress->next++, &ring);
		int level;

		if (err && (progress->files.list.count == 1 || err->code == PRB_ERROR_NOMEM))
			return err;
		if (err)
			prb_scan_note(scan, "%s", err->message);
		prb_error_destroy(err);
		level = err ? -1 : level_of(table, ring);
		if (level < 0)
			continue;
		if (!has_columns(table, ring, level))
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"%s.%s has other columns in %s than in the ring "
						"before it",
						table->schema, table->name, ring->path);
		find_columns(scan, progress, ring);
		progress->range = range_of(table, progress, level);
		progress->foreign = prb_ring_files_foreign(&progress->files, ring);
		progress->found = true;
		progress->ring = prb_steal(&ring);
	}
	return NULL;
}

static void put_own(struct prb_scan *scan, unsigned column, const struct prb_ring *ring,
		    const struct prb_ring_item *row, unsigned own)
{
	double real;

	if (row->nulls >> own & 1)
		return;
	if (ring->columns[own].type == PRB_RING_TEXT) {
		prb_put_bytes(scan, column, row->texts[own], row->lengths[own]);
	} else if (ring->columns[own].type == PRB_RING_REAL) {
		memcpy(&real, &row->cells[own], sizeof(real));
		prb_put_real(scan, column, real);
	} else {
		prb_put_integer(scan, column, (int64_t)row->cells[own]);
	}
}

static void put(struct prb_scan *scan, const struct progress *progress,
		const struct prb_ring_item *row)
{
	const struct prb_ring_table *table = table_of(scan);
	const struct prb_ring *ring = progress->ring;

	for (unsigned i = 0; table->columns[i].name; i++) {
		if (!prb_scan_wants(scan, i))
			continue;
		switch (table->from[i]) {
		case PRB_RING_TABLE_TIME:
			prb_put_real(scan, i, (double)row->time / 1e9);
			break;
		case PRB_RING_TABLE_PID:
			prb_put_integer(scan, i, row->pid);
			break;
		case PRB_RING_TABLE_TID:
			prb_put_integer(scan, i, row->tid);
			break;
		case PRB_RING_TABLE_RANK:
			if (ring->header.rank)
				prb_put_integer(scan, i, ring->header.rank - 1);
			break;
		case PRB_RING_TABLE_ROLE:
			prb_put_text(scan, i, prb_ring_role(ring));
			break;
		default:
			if (progress->own[i] >= 0)
				put_own(scan, i, ring, row, (unsigned)progress->own[i]);
			else if (table->history && i == table->steps)
				prb_put_integer(scan, i, 1);
		}
	}
}

static bool is_meant(const struct prb_scan *scan, const struct progress *progress,
		     const struct prb_ring_item *row)
{
	const struct prb_ring_table *table = table_of(scan);
	int filter = table->filter;

	if (row->time < progress->range.from || row->time > progress->range.to)
		return false;
	if (progress->foreign && row->pid != progress->files.pid)
		return false;
	return filter < 0 ||
	       (!(row->nulls >> filter & 1) && row->lengths[filter] == strlen(table->value) &&
		!memcmp(row->texts[filter], table->value, row->lengths[filter]));
}

/** Reports missing rows, like 'probing ring'. */
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

/** Appends rows of the present ring until the page is full or the ring ends; then closes it. */
static struct prb_error *scan_ring(struct prb_scan *scan, struct progress *progress)
{
	struct prb_ring *ring = progress->ring;
	struct prb_ring_item row;
	bool more;

	for (;;) {
		if (prb_scan_full(scan)) {
			scan->more = true;
			return NULL;
		}
		if (prb_ring_next_row(ring, &row)) {
			if (!is_meant(scan, progress, &row))
				continue;
			PRB_TRY(prb_scan_row(scan));
			put(scan, progress, &row);
			continue;
		}
		PRB_TRY(prb_scan_check(scan));
		PRB_TRY(prb_ring_next_chunk(ring, &progress->range, &more));
		if (!more)
			break;
	}
	note_missing(scan, ring);
	PRB_TRY(prb_ring_files_ended(&progress->files, ring));
	prb_ring_close(prb_steal(&progress->ring));
	return NULL;
}

/** Among several targets some may lack such a ring; for a single target that is an error. */
static struct prb_error *no_ring(const struct prb_scan *scan, const struct progress *progress)
{
	const struct prb_table *spec = scan->table;
	const struct prb_collected *known = prb_collected_find(spec->schema, spec->name);
	struct prb_error *err;

	if (progress->files.unreadable)
		err = prb_error_create(PRB_ERROR_FAILED, "no ring of %s.%s can be read: %s",
				       spec->schema, spec->name,
				       progress->files.why ? progress->files.why : "no memory");
	else
		err = prb_error_create(PRB_ERROR_UNSUPPORTED, "nothing records %s.%s here",
				       spec->schema, spec->name);
	return known ? prb_error_hint(err, "%s", known->start) : err;
}

struct prb_error *prb_ring_scan(struct prb_scan *scan)
{
	struct progress *progress;

	if (!scan->state)
		PRB_TRY(begin(scan));
	progress = scan->state;
	while (!scan->more) {
		PRB_TRY(open_next(scan, progress));
		if (!progress->ring)
			break;
		PRB_TRY(scan_ring(scan, progress));
	}
	/* A ring given by its path may belong to another table. */
	if (!progress->found && !scan->more &&
	    !prb_recorded_ring(prb_instant_target(scan->instant)))
		return no_ring(scan, progress);
	if (progress->files.unreadable)
		prb_scan_note(scan, "%u rings cannot be read: %s", progress->files.unreadable,
			      progress->files.why ? progress->files.why : "no memory");
	return NULL;
}
