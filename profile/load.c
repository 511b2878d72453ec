/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/load.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "profile/chunk.h"
#include "profile/load_file.h"
#include "profile/schema.h"

enum {
	MOST_THREADS = 1 << 22,
	MOST_ROWS = 1 << 27, /* of functions, frames, stacks and chunks */
	MOST_DEPTH = 1 << 20,
};

/* Frames of all stacks together, which is what formats write. */
static const uint64_t most_frames = 1ull << 30;

struct prb_load {
	char *path;
	struct prb_load_file file;
	struct prb_recording *about;
	int64_t totals_s;
	sqlite3_stmt *chunks;
	int64_t next_chunk;
	PRB_VEC(struct prb_run) runs;
	int64_t wall, cpu, queue; /* of all runs so far */
};

/* One row: cells are taken in order, and what is wrong with the first bad one is kept. */
struct row {
	sqlite3_stmt *stmt;
	int cell;
	const char *table;
	struct prb_error *err;
};

static void complain(struct row *row, const char *what)
{
	if (!row->err)
		row->err =
			prb_error_create(PRB_ERROR_BAD_DATA, "a row of '%s' %s", row->table, what);
}

/* From @p low to @p high. */
static int64_t take_integer(struct row *row, int64_t low, int64_t high)
{
	int64_t value = sqlite3_column_int64(row->stmt, row->cell);

	if (sqlite3_column_type(row->stmt, row->cell++) != SQLITE_INTEGER || value < low ||
	    value > high) {
		complain(row, "has a number that cannot be");
		return low;
	}
	return value;
}

static int64_t take_optional(struct row *row, int64_t otherwise)
{
	if (sqlite3_column_type(row->stmt, row->cell) != SQLITE_NULL)
		return take_integer(row, 0, INT64_MAX);
	row->cell++;
	return otherwise;
}

static uint64_t take_count(struct row *row)
{
	return (uint64_t)take_integer(row, 0, INT64_MAX);
}

static double take_real(struct row *row, double high)
{
	int type = sqlite3_column_type(row->stmt, row->cell);
	double value = sqlite3_column_double(row->stmt, row->cell++);

	if ((type != SQLITE_FLOAT && type != SQLITE_INTEGER) || !(value >= 0 && value <= high)) {
		complain(row, "has a number that cannot be");
		return 0;
	}
	return value;
}

/* Until the next row; NULL for NULL. */
static const char *take_text(struct row *row)
{
	int type = sqlite3_column_type(row->stmt, row->cell);
	const char *text = (const char *)sqlite3_column_text(row->stmt, row->cell++);

	if (type == SQLITE_NULL)
		return NULL;
	if (type != SQLITE_TEXT || !text) {
		complain(row, "has no text where one belongs");
		return NULL;
	}
	return text;
}

/* Rows are numbered without gaps, from 0 or 1 on. */
static void take_number(struct row *row, size_t expected)
{
	if (expected > MOST_ROWS)
		complain(row, "is one too many");
	if (take_integer(row, INT64_MIN, INT64_MAX) != (int64_t)expected)
		complain(row, "is not numbered as they all are");
}

typedef struct prb_error *row_reader(struct prb_load *load, struct row *row);

static struct prb_error *read_rows(struct prb_load *load, const char *table, const char *sql,
				   row_reader *read)
{
	sqlite3_stmt *stmt = NULL;
	struct prb_error *err = prb_load_file_prepare(load->file.db, sql, &stmt);
	bool more = !err;

	while (more) {
		struct row row = {.stmt = stmt, .table = table};

		err = prb_load_file_step(stmt, &more);
		if (!more)
			break;
		err = read(load, &row);
		if (row.err) {
			prb_error_destroy(err);
			err = row.err;
		}
		more = !err;
	}
	sqlite3_finalize(stmt);
	return err;
}

static struct prb_error *read_function(struct prb_load *load, struct row *row)
{
	struct prb_tree *tree = load->about->tree;
	struct prb_tree_function *f = prb_vec_push(&tree->functions);
	const char *kind;

	if (!f)
		return prb_error_nomem();
	take_number(row, tree->functions.count - 1);
	kind = take_text(row);
	if (!kind || !prb_schema_kind_of(kind, &f->kind))
		complain(row, "is of no kind of function");
	PRB_TRY(prb_pool_share(tree->pool, take_text(row), &f->name));
	if (!f->name)
		complain(row, "has no name");
	PRB_TRY(prb_pool_share(tree->pool, take_text(row), &f->file));
	f->first_line = (int32_t)take_integer(row, INT32_MIN, INT32_MAX);
	return NULL;
}

static struct prb_error *read_frame(struct prb_load *load, struct row *row)
{
	struct prb_tree *tree = load->about->tree;
	struct prb_tree_frame *frame = prb_vec_push(&tree->frames);

