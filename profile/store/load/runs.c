/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The samples of a recording, chunk by chunk. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "profile/store/chunk.h"
#include "profile/store/load/load_private.h"
#include "profile/store/load/row.h"
#include "profile/recording/range.h"

static const int64_t MOST_CHUNKS = INT64_C(1) << 40;

struct prb_load_cursor {
	struct prb_load *load;
	sqlite3_stmt *stmt;
	size_t next;
	bool skips;			      /**< it does not begin with the first chunk */
	PRB_VEC(struct prb_run) runs, inside; /**< inside: the parts in windows */
	int64_t wall, cpu, queue;	      /* of all runs so far */
};

struct prb_error *prb_load_cursor_create(struct prb_load *load, struct prb_load_cursor **ret)
{
	struct prb_load_cursor *cursor = calloc(1, sizeof(*cursor));
	struct prb_error *err;

	if (!cursor)
		return prb_error_nomem();
	cursor->load = load;
	err = prb_load_file_prepare(load->file.db,
				    "SELECT chunk, begin_ns, unit_ns, runs, data FROM chunks "
				    "NOT INDEXED WHERE chunk >= ? ORDER BY chunk",
				    &cursor->stmt);
	if (!err)
		sqlite3_bind_int64(cursor->stmt, 1, INT64_MIN);
	if (err)
		prb_load_cursor_destroy(cursor);
	else
		*ret = cursor;
	return err;
}

void prb_load_cursor_destroy(struct prb_load_cursor *cursor)
{
	if (!cursor)
		return;
	sqlite3_finalize(cursor->stmt);
	prb_vec_free(&cursor->runs);
	prb_vec_free(&cursor->inside);
	free(cursor);
}

void prb_load_cursor_skip(struct prb_load_cursor *cursor, int64_t chunk)
{
	sqlite3_bind_int64(cursor->stmt, 1, chunk);
	cursor->skips = true;
}

int64_t prb_load_cursor_chunk(const struct prb_load_cursor *cursor)
{
	return (int64_t)cursor->next - 1;
}

/* Of the first or last row; -1 if there is none. */
static struct prb_error *number_of(struct prb_load *load, const char *sql, int64_t *ret)
{
	sqlite3_stmt *stmt = NULL;
	struct prb_row row = {.table = "chunks"};
	struct prb_error *err = prb_load_file_prepare(load->file.db, sql, &stmt);
	bool more = false;

	*ret = -1;
	if (!err)
		err = prb_load_file_step(stmt, &more);
	row.stmt = stmt;
	if (!err && more)
		*ret = prb_row_integer(&row, 0, MOST_CHUNKS);
	sqlite3_finalize(stmt);
	return err ? err : row.err;
}

struct prb_error *prb_load_chunks(struct prb_load *load, int64_t *ret_first, int64_t *ret_end)
{
	struct prb_error *err = number_of(
		load, "SELECT chunk FROM chunks NOT INDEXED ORDER BY chunk LIMIT 1", ret_first);

	if (!err)
		err = number_of(load,
				"SELECT chunk FROM chunks NOT INDEXED ORDER BY chunk DESC LIMIT 1",
				ret_end);
	*ret_first = PRB_MAX(*ret_first, 0);
	++*ret_end;
	return prb_error_prefix(err, "%s", load->path);
}

/* All times together are a number, so that no sum of some of them overflows. */
static struct prb_error *add_up(struct prb_load_cursor *c)
{
	struct prb_run *run;

	prb_vec_each (run, &c->runs) {
		if (c->load->renamed)
			run->stack = c->load->renamed[run->stack];
		run->wait_kind = c->load->about->waits.items[run->wait].kind;
		if (__builtin_add_overflow(c->wall, run->wall, &c->wall) ||
		    __builtin_add_overflow(c->cpu, run->cpu, &c->cpu) ||
		    __builtin_add_overflow(c->queue, run->queue, &c->queue) || !run->stack)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"a chunk of samples holds what cannot be");
	}
	return NULL;
}

