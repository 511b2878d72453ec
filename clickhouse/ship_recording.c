/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Samples of recordings (.profile), as rows. A row is named by the number of its chunk and its
 * place in that, neither of which changes once the chunk is complete: only such chunks are sent. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/siphash.h"
#include "clickhouse/ship_private.h"
#include "command/exit.h"
#include "rings/known.h"
#include "profile/store/load/load.h"
#include "target/proc/process.h"
#include "profile/recording/wait_sums.h"

enum {
	SHIFT = 20,	 /* a chunk has at most 1 << SHIFT runs */
	OPEN_CHUNKS = 2, /* the last ones of a recording in progress: they still grow */
	QUIET_S = 60,	 /* a recorder writes once a second: this one was killed */
	MOST_STACK = 1 << 16,
};

/* Seconds. A chunk is complete after a minute, in a short ring earlier. */
static const double LOOK_EVERY = 10, FIND_EVERY = 10;

enum {
	RECORDING,
	THREAD,
	STATE,
	SAMPLES,
	CPU,
	WALL,
	QUEUE,
	GIL,
	WAITS,
	FUNC,
	QUALNAME,
	FILE_NAME,
	LINE,
	STACK,
	COLUMNS,
};

/* As in our own table profile.samples; of the stack all there is to it, since numbers of stacks
 * mean something within a recording only. */
static const struct prb_ring_column columns[COLUMNS] = {
	[RECORDING] = {"recording", "", PRB_RING_TEXT, 0},
	[THREAD] = {"thread", "", PRB_RING_TEXT, 0},
	[STATE] = {"state", "", PRB_RING_TEXT, 0},
	[SAMPLES] = {"samples", "", PRB_RING_INTEGER, 0},
	[CPU] = {"cpu_ns", "ns", PRB_RING_INTEGER, 0},
	[WALL] = {"wall_ns", "ns", PRB_RING_INTEGER, 0},
	[QUEUE] = {"runqueue_ns", "ns", PRB_RING_INTEGER, 0},
	[GIL] = {"gil", "", PRB_RING_TEXT, 0},
	[WAITS] = {"waits_for", "", PRB_RING_TEXT, 0},
	[FUNC] = {"func", "", PRB_RING_TEXT, 0},
	[QUALNAME] = {"qualname", "", PRB_RING_TEXT, 0},
	[FILE_NAME] = {"file", "", PRB_RING_TEXT, 0},
	[LINE] = {"lineno", "", PRB_RING_INTEGER, 0},
	[STACK] = {"stack", "", PRB_RING_TEXT, 0},
};

static void load_guard(struct prb_load **load)
{
	prb_load_destroy(*load);
}
#define auto_load __attribute__((cleanup(load_guard)))

static void cursor_guard(struct prb_load_cursor **cursor)
{
	prb_load_cursor_destroy(*cursor);
}
#define auto_cursor __attribute__((cleanup(cursor_guard)))

/** The same number for a copy of the file, and for any shipper. */
static uint64_t identify(const struct prb_ship *ship, const struct prb_recording *about, uid_t uid)
{
	static const uint64_t key[2] = {0x70726f62696e6721, 0x70726f66696c65};
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%s\n%u\n%d\n%.9f\n%.9g\n%d", ship->host, (unsigned)uid,
		       (int)about->pid, about->started, about->rate, (int)about->tid);
	return prb_siphash(2, 4, key, prb_str_text(&text), text.length);
}

/** Asks the recorded process for its job and rank, unless another process has its pid by now. */
static struct prb_error *ask_process(const struct prb_ship_source *source, char **ret, long *rank)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_process now = {};
	struct prb_error *err = prb_process_describe((pid_t)source->header.pid, &now);
	bool same = !err && now.uid == source->uid &&
		    now.start_time * 1e9 <= (double)source->header.realtime;

	prb_process_deinit(&now);
	if (same)
		err = prb_target_open_process((pid_t)source->header.pid, &target);
	if (same && !err)
		err = prb_ship_find_job(target, ret, rank);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

/** Job and rank by the process, as long as it is there, or by a ring that it has left. */
static struct prb_error *place_source(const struct prb_ship *ship, struct prb_ship_source *source)
{
	const struct prb_ship_entry *entry = prb_ship_state_find(&ship->state, source->id);
	prb_auto_free char *said = NULL;
	const char *job;
	long rank = -1;