	if (!frame)
		return prb_error_nomem();
	take_number(row, tree->frames.count - 1);
	frame->function = (uint32_t)take_integer(row, 0, (int64_t)tree->functions.count - 1);
	frame->line = (int32_t)take_integer(row, INT32_MIN, INT32_MAX);
	return NULL;
}

static struct prb_error *read_stack(struct prb_load *load, struct row *row)
{
	struct prb_tree *tree = load->about->tree;
	struct prb_tree_stack *stack = prb_vec_push(&tree->stacks);
	size_t number = tree->stacks.count - 1;

	if (!stack)
		return prb_error_nomem();
	take_number(row, number);
	/* Callers come first, so that no stack is among its own callers. */
	stack->parent = (uint32_t)take_integer(row, 0, (int64_t)number - 1);
	stack->frame = (uint32_t)take_integer(row, 0, (int64_t)tree->frames.count - 1);
	stack->depth = tree->stacks.items[stack->parent].depth + 1;
	if (stack->depth > MOST_DEPTH)
		complain(row, "is too deep");
	return NULL;
}

static struct prb_error *read_thread(struct prb_load *load, struct row *row)
{
	struct prb_profile_thread *thread = prb_vec_push(&load->about->threads);
	const char *os_name;

	if (!thread)
		return prb_error_nomem();
	take_number(row, load->about->threads.count - 1);
	if (load->about->threads.count > MOST_THREADS)
		complain(row, "is one too many");
	thread->tid = (pid_t)take_integer(row, 0, INT_MAX);
	PRB_TRY(prb_str_copy(take_text(row), &thread->name));
	os_name = take_text(row);
	PRB_TRY(prb_str_copy(os_name ? os_name : "", &thread->os_name));
	thread->cpu = take_integer(row, 0, INT64_MAX);
	thread->ended = take_integer(row, 0, 1);
	return NULL;
}

static struct prb_error *read_process(struct prb_load *load, struct row *row)
{
	struct prb_recording *about = load->about;

	if (about->pid)
		complain(row, "is one too many");
	take_number(row, 0);
	about->pid = (pid_t)take_integer(row, 1, INT_MAX);
	PRB_TRY(prb_str_copy(take_text(row), &about->command));
	PRB_TRY(prb_str_copy(take_text(row), &about->python));
	about->process_cpu = take_optional(row, -1);
	return NULL;
}

static void take_cost(struct row *row, struct prb_profile_cost *cost)
{
	const double most = 1e15; /* µs: thirty years */

	cost->times = take_count(row);
	cost->late = take_count(row);
	cost->missed = take_count(row);
	cost->unreadable = take_count(row);
	cost->stops = take_count(row);
	cost->again = take_count(row);
	cost->pause_p50 = take_real(row, most);
	cost->pause_p99 = take_real(row, most);
	cost->pause_max = take_real(row, most);
	cost->pause_total = take_real(row, most);
	cost->own_cpu = take_integer(row, 0, INT64_MAX);
}

static struct prb_error *read_recording(struct prb_load *load, struct row *row)
{
	struct prb_recording *about = load->about;

	if (load->totals_s)
		complain(row, "is one too many");
	about->started = take_real(row, 1e12);
	about->duration = take_integer(row, 0, INT64_MAX);
	about->rate = take_real(row, 1e9);
	about->tid = (pid_t)take_optional(row, 0);
	about->end = prb_schema_end_of(take_text(row));
	load->totals_s = take_integer(row, 1, INT32_MAX);
	take_cost(row, &about->cost);
	return NULL;
}

static const struct {
	const char *table, *sql;
	row_reader *read;
} readers[] = {
	{"recording",
	 "SELECT started, duration_ns, rate, tid, ended, totals_s, times, late, missed, "
	 "unreadable, stops, stopped_again, pause_p50_us, pause_p99_us, pause_max_us, "
	 "pause_total_us, own_cpu_ns FROM recording NOT INDEXED",
	 read_recording},
	{"processes",
	 "SELECT process, pid, command, python, cpu_ns FROM processes NOT INDEXED "
	 "ORDER BY process",
	 read_process},
	{"threads",
	 "SELECT thread, tid, name, os_name, cpu_ns, ended FROM threads NOT INDEXED "
	 "ORDER BY thread",
	 read_thread},
	{"functions",
	 "SELECT function, kind, name, file, first_line FROM functions NOT INDEXED "
	 "ORDER BY function",
	 read_function},
	{"frames", "SELECT frame, function, line FROM frames NOT INDEXED ORDER BY frame",
	 read_frame},
	{"stacks", "SELECT stack, parent, frame FROM stacks NOT INDEXED ORDER BY stack",
	 read_stack},
};

static struct prb_error *check_depths(const struct prb_tree *tree)
{
	const struct prb_tree_stack *stack;
	uint64_t sum = 0;

	prb_vec_each (stack, &tree->stacks)
		sum += stack->depth;
	return sum <= most_frames
		       ? NULL
		       : prb_error_create(PRB_ERROR_BAD_DATA, "its stacks have too many frames");
}