/* The first window that ends after that moment. */
static size_t find_window(const struct prb_recording *about, int64_t moment)
{
	size_t low = 0, high = about->windows.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (about->windows.items[middle].end <= moment)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Chunks reach beyond the windows for which they were kept; a run may be in several. */
static struct prb_error *keep_windows(struct prb_load_cursor *c)
{
	const struct prb_recording *about = c->load->about;
	const struct prb_run *run;

	c->inside.count = 0;
	prb_vec_each (run, &c->runs) {
		for (size_t i = find_window(about, run->begin);
		     i < about->windows.count &&
		     about->windows.items[i].begin <= run->begin + run->wall;
		     i++) {
			struct prb_run piece, *slot;

			if (!prb_run_inside(run, about->windows.items[i].begin,
					    about->windows.items[i].end, &piece))
				continue;
			slot = prb_vec_push(&c->inside);
			if (!slot)
				return prb_error_nomem();
			*slot = piece;
		}
	}
	return NULL;
}

static struct prb_error *read_chunk(struct prb_load_cursor *c)
{
	struct prb_row row = {.stmt = c->stmt, .table = "chunks"};
	struct prb_recording *about = c->load->about;
	bool first = !c->next;
	struct prb_chunk chunk = {
		.threads = about->threads.count,
		.stacks = c->load->stacks,
		.waits = about->waits.count,
	};

	/* Those of a ring begin with any number, and those outside of windows are gone. */
	if ((first && (about->ring || c->skips)) || about->condition)
		c->next = (size_t)PRB_MAX(sqlite3_column_int64(c->stmt, 0), (sqlite3_int64)c->next);
	prb_row_number(&row, c->next++);
	chunk.begin = prb_row_integer(&row, 0, INT64_MAX);
	if (first && about->ring && c->next > 1)
		c->load->gone = chunk.begin;
	chunk.unit = prb_row_integer(&row, 1, 1000000000);
	chunk.runs = (size_t)prb_row_integer(&row, 1, PRB_CHUNK_MOST_RUNS);
	if (sqlite3_column_type(c->stmt, row.cell) != SQLITE_BLOB)
		prb_row_complain(&row, "has no data");
	if (row.err)
		return row.err;
	c->runs.count = 0;
	if (!prb_vec_reserve(&c->runs, chunk.runs))
		return prb_error_nomem();
	memset(c->runs.items, 0, chunk.runs * sizeof(*c->runs.items));
	PRB_TRY(prb_chunk_decode(&chunk, sqlite3_column_blob(c->stmt, row.cell),
				 (size_t)sqlite3_column_bytes(c->stmt, row.cell), c->runs.items));
	c->runs.count = chunk.runs;
	PRB_TRY(add_up(c));
	return about->condition ? keep_windows(c) : NULL;
}

/* A chunk may have nothing that is in a window. */
static bool is_empty(const struct prb_load_cursor *c)
{
	return c->load->about->condition && !c->inside.count;
}

struct prb_error *prb_load_next(struct prb_load_cursor *c, const struct prb_run **ret,
				size_t *ret_count)
{
	struct prb_error *err;
	bool more;

	*ret_count = 0;
	do {
		err = prb_load_file_step(c->stmt, &more);
		if (!err && more)
			err = read_chunk(c);
	} while (!err && more && is_empty(c));
	if (err)
		return prb_error_prefix(err, "%s", c->load->path);
	if (more) {
		*ret = c->load->about->condition ? c->inside.items : c->runs.items;
		*ret_count = c->load->about->condition ? c->inside.count : c->runs.count;
	}
	return NULL;
}

/* Runs as they come, or one for each thread, stack, state and wait. */
struct collector {
	struct prb_recording *recording;
	bool in_order;
	struct prb_number_map places;  /* numbers of threads and stacks that were met together */
	struct prb_number_map numbers; /* of runs, by such a number, the state and the wait */
	size_t places_count;
};

static struct prb_error *append(struct collector *c, const struct prb_run *run)
{
	struct prb_run *slot = prb_vec_push(&c->recording->runs);

	if (!slot)
		return prb_error_nomem();
	*slot = *run;
	if (!c->in_order) {
		slot->wall_squares = prb_run_wall_squares(run);
		slot->queue_squares = prb_run_queue_squares(run);
	}
	return NULL;
}

static struct prb_error *key_of(struct collector *c, const struct prb_run *run, uint64_t *ret)
{
	uint64_t place = (uint64_t)run->thread << 32 | run->stack;
	size_t number = c->places_count;

	if (!prb_number_map_get(&c->places, place, &number)) {
		if (!prb_number_map_put(&c->places, place, number))
			return prb_error_nomem();
		c->places_count++;
	}
	*ret = (uint64_t)number << 32 | (uint64_t)run->wait << 4 | (unsigned)run->state << 1 |
	       run->gil;
	return NULL;
}

static struct prb_error *merge(struct collector *c, const struct prb_run *run)
{
	size_t number = c->recording->runs.count;
	struct prb_run *into;
	uint64_t key;

	PRB_TRY(key_of(c, run, &key));
	if (!prb_number_map_get(&c->numbers, key, &number)) {
		PRB_TRY(append(c, run));
		return prb_number_map_put(&c->numbers, key, number) ? NULL : prb_error_nomem();
	}
	into = &c->recording->runs.items[number];
	into->samples += run->samples;
	into->reads += run->reads;
	into->wall += run->wall;
	into->cpu += run->cpu;
	into->queue += run->queue;
	into->cpu_squares += run->cpu_squares;
	into->wall_squares += prb_run_wall_squares(run);
	into->queue_squares += prb_run_queue_squares(run);
	return NULL;
}

static struct prb_error *collect(struct collector *c, struct prb_load_cursor *cursor)
{
	const struct prb_run *runs;
	size_t count;

	do {
		PRB_TRY(prb_load_next(cursor, &runs, &count));
		for (size_t i = 0; i < count; i++) {
			PRB_TRY((c->in_order ? append : merge)(c, &runs[i]));
			if (c->recording->condition)
				c->recording->threads.items[runs[i].thread].cpu += runs[i].cpu;
		}
	} while (count);
	return NULL;
}

struct prb_error *prb_load_runs(struct prb_load *load, bool in_order)
{
	struct collector c = {.recording = load->about, .in_order = in_order};
	struct prb_load_cursor *cursor;
	struct prb_error *err;

	PRB_TRY(prb_load_cursor_create(load, &cursor));
	err = collect(&c, cursor);
	prb_number_map_deinit(&c.places);
	prb_number_map_deinit(&c.numbers);
	prb_load_cursor_destroy(cursor);
	return err;
}

/* A ring's length excludes chunks that it has dropped. */
static void settle_ring(const struct prb_load *load)
{
	if (load->gone)
		prb_recording_clip(load->about, load->gone, INT64_MAX);
}

static struct prb_error *take_all(struct prb_load *load, bool in_order, struct prb_recording **ret)
{
	struct prb_error *err = prb_load_runs(load, in_order);

	if (!err)
		settle_ring(load);
	if (!err)
		*ret = prb_steal(&load->about);
	prb_load_destroy(load);
	return err;
}

struct prb_error *prb_profile_load_copy(int fd, struct prb_recording **ret)
{
	struct prb_load *load;

	PRB_TRY(prb_load_open_copy(fd, &load));
	return take_all(load, true, ret);
}

struct prb_error *prb_profile_load(const char *path, bool in_order, struct prb_recording **ret)
{
	return prb_profile_load_view(path, in_order, false, ret);
}

struct prb_error *prb_profile_load_view(const char *path, bool in_order, bool tasks,
					struct prb_recording **ret)
{
	struct prb_load *load;

	PRB_TRY(prb_load_open_view(path, tasks, &load));
	return take_all(load, in_order, ret);
}