	PRB_TRY(ask_process(source, &said, &rank));
	job = said;
	if (rank >= 0 && rank < INT32_MAX)
		source->header.rank = (uint32_t)rank + 1;
	for (size_t i = 0; i < ship->sources.count; i++) {
		const struct prb_ship_source *ring = ship->sources.items[i];

		if (ring->kind != PRB_SHIP_RING || ring->uid != source->uid ||
		    ring->header.pid != source->header.pid)
			continue;
		if (!source->header.rank)
			source->header.rank = ring->header.rank;
		job = job ? job : ring->job;
	}
	if (ship->options->job)
		job = ship->options->job;
	else if (!job && entry)
		job = entry->job;
	return prb_str_copy(job ? job : "", &source->job);
}

/** Which chunks are complete; *ret_ended: all are, and there is no writer any more. */
static struct prb_error *find_end(struct prb_load *load, const struct stat *st, uint64_t *ret_head,
				  bool *ret_ended)
{
	const struct prb_recording *about = prb_load_about(load);
	int64_t first, end;

	PRB_TRY(prb_load_chunks(load, &first, &end));
	*ret_ended = about->end != PRB_PROFILE_CUT_OFF || time(NULL) - st->st_mtime > QUIET_S;
	/* C functions get their names, and windows their ends, when all is over. */
	if (!*ret_ended)
		end = about->native || about->condition
			      ? 0
			      : PRB_MAX(end - (about->ring ? 1 : OPEN_CHUNKS), 0);
	*ret_head = (uint64_t)end << SHIFT;
	return NULL;
}

static struct prb_error *look(struct prb_ship_source *source)
{
	auto_load struct prb_load *load = NULL;
	struct stat st;
	uint64_t head;

	if (lstat(source->path, &st) || st.st_ino != source->inode || st.st_dev != source->device) {
		prb_auto_free char *text = prb_format(
			"%s is not there any more, and its end was not sent", source->path);

		prb_warn(text ? text : "");
		source->ended = true;
		source->head = source->goal = source->next;
		return NULL;
	}
	if (st.st_mtim.tv_sec == source->changed.tv_sec &&
	    st.st_mtim.tv_nsec == source->changed.tv_nsec && time(NULL) - st.st_mtime <= QUIET_S)
		return NULL;
	source->changed = st.st_mtim;
	PRB_TRY(prb_load_open(source->path, &load));
	PRB_TRY(find_end(load, &st, &head, &source->ended));
	source->head = PRB_MAX(source->head, head);
	malloc_trim(0);
	return NULL;
}

static struct prb_error *describe(struct prb_ship *ship, const char *path, const struct stat *st,
				  struct prb_ship_source *source)
{
	auto_load struct prb_load *load = NULL;
	struct prb_ring_header *h = &source->header;

	source->kind = PRB_SHIP_RECORDING;
	source->uid = st->st_uid;
	source->device = st->st_dev;
	source->inode = st->st_ino;
	source->changed = st->st_mtim;
	PRB_TRY(prb_load_open(path, &load));
	source->id = identify(ship, prb_load_about(load), st->st_uid);
	h->pid = (uint32_t)prb_load_about(load)->pid;
	memcpy(h->schema, "profile", sizeof("profile"));
	memcpy(h->name, "samples", sizeof("samples"));
	h->column_count = COLUMNS;
	/* It never fills up: nothing is to be hurried, or stored elsewhere. */
	h->chunks = 1;
	h->chunk_shift = 62;
	memcpy(source->columns, columns, sizeof(columns));
	PRB_TRY(find_end(load, st, &source->head, &source->ended));
	source->goal = source->head;
	h->realtime = (int64_t)(prb_load_about(load)->started * 1e9);
	return prb_str_copy(path, &source->path);
}

static bool is_sent(const struct prb_ship *ship, const struct prb_ship_source *source)
{
	const struct prb_ship_entry *entry = prb_ship_state_find(&ship->state, source->id);

	for (size_t i = 0; i < ship->sources.count; i++)
		if (ship->sources.items[i]->id == source->id)
			return true;
	return source->ended && entry && entry->next >= source->head;
}

struct prb_error *prb_ship_add_recording(struct prb_ship *ship, const char *path)
{
	struct prb_ship_source *source;
	struct prb_error *err;
	struct stat st;

	if (stat(path, &st))
		return prb_error_os(errno, "cannot read %s", path);
	if (prb_ship_find_source(ship, &st) || !prb_ship_has_room(ship, st.st_uid))
		return NULL;
	source = prb_ship_new_source();
	if (!source)
		return prb_error_nomem();
	err = describe(ship, path, &st, source);
	malloc_trim(0);
	if (err || is_sent(ship, source)) {
		prb_ship_source_destroy(source);
		return err;
	}
	return prb_ship_add(ship, source);
}

