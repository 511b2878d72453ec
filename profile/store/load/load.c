/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/load/load.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/str.h"
#include "profile/store/load/load_private.h"
#include "profile/store/load/row.h"
#include "profile/store/schema.h"
#include "profile/recording/tasks_view.h"

enum {
	MOST_THREADS = 1 << 22,
	MOST_DEPTH = 1 << 20,
	MOST_LINES = 1 << 20,
	MOST_WAITS = 1 << 27,
	MOST_IMAGES = 1 << 14,
	ORIGINS = PRB_SCHEMA_IMAGES | PRB_SCHEMA_ORIGINS,
};

static const int64_t most_address = INT64_MAX / 2;

/* Frames of all stacks together, which is what formats write. */
static const uint64_t most_frames = 1ull << 30;

typedef struct prb_error *row_reader(struct prb_load *load, struct prb_row *row);

static struct prb_error *read_rows(struct prb_load *load, const char *table, const char *sql,
				   row_reader *read)
{
	sqlite3_stmt *stmt = NULL;
	struct prb_error *err = prb_load_file_prepare(load->file.db, sql, &stmt);
	bool more = !err;

	while (more) {
		struct prb_row row = {.stmt = stmt, .table = table};

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

static struct prb_error *read_function(struct prb_load *load, struct prb_row *row)
{
	struct prb_tree *tree = load->about->tree;
	struct prb_tree_function *f = prb_vec_push(&tree->functions);
	const char *kind;

	if (!f)
		return prb_error_nomem();
	*f = (struct prb_tree_function){};
	prb_row_number(row, tree->functions.count - 1);
	kind = prb_row_text(row);
	if (!kind || !prb_schema_kind_of(kind, &f->kind))
		prb_row_complain(row, "is of no kind of function");
	PRB_TRY(prb_pool_share(tree->pool, prb_row_text(row), &f->name));
	if (!f->name)
		prb_row_complain(row, "has no name");
	PRB_TRY(prb_pool_share(tree->pool, prb_row_text(row), &f->file));
	f->first_line = (int32_t)prb_row_integer(row, INT32_MIN, INT32_MAX);
	return prb_pool_share(tree->pool, prb_row_text(row), &f->module);
}

static struct prb_error *read_image(struct prb_load *load, struct prb_row *row)
{
	struct prb_tree *tree = load->about->tree;
	const struct prb_tree_image *kept;
	struct prb_tree_image image;
	const char *path, *build_id;

	prb_row_number(row, tree->images.count);
	path = prb_row_text(row);
	PRB_TRY(prb_pool_share(tree->pool, path ? path : "", &image.path));
	build_id = prb_row_text(row);
	PRB_TRY(prb_pool_share(tree->pool, build_id ? build_id : "", &image.build_id));
	if (strlen(image.build_id) != strspn(image.build_id, "0123456789abcdef"))
		prb_row_complain(row, "has no build-id in hexadecimal");
	image.address = (uint64_t)prb_row_integer(row, 0, most_address);
	image.size = (uint64_t)prb_row_integer(row, 0, most_address);
	image.offset = (uint64_t)prb_row_integer(row, 0, most_address);
	PRB_TRY(prb_tree_image(tree, &image, &kept));
	if (kept->number + 1 != tree->images.count || tree->images.count > MOST_IMAGES)
		prb_row_complain(row, "is one too many");
	return NULL;
}

/* Of functions that were read before. */
static struct prb_error *read_origin(struct prb_load *load, struct prb_row *row)
{
	struct prb_tree *tree = load->about->tree;
	int64_t number = prb_row_integer(row, 0, (int64_t)tree->functions.count - 1);
	int64_t image = prb_row_integer(row, 0, (int64_t)tree->images.count - 1);
	int64_t address = prb_row_integer(row, 0, most_address);

	if (row->err)
		return NULL;
	tree->functions.items[number].image = tree->images.items[image];
	tree->functions.items[number].address = (uint64_t)address;
	return NULL;
}

static struct prb_error *read_frame(struct prb_load *load, struct prb_row *row)
{
	struct prb_tree *tree = load->about->tree;
	struct prb_tree_frame *frame = prb_vec_push(&tree->frames);

	if (!frame)
		return prb_error_nomem();
	prb_row_number(row, tree->frames.count - 1);
	frame->function = (uint32_t)prb_row_integer(row, 0, (int64_t)tree->functions.count - 1);
	frame->line = (int32_t)prb_row_integer(row, INT32_MIN, INT32_MAX);
	return NULL;
}

static struct prb_error *read_stack(struct prb_load *load, struct prb_row *row)
{
	struct prb_tree *tree = load->about->tree;
	struct prb_tree_stack *stack = prb_vec_push(&tree->stacks);
	size_t number = tree->stacks.count - 1;

	if (!stack)
		return prb_error_nomem();
	prb_row_number(row, number);
	/* Callers come first, so that no stack is among its own callers. */
	stack->parent = (uint32_t)prb_row_integer(row, 0, (int64_t)number - 1);
	stack->frame = (uint32_t)prb_row_integer(row, 0, (int64_t)tree->frames.count - 1);
	stack->depth = tree->stacks.items[stack->parent].depth + 1;
	if (stack->depth > MOST_DEPTH)
		prb_row_complain(row, "is too deep");
	return NULL;
}

static struct prb_error *read_thread(struct prb_load *load, struct prb_row *row)
{
	struct prb_profile_thread *thread = prb_vec_push(&load->about->threads);
	const char *os_name;

	if (!thread)
		return prb_error_nomem();
	prb_row_number(row, load->about->threads.count - 1);
	if (load->about->threads.count > MOST_THREADS)
		prb_row_complain(row, "is one too many");
	thread->process = (uint32_t)prb_row_integer(row, 0, (int64_t)load->about->others.count);
	thread->tid = (pid_t)prb_row_integer(row, 0, INT_MAX);
	PRB_TRY(prb_str_copy(prb_row_text(row), &thread->name));
	os_name = prb_row_text(row);
	PRB_TRY(prb_str_copy(os_name ? os_name : "", &thread->os_name));
	thread->cpu = prb_row_integer(row, 0, INT64_MAX);
	if (load->about->condition)
		thread->cpu = 0; /* what is in its windows is added up later */
	thread->ended = prb_row_integer(row, 0, 1);
	return NULL;
}

static struct prb_error *read_wait(struct prb_load *load, struct prb_row *row)
{
	struct prb_profile_wait *wait = prb_vec_push(&load->about->waits);
	const char *kind;
	int64_t owner;

	if (!wait)
		return prb_error_nomem();
	*wait = (struct prb_profile_wait){};
	prb_row_number(row, load->about->waits.count - 1);
	if (load->about->waits.count > MOST_WAITS)
		prb_row_complain(row, "is one too many");
	kind = prb_row_text(row);
	if (!kind || !prb_schema_wait_of(kind, &wait->kind))
		prb_row_complain(row, "is of no kind of wait");
	PRB_TRY(prb_str_copy(prb_row_text(row), &wait->what));
	owner = prb_row_optional(row, -1);
	if (owner >= (int64_t)load->about->threads.count)
		prb_row_complain(row, "names a thread that is not there");
	else
		wait->owner = (uint32_t)(owner + 1);
	return NULL;
}

static struct prb_error *read_other(struct prb_load *load, struct prb_row *row)
{
	struct prb_profile_process *other = prb_vec_push(&load->about->others);

	if (!other)
		return prb_error_nomem();
	*other = (struct prb_profile_process){};
	prb_row_number(row, load->about->others.count);
	if (load->about->others.count > MOST_THREADS)
		prb_row_complain(row, "is one too many");
	other->pid = (pid_t)prb_row_integer(row, 1, INT_MAX);
	PRB_TRY(prb_str_copy(prb_row_text(row), &other->command));
	PRB_TRY(prb_str_copy(prb_row_text(row), &other->python));
	other->cpu = prb_row_optional(row, -1);
	return NULL;
}

static struct prb_error *read_process(struct prb_load *load, struct prb_row *row)
{
	struct prb_recording *about = load->about;

	if (about->pid)
		return read_other(load, row);
	prb_row_number(row, 0);
	about->pid = (pid_t)prb_row_integer(row, 1, INT_MAX);
	PRB_TRY(prb_str_copy(prb_row_text(row), &about->command));
	PRB_TRY(prb_str_copy(prb_row_text(row), &about->python));
	about->process_cpu = prb_row_optional(row, -1);
	if (about->condition)
		about->process_cpu = -1;
	return NULL;
}

static void take_cost(struct prb_row *row, struct prb_profile_cost *cost)
{
	const double most = 1e15; /* µs: thirty years */

	cost->times = prb_row_count(row);
	cost->late = prb_row_count(row);
	cost->missed = prb_row_count(row);
	cost->unreadable = prb_row_count(row);
	cost->stops = prb_row_count(row);
	cost->again = prb_row_count(row);
	cost->pause_p50 = prb_row_real(row, most);
	cost->pause_p99 = prb_row_real(row, most);
	cost->pause_max = prb_row_real(row, most);
	cost->pause_total = prb_row_real(row, most);
	cost->own_cpu = prb_row_integer(row, 0, INT64_MAX);
}

static struct prb_error *read_recording(struct prb_load *load, struct prb_row *row)
{
	struct prb_recording *about = load->about;

	if (load->totals_s)
		prb_row_complain(row, "is one too many");
	PRB_TRY(prb_str_copy(prb_row_text(row), &load->writer));
	PRB_TRY(prb_str_copy(prb_row_text(row), &load->system));
	about->started = prb_row_real(row, 1e12);
	about->duration = prb_row_integer(row, 0, INT64_MAX);
	about->rate = prb_row_real(row, 1e9);
	about->tid = (pid_t)prb_row_optional(row, 0);
	about->native = prb_row_integer(row, 0, 1);
	about->end = prb_schema_end_of(prb_row_text(row));
	load->totals_s = prb_row_integer(row, 1, INT32_MAX);
	take_cost(row, &about->cost);
	about->cost.duration = about->duration;
	if (sqlite3_column_type(row->stmt, row->cell) != SQLITE_NULL)
		about->ring = (int64_t)(prb_row_real(row, 1e9) * 1e9);
	else
		row->cell++;
	about->tasks = prb_row_integer(row, 0, 1);
	about->unseen_children = prb_row_integer(row, 0, INT64_MAX);
	PRB_TRY(prb_str_copy(prb_row_text(row), &about->condition));
	if (sqlite3_column_type(row->stmt, row->cell) != SQLITE_NULL)
		about->around = (int64_t)(prb_row_real(row, 1e9) * 1e9);
	return NULL;
}

/* A row is there if the kernel sampled threads. */
static struct prb_error *read_unstopped(struct prb_load *load, struct prb_row *row)
{
	if (load->about->cost.ebpf)
		prb_row_complain(row, "is one too many");
	load->about->cost.ebpf = true;
	load->about->cost.unstopped = prb_row_count(row);
	return NULL;
}

/* One after the other. */
static struct prb_error *read_window(struct prb_load *load, struct prb_row *row)
{
	struct prb_recording *about = load->about;
	struct prb_profile_window *window = prb_vec_push(&about->windows);

	if (!window)
		return prb_error_nomem();
	*window = (struct prb_profile_window){};
	if (about->windows.count > MOST_LINES)
		prb_row_complain(row, "is one too many");
	window->begin =
		prb_row_integer(row, about->windows.count > 1 ? window[-1].end : 0, INT64_MAX);
	window->end = prb_row_integer(row, window->begin, INT64_MAX);
	return NULL;
}

static struct prb_error *read_line(struct prb_load *load, struct prb_row *row)
{
	struct prb_recording *about = load->about;
	struct prb_profile_line *line = prb_vec_push(&about->lines);
	const char *file = prb_row_text(row);

	if (!line)
		return prb_error_nomem();
	if (about->lines.count > MOST_LINES)
		prb_row_complain(row, "is one too many");
	PRB_TRY(prb_pool_share(about->tree->pool, file ? file : "", &line->file));
	line->line = (int32_t)prb_row_integer(row, 1, INT32_MAX);
	file = prb_row_text(row);
	return prb_str_copy(file ? file : "", &line->text);
}

static const struct {
	const char *table, *sql;
	row_reader *read;
} readers[] = {
	{"recording",
	 "SELECT probing, system, started, duration_ns, rate, tid, native, ended, totals_s, times, "
	 "late, "
	 "missed, "
	 "unreadable, stops, stopped_again, pause_p50_us, pause_p99_us, pause_max_us, "
	 "pause_total_us, own_cpu_ns, ring_s, tasks, unseen_children_ns, condition, around_s FROM "
	 "recording NOT INDEXED",
	 read_recording},
	{"windows", "SELECT begin_ns, end_ns FROM windows ORDER BY begin_ns", read_window},
	{"processes",
	 "SELECT process, pid, command, python, cpu_ns FROM processes NOT INDEXED "
	 "ORDER BY process",
	 read_process},
	{"threads",
	 "SELECT thread, process, tid, name, os_name, cpu_ns, ended FROM threads NOT INDEXED "
	 "ORDER BY thread",
	 read_thread},
	{"waits", "SELECT wait, kind, what, owner FROM waits NOT INDEXED ORDER BY wait", read_wait},
	{"functions",
	 "SELECT function, kind, name, file, first_line, module FROM functions NOT INDEXED "
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
	if (load->file.optional & PRB_SCHEMA_SOURCE)
		PRB_TRY(read_rows(load, "source",
				  "SELECT file, line, text FROM source ORDER BY file, line",
				  read_line));
	if (load->file.optional & PRB_SCHEMA_UNSTOPPED)
		PRB_TRY(read_rows(load, "unstopped", "SELECT samples FROM unstopped NOT INDEXED",
				  read_unstopped));
	if ((load->file.optional & ORIGINS) == ORIGINS) {
		PRB_TRY(read_rows(load, "images",
				  "SELECT image, path, build_id, address, size, file_offset "
				  "FROM images NOT INDEXED ORDER BY image",
				  read_image));
		PRB_TRY(read_rows(load, "origins",
				  "SELECT function, image, address FROM origins NOT INDEXED "
				  "ORDER BY function",
				  read_origin));
	}
	if (!load->totals_s || !load->about->pid)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"it was cut off before anything was recorded");
	PRB_TRY(check_depths(load->about->tree));
	load->stacks = load->about->tree->stacks.count;
	return prb_tasks_view(load->about, load->tasks, &load->renamed);
}

static struct prb_error *open_load(struct prb_load *load, const char *path, int fd)
{
	PRB_TRY(prb_str_copy(path, &load->path));
	PRB_TRY(prb_recording_create(&load->about));
	if (fd >= 0) {
		PRB_TRY(prb_load_file_open_copy(&load->file, fd));
		return read_all(load);
	}
	PRB_TRY(prb_load_file_open(&load->file, path));
	return prb_error_prefix(read_all(load), "%s", path);
}

/* With @p fd, opens that file, whatever the path is. */
static struct prb_error *open_any(const char *path, int fd, bool tasks, struct prb_load **ret)
{
	struct prb_load *load = calloc(1, sizeof(*load));
	struct prb_error *err;

	if (!load)
		return prb_error_nomem();
	load->file.fd = -1;
	load->tasks = tasks;
	err = open_load(load, path, fd);
	if (err)
		prb_load_destroy(load);
	else
		*ret = load;
	return err;
}

struct prb_error *prb_load_open(const char *path, struct prb_load **ret)
{
	return prb_load_open_view(path, false, ret);
}

struct prb_error *prb_load_open_view(const char *path, bool tasks, struct prb_load **ret)
{
	return open_any(path, -1, tasks, ret);
}

struct prb_error *prb_load_open_copy(int fd, struct prb_load **ret)
{
	return open_any(NULL, fd, false, ret);
}

void prb_load_destroy(struct prb_load *load)
{
	if (!load)
		return;
	prb_load_file_close(&load->file);
	prb_recording_destroy(load->about);
	free(load->path);
	free(load->renamed);
	free(load->writer);
	free(load->system);
	free(load);
}

const struct prb_recording *prb_load_about(const struct prb_load *load)
{
	return load->about;
}

const char *prb_load_writer(const struct prb_load *load)
{
	return load->writer;
}

const char *prb_load_system(const struct prb_load *load)
{
	return load->system;
}
