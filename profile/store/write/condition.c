/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/write/condition.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "profile/store/write/growing_chunk.h"

enum {
	MOST_STEPS = 50000000, /* of SQLite, for one question */
	GAP_NS = 100000000,    /* what a thread does meanwhile does not end its wait */
	DOUBT_NS = 1000000000, /* in the file, times are rounded */
};

/* The known facts of a thread. */
struct watched {
	enum prb_wait_kind kind; /* that it waits for; none */
	uint32_t wait;
	int64_t since, until;				  /* the wait */
	int64_t cpu, wall, queue, gil, gil_wait, blocked; /* in this chunk */
	uint32_t stack;
	enum prb_run_state state;
	bool seen; /* in this chunk */
};

/* The steps of a process. */
struct step_row {
	int64_t since; /* those that ended later are new; 0: not yet asked */
	int64_t number;
	double ms;
	bool known;
};

/* A chunk of which nothing has been decided yet. */
struct undecided {
	int64_t chunk, begin;
};

struct prb_store_when {
	sqlite3 *db;
	sqlite3_stmt *test, *put;
	int64_t around;
	PRB_VEC(struct watched) begun, now, before; /* at the chunk's begin, now, a second ago */
	PRB_VEC(const char *) functions;
	PRB_VEC(uint32_t) frames, stacks; /* function of a frame, frame of a stack */
	PRB_VEC(struct prb_profile_wait) waits;
	int64_t begin, end;		     /* of the last window; end 0: there was none */
	PRB_VEC(struct undecided) undecided; /* in their order */
	int64_t oldest;			     /* the first of them, for this batch */
	prb_store_steps_fn *steps;
	bool wants_steps;		    /* the condition is about them */
	PRB_VEC(struct step_row) step_rows; /* of each process */
};

static const char schema[] =
	"CREATE TABLE threads (tid INTEGER, name TEXT, func TEXT, state TEXT, waiting TEXT, "
	"waits_for TEXT, holder INTEGER, waited_ms REAL, cpu_ms REAL, wall_ms REAL, "
	"runqueue_ms REAL, gil_ms REAL, gil_wait_ms REAL, blocked_ms REAL, step INTEGER, "
	"step_ms REAL)";

static struct prb_error *failure(struct prb_store_when *when)
{
	int rc = sqlite3_errcode(when->db) & 0xff;

	if (rc == SQLITE_NOMEM)
		return prb_error_nomem();
	if (rc == SQLITE_INTERRUPT)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT, "--when: the condition takes too long"),
			"write a simpler one: it is asked once a second");
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "--when: %s", sqlite3_errmsg(when->db)),
		"it is an expression, or a SELECT, over the table `threads`: tid, "
		"name, func, state, waiting, waits_for, holder, waited_ms, cpu_ms, "
		"wall_ms, runqueue_ms, gil_ms, gil_wait_ms, blocked_ms, step, step_ms");
}

/* Questions only: there is no other table. */
static int authorize(void *context, int action, const char *first, const char *second,
		     const char *schema_name, const char *trigger)
{
	struct prb_store_when *when = context;

	(void)schema_name;
	(void)trigger;
	if (action == SQLITE_READ && !strncasecmp(second, "step", 4))
		when->wants_steps = true;
	if (action == SQLITE_SELECT || action == SQLITE_RECURSIVE)
		return SQLITE_OK;
	if (action == SQLITE_READ)
		return strncasecmp(first, "sqlite_", 7) != 0 ? SQLITE_OK : SQLITE_DENY;
	if (action == SQLITE_FUNCTION)
		return strcasecmp(second, "load_extension") ? SQLITE_OK : SQLITE_DENY;
	return SQLITE_DENY;
}

static int too_long(void *context)
{
	(void)context;
	return 1;
}

static bool is_statement(const char *text)
{
	text += strspn(text, " \t\n(");
	return !strncasecmp(text, "select", 6) || !strncasecmp(text, "with", 4);
}

static struct prb_error *prepare(struct prb_store_when *when, const char *condition)
{
	prb_auto_free char *sql =
		is_statement(condition)
			? strdup(condition)
			: prb_format("SELECT EXISTS (SELECT 1 FROM threads WHERE (%s\n))",
				     condition);
	const char *rest = NULL;

