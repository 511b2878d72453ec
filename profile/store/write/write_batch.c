/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A batch, row by row, in one transaction. */
#include <string.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "profile/store/schema.h"
#include "profile/store/write/condition.h"
#include "profile/store/write/growing_chunk.h"
#include "profile/store/write/rename_stacks.h"
#include "profile/store/write/statements.h"

enum {
	MOST_TOTALS = 200000, /* rows; with more, two parts become one */
};

static const int64_t second = 1000000000;

static struct prb_error *put_images(struct prb_store_file *file, const struct prb_batch *b)
{
	struct prb_tree_image *const *image;

	prb_vec_each (image, &b->images)
		PRB_TRY(prb_store_sql_put(file, PRB_STORE_IMAGE, "ittiii",
					  (int64_t)(*image)->number, (*image)->path,
					  (*image)->build_id, (int64_t)(*image)->address,
					  (int64_t)(*image)->size, (int64_t)(*image)->offset));
	return NULL;
}

static struct prb_error *put_tree(struct prb_store_file *file, const struct prb_batch *b)
{
	for (size_t i = 0; i < b->functions.count; i++) {
		const struct prb_tree_function *f = &b->functions.items[i];

		PRB_TRY(prb_store_sql_put(file, PRB_STORE_FUNCTION, "itttit",
					  (int64_t)(b->first.functions + i),
					  prb_function_kind_name(f->kind), f->name, f->file,
					  (int64_t)f->first_line, f->module));
		if (f->image)
			PRB_TRY(prb_store_sql_put(file, PRB_STORE_ORIGIN, "iii",
						  (int64_t)(b->first.functions + i),
						  (int64_t)f->image->number, (int64_t)f->address));
	}
	for (size_t i = 0; i < b->frames.count; i++)
		PRB_TRY(prb_store_sql_put(
			file, PRB_STORE_FRAME, "iii", (int64_t)(b->first.frames + i),
			(int64_t)b->frames.items[i].function, (int64_t)b->frames.items[i].line));
	for (size_t i = 0; i < b->stacks.count; i++) {
		const struct prb_tree_stack *s = &b->stacks.items[i];

		/* The empty stack is no row. */
		if (b->first.stacks + i)
			PRB_TRY(prb_store_sql_put(
				file, PRB_STORE_STACK, "iiii", (int64_t)(b->first.stacks + i),
				(int64_t)s->parent, (int64_t)s->frame, (int64_t)s->depth));
	}
	return NULL;
}

static struct prb_error *put_waits(struct prb_store_file *file, const struct prb_batch *b)
{
	for (size_t i = 0; i < b->waits.count; i++) {
		const struct prb_profile_wait *w = &b->waits.items[i];

		/* The first is none, and no row. */
		if (b->first.waits + i)
			PRB_TRY(prb_store_sql_put(
				file, PRB_STORE_WAIT, "itti", (int64_t)(b->first.waits + i),
				prb_wait_kind_name(w->kind), w->what, (int64_t)w->owner - 1));
	}
	return NULL;
}

static bool is_written(const struct prb_store_file *file, size_t index,
		       const struct prb_profile_thread *thread)
{
	const struct prb_profile_thread *written;

	if (index >= file->threads.count)
		return false;
	written = &file->threads.items[index];
	return written->cpu == thread->cpu && written->ended == thread->ended &&
	       written->name == thread->name;
}

static struct prb_error *put_threads(struct prb_store_file *file, const struct prb_batch *b)
{
	for (size_t i = 0; i < b->threads.count; i++) {
		const struct prb_profile_thread *t = &b->threads.items[i];

		if (!is_written(file, i, t))
			PRB_TRY(prb_store_sql_put(file, PRB_STORE_THREAD, "iiittii", (int64_t)i,
						  (int64_t)t->process, (int64_t)t->tid, t->name,
						  t->os_name, t->cpu, (int64_t)t->ended));
	}
	return NULL;
}