/** Adds a recording that `perf --background` or `--ring` of our user writes, or has written. */
static struct prb_error *add_known(struct prb_ship *ship, const struct prb_known_recording *known)
{
	const bool named = ship->options->targets && ship->options->targets->count;
	struct prb_error *err;
	struct stat st;

	/* Where it was noted there may be another file now, in a folder that is not ours alone. */
	if (lstat(known->path, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (named && !prb_ship_find_process(ship, known->pid)))
		return NULL;
	err = prb_ship_add_recording(ship, known->path);
	/* It has just begun, or is damaged: it is looked at again. */
	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		return NULL;
	}
	return err;
}

static struct prb_error *find_known(struct prb_ship *ship)
{
	prb_auto_known_list struct prb_known_list known = {};
	const struct prb_known_recording *one;

	PRB_TRY(prb_known_find(0, &known));
	prb_vec_each (one, &known.list)
		PRB_TRY(add_known(ship, one));
	return NULL;
}

struct prb_error *prb_ship_find_recordings(struct prb_ship *ship)
{
	const double now = prb_clock_seconds();

	if (now >= ship->next_recordings) {
		ship->next_recordings = now + FIND_EVERY;
		PRB_TRY(find_known(ship));
	}
	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];
		struct prb_error *err;

		if (source->kind != PRB_SHIP_RECORDING || source->refused)
			continue;
		/* When the rings of its process are known, too. */
		if (!source->job)
			PRB_TRY(place_source(ship, source));
		if (source->ended || now < source->next_look)
			continue;
		source->next_look = now + LOOK_EVERY;
		err = look(source);
		if (err && err->code == PRB_ERROR_NOMEM)
			return err;
		prb_error_destroy(err); /* it is being written to: later */
	}
	return NULL;
}

static void set_text(struct prb_ring_item *row, unsigned column, const char *text, size_t length)
{
	row->texts[column] = text;
	row->lengths[column] = (uint32_t)length;
	if (!text)
		row->nulls |= 1u << column;
}

static void set_string(struct prb_ring_item *row, unsigned column, const char *text)
{
	set_text(row, column, text, text ? strlen(text) : 0);
}

/** "outermost;…;innermost". A stack over MOST_STACK bytes loses its outermost frames. */
static void put_stack(const struct prb_tree *tree, uint32_t stack, struct prb_str *s)
{
	PRB_VEC(const char *) names = {};
	size_t length = 0;

	prb_str_truncate(s, 0);
	for (uint32_t at = stack; at && length < MOST_STACK; at = tree->stacks.items[at].parent) {
		const char **name = prb_vec_push(&names);

		if (!name) {
			s->failed = true;
			break;
		}
		*name = prb_tree_function_of(tree, at)->name;
		length += strlen(*name) + 1;
	}
	if (length >= MOST_STACK)
		prb_str_puts(s, "…;");
	for (size_t i = names.count; i-- > 0;)
		prb_str_printf(s, "%s%s", names.items[i], i ? ";" : "");
	prb_vec_free(&names);
}

/** Buffers for one run. */
struct sample {
	struct prb_str stack, waits;
	uint32_t of; /* number of the stack in `stack` */
};

static void describe_run(const struct prb_recording *about, const struct prb_run *run,
			 struct sample *sample, struct prb_ring_item *row)
{
	const struct prb_profile_thread *thread = &about->threads.items[run->thread];
	const struct prb_tree_function *f = prb_tree_function_of(about->tree, run->stack);
	const int32_t line =
		about->tree->frames.items[about->tree->stacks.items[run->stack].frame].line;
	const char *dot = strrchr(f->name, '.');