	if (!sql || sqlite3_open_v2(":memory:", &when->db,
				    SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL))
		return prb_error_nomem();
	sqlite3_limit(when->db, SQLITE_LIMIT_LENGTH, 1 << 24);
	if (sqlite3_exec(when->db, schema, NULL, NULL, NULL) ||
	    sqlite3_prepare_v2(when->db,
			       "INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
			       "?, ?, ?, ?)",
			       -1, &when->put, NULL))
		return failure(when);
	sqlite3_set_authorizer(when->db, authorize, when);
	if (sqlite3_prepare_v2(when->db, sql, -1, &when->test, &rest))
		return failure(when);
	if (!when->test || rest[strspn(rest, " \t\n;")])
		return prb_error_create(PRB_ERROR_USAGE, "--when: it is one expression or SELECT");
	sqlite3_set_authorizer(when->db, NULL, NULL);
	return NULL;
}

struct prb_error *prb_store_when_create(const char *condition, double around,
					prb_store_steps_fn *steps, struct prb_store_when **ret)
{
	struct prb_store_when *when = calloc(1, sizeof(*when));
	struct prb_error *err;

	if (!when)
		return prb_error_nomem();
	when->around = (int64_t)(around * 1e9);
	when->steps = steps;
	err = prepare(when, condition);
	if (err)
		prb_store_when_destroy(when);
	else
		*ret = when;
	return err;
}

void prb_store_when_destroy(struct prb_store_when *when)
{
	if (!when)
		return;
	sqlite3_finalize(when->test);
	sqlite3_finalize(when->put);
	sqlite3_close(when->db);
	prb_vec_free(&when->begun);
	prb_vec_free(&when->now);
	prb_vec_free(&when->before);
	prb_vec_free(&when->functions);
	prb_vec_free(&when->frames);
	prb_vec_free(&when->stacks);
	prb_vec_free(&when->waits);
	prb_vec_free(&when->step_rows);
	prb_vec_free(&when->undecided);
	free(when);
}

/* Learns the parts of names. Strings stay until the recording's end. */
static bool learn(struct prb_store_when *when, const struct prb_batch *b)
{
	bool done = prb_vec_reserve(&when->functions, b->first.functions + b->functions.count) &&
		    prb_vec_reserve(&when->frames, b->first.frames + b->frames.count) &&
		    prb_vec_reserve(&when->stacks, b->first.stacks + b->stacks.count) &&
		    prb_vec_reserve(&when->waits, b->first.waits + b->waits.count);

	if (!done)
		return false;
	for (size_t i = 0; i < b->functions.count; i++)
		when->functions.items[b->first.functions + i] = b->functions.items[i].name;
	for (size_t i = 0; i < b->frames.count; i++)
		when->frames.items[b->first.frames + i] = b->frames.items[i].function;
	for (size_t i = 0; i < b->stacks.count; i++)
		when->stacks.items[b->first.stacks + i] = b->stacks.items[i].frame;
	for (size_t i = 0; i < b->waits.count; i++)
		when->waits.items[b->first.waits + i] = b->waits.items[i];
	when->functions.count = b->first.functions + b->functions.count;
	when->frames.count = b->first.frames + b->frames.count;
	when->stacks.count = b->first.stacks + b->stacks.count;
	when->waits.count = b->first.waits + b->waits.count;
	return true;
}

/* A thread wakes up now and then, to look whether it has the GIL by now. */
static void note_wait(struct watched *w, const struct prb_run *run)
{
	int64_t end = run->begin + run->wall;

	if (run->wait_kind != PRB_WAIT_NONE &&
	    (run->wait_kind != w->kind || run->begin - w->until > GAP_NS)) {
		w->kind = run->wait_kind;
		w->since = run->begin;
	}
	if (run->wait_kind != PRB_WAIT_NONE) {
		w->wait = run->wait;
		w->until = end;
	} else if ((run->gil && w->kind == PRB_WAIT_GIL) || end - w->until > GAP_NS) {
		w->kind = PRB_WAIT_NONE;
	}
}

static void add_run(struct watched *w, const struct prb_run *run)
{
	note_wait(w, run);
	w->cpu += run->cpu;
	w->wall += run->wall;
	w->queue += run->queue;
	w->gil += run->gil ? run->wall : 0;
	w->gil_wait += run->wait_kind == PRB_WAIT_GIL ? run->wall : 0;
	if (run->wait_kind != PRB_WAIT_GIL &&
	    (run->state == PRB_RUN_ASLEEP || run->state == PRB_RUN_IN_KERNEL))
		w->blocked += run->wall;
	w->stack = run->stack;
	w->state = run->state;
	w->seen = true;
}