static struct prb_error *read_all(struct prb_load *load)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(readers); i++)
		PRB_TRY(read_rows(load, readers[i].table, readers[i].sql, readers[i].read));
	if (!load->totals_s || !load->about->pid)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"it was cut off before anything was recorded");
	PRB_TRY(check_depths(load->about->tree));
	return prb_load_file_prepare(load->file.db,
				     "SELECT chunk, begin_ns, unit_ns, runs, data FROM chunks "
				     "NOT INDEXED ORDER BY chunk",
				     &load->chunks);
}

static struct prb_error *open_load(struct prb_load *load, const char *path)
{
	PRB_TRY(prb_str_copy(path, &load->path));
	PRB_TRY(prb_recording_create(&load->about));
	PRB_TRY(prb_load_file_open(&load->file, path));
	return prb_error_prefix(read_all(load), "%s", path);
}

struct prb_error *prb_load_open(const char *path, struct prb_load **ret)
{
	struct prb_load *load = calloc(1, sizeof(*load));
	struct prb_error *err;

	if (!load)
		return prb_error_nomem();
	load->file.fd = -1;
	err = open_load(load, path);
	if (err)
		prb_load_destroy(load);
	else
		*ret = load;
	return err;
}

void prb_load_destroy(struct prb_load *load)
{
	if (!load)
		return;
	sqlite3_finalize(load->chunks);
	prb_load_file_close(&load->file);
	prb_recording_destroy(load->about);
	prb_vec_free(&load->runs);
	free(load->path);
	free(load);
}

const struct prb_recording *prb_load_about(const struct prb_load *load)
{
	return load->about;
}

int64_t prb_load_totals_seconds(const struct prb_load *load)
{
	return load->totals_s;
}

/* All times together are a number, so that no sum of some of them overflows. */
static struct prb_error *add_up(struct prb_load *load)
{
	const struct prb_run *run;

	prb_vec_each (run, &load->runs)
		if (__builtin_add_overflow(load->wall, run->wall, &load->wall) ||
		    __builtin_add_overflow(load->cpu, run->cpu, &load->cpu) ||
		    __builtin_add_overflow(load->queue, run->queue, &load->queue) || !run->stack)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"a chunk of samples holds what cannot be");
	return NULL;
}

static struct prb_error *read_chunk(struct prb_load *load)
{
	struct row row = {.stmt = load->chunks, .table = "chunks"};
	struct prb_chunk chunk = {
		.threads = load->about->threads.count,
		.stacks = load->about->tree->stacks.count,
	};

	take_number(&row, (size_t)load->next_chunk++);
	chunk.begin = take_integer(&row, 0, INT64_MAX);
	chunk.unit = take_integer(&row, 1, 1000000000);
	chunk.runs = (size_t)take_integer(&row, 1, PRB_CHUNK_MOST_RUNS);
	if (sqlite3_column_type(load->chunks, row.cell) != SQLITE_BLOB)
		complain(&row, "has no data");
	if (row.err)
		return row.err;
	load->runs.count = 0;
	if (!prb_vec_reserve(&load->runs, chunk.runs))
		return prb_error_nomem();
	memset(load->runs.items, 0, chunk.runs * sizeof(*load->runs.items));
	PRB_TRY(prb_chunk_decode(&chunk, sqlite3_column_blob(load->chunks, row.cell),
				 (size_t)sqlite3_column_bytes(load->chunks, row.cell),
				 load->runs.items));
	load->runs.count = chunk.runs;
	return add_up(load);
}

struct prb_error *prb_load_next(struct prb_load *load, const struct prb_run **ret,
				size_t *ret_count)
{
	struct prb_error *err;
	bool more;

	*ret_count = 0;
	err = prb_load_file_step(load->chunks, &more);
	if (!err && more)
		err = read_chunk(load);
	if (err)
		return prb_error_prefix(err, "%s", load->path);
	if (more) {
		*ret = load->runs.items;
		*ret_count = load->runs.count;
	}
	return NULL;
}

void prb_load_rewind(struct prb_load *load)
{
	sqlite3_reset(load->chunks);
	load->next_chunk = 0;
	load->wall = load->cpu = load->queue = 0;
}

static struct prb_error *load_runs(struct prb_load *load)
{
	struct prb_recording *recording = load->about;
	const struct prb_run *runs;
	size_t count;

	for (;;) {
		PRB_TRY(prb_load_next(load, &runs, &count));
		if (!count)
			return NULL;
		if (!prb_vec_reserve(&recording->runs, count))
			return prb_error_nomem();
		memcpy(recording->runs.items + recording->runs.count, runs, count * sizeof(*runs));
		recording->runs.count += count;
	}
}

struct prb_error *prb_profile_load(const char *path, struct prb_recording **ret)
{
	struct prb_load *load;
	struct prb_error *err;

	PRB_TRY(prb_load_open(path, &load));
	err = load_runs(load);
	if (!err)
		*ret = prb_steal(&load->about);
	prb_load_destroy(load);
	return err;
}