/* Two parts become one, before a part begins that is the first of two. */
static struct prb_error *merge_parts(struct prb_store_file *file)
{
	PRB_TRY(prb_store_sql_run(
		file, "CREATE TEMP TABLE merged AS SELECT part / 2, stack, state, sum(samples), "
		      "sum(cpu_ns), sum(wall_ns), sum(runqueue_ns) FROM totals GROUP BY 1, 2, 3;"
		      "DELETE FROM totals; INSERT INTO totals SELECT * FROM merged;"
		      "DROP TABLE merged"));
	file->totals_s *= 2;
	file->part /= 2;
	return NULL;
}

static struct prb_error *count_totals(struct prb_store_file *file, int64_t *ret)
{
	sqlite3_stmt *stmt = NULL;

	*ret = 0;
	if (!sqlite3_prepare_v2(file->db, "SELECT count(*) FROM totals", -1, &stmt, NULL) &&
	    sqlite3_step(stmt) == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	return sqlite3_finalize(stmt) ? prb_error_nomem() : NULL;
}

/* The part that a chunk belongs to. */
static struct prb_error *choose_part(struct prb_store_file *file, int64_t begin)
{
	int64_t part = begin / (file->totals_s * second), count;

	if (part == file->part)
		return NULL;
	prb_totals_clear(&file->totals);
	file->part = part;
	if (part % 2)
		return NULL;
	PRB_TRY(count_totals(file, &count));
	return count > MOST_TOTALS ? merge_parts(file) : NULL;
}

static struct prb_error *put_totals(struct prb_store_file *file, const struct prb_batch *b)
{
	const struct prb_total *total;

	PRB_TRY(choose_part(file, prb_store_chunk_begin(b)));
	PRB_TRY(prb_totals_set(&file->totals, b->runs.items, b->runs.count));
	prb_vec_each (total, &file->totals.list)
		if (prb_total_changed(total))
			PRB_TRY(prb_store_sql_put(file, PRB_STORE_TOTAL, "iiiiiii", file->part,
						  (int64_t)total->stack, (int64_t)total->state,
						  (int64_t)total->now.samples, total->now.cpu,
						  total->now.wall, total->now.queue));
	return NULL;
}

static struct prb_error *put_processes(struct prb_store_file *file, const struct prb_batch *b)
{
	const struct prb_recording *r = &b->about;

	PRB_TRY(prb_store_sql_put(file, PRB_STORE_PROCESS, "iitti", (int64_t)0, (int64_t)r->pid,
				  r->command, r->python, r->process_cpu));
	for (size_t i = 0; i < b->others.count; i++) {
		const struct prb_profile_process *p = &b->others.items[i];

		PRB_TRY(prb_store_sql_put(file, PRB_STORE_PROCESS, "iitti", (int64_t)i + 1,
					  (int64_t)p->pid, p->command, p->python, p->cpu));
	}
	return NULL;
}

/* They are the recorder's, which waits for the last batch. */
static struct prb_error *put_source(struct prb_store_file *file, const struct prb_batch *b)
{
	const struct prb_profile_line *line;

	prb_vec_each (line, &b->about.lines)
		PRB_TRY(prb_store_sql_put(file, PRB_STORE_SOURCE, "tit", line->file,
					  (int64_t)line->line, line->text));
	return NULL;
}

static struct prb_error *put_about(struct prb_store_file *file, const struct prb_batch *b)
{
	const struct prb_recording *r = &b->about;
	const struct prb_profile_cost *c = &r->cost;
	prb_auto_free char *system = NULL;
	struct utsname name;