	if (sample->of != run->stack)
		put_stack(about->tree, run->stack, &sample->stack);
	sample->of = run->stack;
	prb_str_truncate(&sample->waits, 0);
	if (run->wait)
		prb_wait_text(about, run->wait, &sample->waits);
	row->time = (int64_t)(about->started * 1e9) + run->begin;
	row->pid = (uint32_t)prb_recording_pid(about, thread->process);
	row->tid = (uint32_t)thread->tid;
	set_string(row, THREAD, thread->name ? thread->name : thread->os_name);
	set_string(row, STATE, prb_run_state_name(run->state));
	row->cells[SAMPLES] = run->samples;
	row->cells[CPU] = (uint64_t)run->cpu;
	row->cells[WALL] = (uint64_t)run->wall;
	row->cells[QUEUE] = (uint64_t)run->queue;
	set_string(row, GIL, run->gil ? "holds" : run->wait_kind == PRB_WAIT_GIL ? "waits" : NULL);
	set_string(row, WAITS, run->wait ? prb_str_text(&sample->waits) : NULL);
	set_string(row, FUNC, f->kind == PRB_FUNCTION_PYTHON && dot && dot[1] ? dot + 1 : f->name);
	set_string(row, QUALNAME, f->name);
	set_string(row, FILE_NAME, prb_function_file(f));
	row->cells[LINE] = (uint64_t)line;
	if (!f->file || line <= 0)
		row->nulls |= 1u << LINE;
	set_text(row, STACK, prb_str_text(&sample->stack), sample->stack.length);
}

static void take_runs(struct prb_ship *ship, struct prb_ship_source *source,
		      const struct prb_recording *about, const struct prb_run *runs, size_t count,
		      const struct prb_row_place *place, struct sample *sample)
{
	const uint64_t first = source->sent >> SHIFT << SHIFT;
	const char *name = strrchr(source->path, '/');

	for (uint64_t i = source->sent - first; i < count && !prb_ship_is_full(ship); i++) {
		struct prb_ring_item row = {.number = source->sent};

		describe_run(about, &runs[i], sample, &row);
		set_string(&row, RECORDING, name ? name + 1 : source->path);
		prb_table_put_row(&ship->tables.items[source->table].there, &source->places, place,
				  columns, COLUMNS, &row, &ship->batch);
		ship->batch_rows++;
		source->sent++;
	}
	if (source->sent - first >= count)
		source->sent = first + (1u << SHIFT);
	ship->batch.failed |= sample->stack.failed || sample->waits.failed;
}

/** Chunks that a ring has dropped meanwhile. */
static void note_lost(struct prb_ship_source *source, int64_t chunk)
{
	const int64_t due = (int64_t)(source->sent >> SHIFT);
	prb_auto_str struct prb_str text = {};

	if (source->sent && chunk > due) {
		prb_str_printf(&text, "%s has dropped %" PRId64 " chunks before they were sent",
			       source->path, chunk - due);
		prb_warn(prb_str_text(&text));
	}
	source->sent = PRB_MAX(source->sent, (uint64_t)chunk << SHIFT);
}

static struct prb_error *read_chunks(struct prb_ship *ship, struct prb_ship_source *source,
				     const struct prb_row_place *place)
{
	auto_cursor struct prb_load_cursor *cursor = NULL;
	auto_load struct prb_load *load = NULL;
	struct sample sample = {};
	const struct prb_run *runs;
	struct prb_error *err = NULL;
	size_t count;

	PRB_TRY(prb_load_open(source->path, &load));
	if (identify(ship, prb_load_about(load), source->uid) != source->id)
		return prb_error_create(PRB_ERROR_BAD_DATA, "it was replaced by another recording");
	PRB_TRY(prb_load_cursor_create(load, &cursor));
	prb_load_cursor_skip(cursor, (int64_t)(source->sent >> SHIFT));
	while (!err && source->sent < source->head && !prb_ship_is_full(ship)) {
		err = prb_load_next(cursor, &runs, &count);
		if (err || !count)
			break;
		if (prb_load_cursor_chunk(cursor) >= (int64_t)(source->head >> SHIFT))
			break;
		note_lost(source, prb_load_cursor_chunk(cursor));
		take_runs(ship, source, prb_load_about(load), runs, count, place, &sample);
	}
	/* Chunks that do not exist any more count as sent. */
	if (!err && !prb_ship_is_full(ship))
		source->sent = source->head;
	prb_str_deinit(&sample.stack);
	prb_str_deinit(&sample.waits);
	return err;
}

struct prb_error *prb_ship_read_recording(struct prb_ship *ship, struct prb_ship_source *source,
					  const struct prb_row_place *place)
{
	struct prb_error *err;

	if (source->sent >= source->head)
		return NULL;
	err = read_chunks(ship, source, place);
	malloc_trim(0);
	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_BAD_DATA ||
	    err->code == PRB_ERROR_UNSUPPORTED)
		return err;
	/* Its recorder is writing, or it was removed, which the next look finds. */
	prb_error_destroy(err);
	source->next_look = 0;
	return NULL;
}