static bool grow(struct prb_store_when *when, size_t count)
{
	while (when->begun.count < count) {
		struct watched *a = prb_vec_push(&when->begun), *b = prb_vec_push(&when->before);

		if (!a || !b)
			return false;
		*a = *b = (struct watched){};
	}
	return prb_vec_reserve(&when->now, count);
}

/* The batch has all runs of its chunk. */
static struct prb_error *look_at(struct prb_store_when *when, const struct prb_batch *b)
{
	const struct prb_run *run;

	if (!learn(when, b) || !grow(when, b->threads.count))
		return prb_error_nomem();
	when->now.count = b->threads.count;
	if (b->threads.count)
		memcpy(when->now.items, when->begun.items,
		       b->threads.count * sizeof(*when->now.items));
	prb_vec_each (run, &b->runs)
		add_run(&when->now.items[run->thread], run);
	return NULL;
}

static void bind_ms(sqlite3_stmt *stmt, int index, int64_t ns)
{
	sqlite3_bind_double(stmt, index, (double)ns / 1e6);
}

static struct prb_error *put_row(struct prb_store_when *when, const struct prb_batch *b, size_t i)
{
	const struct watched *w = &when->now.items[i], *last = &when->before.items[i];
	const struct prb_profile_thread *thread = &b->threads.items[i];
	const struct step_row *step = thread->process < when->step_rows.count
					      ? &when->step_rows.items[thread->process]
					      : NULL;
	const struct prb_profile_wait *wait =
		w->kind != PRB_WAIT_NONE ? &when->waits.items[w->wait] : NULL;
	sqlite3_stmt *put = when->put;

	sqlite3_clear_bindings(put);
	sqlite3_bind_int(put, 1, thread->tid);
	sqlite3_bind_text(put, 2, thread->name ? thread->name : thread->os_name, -1, NULL);
	sqlite3_bind_text(put, 3,
			  when->functions.items[when->frames.items[when->stacks.items[w->stack]]],
			  -1, NULL);
	sqlite3_bind_text(put, 4, prb_run_state_name(w->state), -1, NULL);
	if (wait) {
		sqlite3_bind_text(put, 5, prb_wait_kind_name(w->kind), -1, NULL);
		sqlite3_bind_text(put, 6, wait->what, -1, NULL);
		bind_ms(put, 8, w->until - w->since);
	}
	if (wait && wait->owner && wait->owner <= b->threads.count)
		sqlite3_bind_int(put, 7, b->threads.items[wait->owner - 1].tid);
	bind_ms(put, 9, w->cpu - last->cpu);
	bind_ms(put, 10, w->wall - last->wall);
	bind_ms(put, 11, w->queue - last->queue);
	bind_ms(put, 12, w->gil - last->gil);
	bind_ms(put, 13, w->gil_wait - last->gil_wait);
	bind_ms(put, 14, w->blocked - last->blocked);
	if (step && step->known) {
		sqlite3_bind_int64(put, 15, step->number);
		sqlite3_bind_double(put, 16, step->ms);
	}
	sqlite3_step(put);
	return sqlite3_reset(put) ? failure(when) : NULL;
}

/*
 * The present step has lasted since the last one ended, and may be the longest. The next question
 * is about what ended after that one, not after this moment: a step may have ended, and not be
 * recorded yet. But where the clock was set back, steps end before that one.
 */
static void learn_step(struct prb_store_when *when, pid_t pid, int64_t now, struct step_row *row)
{
	struct prb_store_step step;

	row->known = when->steps(pid, row->since, &step);
	if (!row->known)
		return;
	row->since = PRB_MIN(step.ended, now);
	row->number = step.number;
	row->ms = PRB_MAX(step.longest, (double)(now - step.ended) / 1e6);
}

static struct prb_error *learn_steps(struct prb_store_when *when, const struct prb_batch *b)
{
	int64_t now;

	if (!when->wants_steps || !when->steps)
		return NULL;
	now = prb_clock_calendar_ns();
	for (size_t i = 0; i <= b->others.count; i++) {
		struct step_row *row = i < when->step_rows.count ? &when->step_rows.items[i]
								 : prb_vec_push(&when->step_rows);

		if (!row)
			return prb_error_nomem();
		if (!row->since)
			row->since = (int64_t)(b->about.started * 1e9);
		learn_step(when, i ? b->others.items[i - 1].pid : b->about.pid, now, row);
	}
	return NULL;
}