	if (!uname(&name))
		system = prb_format("%s %s %s", name.sysname, name.release, name.machine);
	PRB_TRY(put_processes(file, b));
	if (c->ebpf)
		PRB_TRY(prb_store_sql_put(file, PRB_STORE_UNSTOPPED, "i", (int64_t)c->unstopped));
	return prb_store_sql_put(
		file, PRB_STORE_RECORDING, "ttdidiitiiiiiiiddddidiitd", PRB_VERSION,
		(const char *)system, r->started, r->duration, r->rate, (int64_t)r->tid,
		(int64_t)r->native, b->last ? prb_schema_end(r->end) : NULL, file->totals_s,
		(int64_t)c->times, (int64_t)c->late, (int64_t)c->missed, (int64_t)c->unreadable,
		(int64_t)c->stops, (int64_t)c->again, c->pause_p50, c->pause_p99, c->pause_max,
		c->pause_total, c->own_cpu, (double)r->ring / 1e9, (int64_t)r->tasks,
		r->unseen_children, r->condition, (double)r->around / 1e9);
}

/*
 * Removes chunks outside of windows, or older than the ring's length. The chunk that its beginning
 * is in stays.
 */
static struct prb_error *drop_old(struct prb_store_file *file, const struct prb_batch *b)
{
	int64_t from = b->about.duration - b->about.ring;
	prb_auto_str struct prb_str sql = {};

	if (file->when) {
		prb_store_when_sql(file->when, b, file->totals_s * second, &sql);
		return sql.failed ? prb_error_nomem() : prb_store_sql_run(file, prb_str_text(&sql));
	}
	if (!b->about.ring || from <= 0)
		return NULL;
	prb_str_printf(&sql,
		       "DELETE FROM chunks WHERE chunk < "
		       "(SELECT max(chunk) FROM chunks WHERE begin_ns <= %lld);"
		       "DELETE FROM totals WHERE (part + 1) * %lld <= %lld",
		       (long long)from, (long long)file->totals_s * second, (long long)from);
	return sql.failed ? prb_error_nomem() : prb_store_sql_run(file, prb_str_text(&sql));
}

static struct prb_error *put_all(struct prb_store_file *file, const struct prb_batch *b,
				 struct prb_store_chunk *chunk)
{
	PRB_TRY(prb_store_sql_run(file, "BEGIN IMMEDIATE"));
	if (b->renamed)
		PRB_TRY(prb_store_rename_rows(file, b));
	PRB_TRY(put_images(file, b));
	PRB_TRY(put_tree(file, b));
	PRB_TRY(put_waits(file, b));
	PRB_TRY(put_threads(file, b));
	if (b->runs.count) {
		PRB_TRY(prb_store_chunk_put(file, b, chunk));
		PRB_TRY(put_totals(file, b));
	}
	if (b->last)
		PRB_TRY(put_source(file, b));
	PRB_TRY(put_about(file, b));
	PRB_TRY(drop_old(file, b));
	return prb_store_sql_run(file, "COMMIT");
}

/* Notes the written data, so that it is not written again. */
static struct prb_error *note_written(struct prb_store_file *file, const struct prb_batch *b)
{
	struct prb_total *total;

	prb_vec_each (total, &file->totals.list)
		total->written = total->now;
	if (b->cut)
		prb_totals_cut(&file->totals);
	file->threads.count = 0;
	if (!prb_vec_reserve(&file->threads, b->threads.count))
		return prb_error_nomem();
	if (b->threads.count)
		memcpy(file->threads.items, b->threads.items,
		       b->threads.count * sizeof(*b->threads.items));
	file->threads.count = b->threads.count;
	return NULL;
}

struct prb_error *prb_store_file_write(struct prb_store_file *file, const struct prb_batch *batch)
{
	int64_t part = file->part, totals_s = file->totals_s;
	struct prb_store_chunk chunk = {};
	struct prb_error *err = put_all(file, batch, &chunk);

	if (!err) {
		prb_store_chunk_written(file, batch, &chunk);
		return note_written(file, batch);
	}
	sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
	file->part = part;
	file->totals_s = totals_s;
	return err;
}