static struct prb_error *put_rows(struct prb_store_when *when, const struct prb_batch *b)
{
	if (sqlite3_exec(when->db, "DELETE FROM threads; BEGIN", NULL, NULL, NULL))
		return failure(when);
	for (size_t i = 0; i < b->threads.count; i++)
		if (when->now.items[i].seen && !b->threads.items[i].ended)
			PRB_TRY(put_row(when, b, i));
	return sqlite3_exec(when->db, "COMMIT", NULL, NULL, NULL) ? failure(when) : NULL;
}

static struct prb_error *test(struct prb_store_when *when, bool *ret)
{
	struct prb_error *err;
	int rc;

	sqlite3_progress_handler(when->db, MOST_STEPS, too_long, NULL);
	rc = sqlite3_step(when->test);
	*ret = rc == SQLITE_ROW && sqlite3_column_double(when->test, 0) != 0;
	err = rc == SQLITE_ROW || rc == SQLITE_DONE ? NULL : failure(when);
	sqlite3_reset(when->test);
	sqlite3_progress_handler(when->db, 0, NULL, NULL);
	return err;
}

/* Sums cover one chunk. */
static void keep_state(struct prb_store_when *when, bool cut)
{
	for (size_t i = 0; i < when->now.count; i++) {
		struct watched *now = &when->now.items[i];

		if (cut) {
			now->cpu = now->wall = now->queue = 0;
			now->gil = now->gil_wait = now->blocked = 0;
			now->seen = false;
			when->begun.items[i] = *now;
		}
		when->before.items[i] = *now;
	}
}

/* Chunks whose time is over are looked at once more, for this batch. */
static struct prb_error *note_chunk(struct prb_store_when *when, const struct prb_batch *b)
{
	const int64_t decided = b->about.duration - when->around - DOUBT_NS;
	struct undecided *list = when->undecided.items, *slot;
	size_t count = when->undecided.count, over = 0;

	when->oldest = count ? list[0].chunk : b->chunk;
	while (over + 1 < count && list[over + 1].begin <= decided)
		over++;
	when->undecided.count -= over;
	if (over)
		memmove(list, list + over, when->undecided.count * sizeof(*list));
	if (!b->runs.count || (count && list[when->undecided.count - 1].chunk == b->chunk))
		return NULL;
	slot = prb_vec_push(&when->undecided);
	if (!slot)
		return prb_error_nomem();
	*slot = (struct undecided){b->chunk, prb_store_chunk_begin(b)};
	return NULL;
}

struct prb_error *prb_store_when_ask(struct prb_store_when *when, const struct prb_batch *b)
{
	int64_t now = b->about.duration;
	bool holds;

	/* At the end, when stacks have new numbers, there are no new samples. */
	if (b->renamed)
		return NULL;
	PRB_TRY(note_chunk(when, b));
	PRB_TRY(look_at(when, b));
	PRB_TRY(learn_steps(when, b));
	PRB_TRY(put_rows(when, b));
	PRB_TRY(test(when, &holds));
	keep_state(when, b->cut);
	if (!holds)
		return NULL;
	if (!when->end || now - when->around > when->end)
		when->begin = PRB_MAX(now - when->around, (int64_t)0);
	when->end = now + when->around;
	return NULL;
}

void prb_store_when_sql(const struct prb_store_when *when, const struct prb_batch *b,
			int64_t part_ns, struct prb_str *sql)
{
	const char *next = "coalesce((SELECT n.begin_ns FROM chunks n WHERE n.chunk > chunks.chunk "
			   "ORDER BY n.chunk LIMIT 1), 9223372036854775807)";
	int64_t now = b->about.duration, decided = b->last ? INT64_MAX : now - when->around;

	if (when->end)
		prb_str_printf(sql, "REPLACE INTO windows VALUES (%lld, %lld);",
			       (long long)when->begin,
			       (long long)(b->last ? PRB_MIN(when->end, now) : when->end));
	prb_str_printf(sql,
		       "DELETE FROM chunks WHERE chunk > %lld AND %s <= %lld AND NOT EXISTS "
		       "(SELECT 1 FROM windows WHERE windows.begin_ns < %s AND end_ns > "
		       "chunks.begin_ns);",
		       (long long)(b->last ? -1 : when->oldest - 1), next, (long long)decided,
		       next);
	prb_str_printf(sql,
		       "DELETE FROM totals WHERE NOT EXISTS (SELECT 1 FROM windows WHERE "
		       "begin_ns < (part + 1) * %lld AND end_ns > part * %lld)",
		       (long long)part_ns, (long long)part_ns);
	if (!b->last)
		prb_str_printf(sql, " AND (part + 1) * %lld <= %lld", (long long)part_ns,
			       (long long)decided);
}
