/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metrics of processes, as rows: a child of ours prints them ('probing export prometheus'), so that
 * what it reads of hostile processes is not in the daemon, nor its memory. They go into a ring of
 * our own beside the state, which is sent like any other, also by the next daemon. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/own_file.h"
#include "clickhouse/ship_private.h"
#include "command/exit.h"
#include "command/start.h"

enum {
	SLOT = 512,
	CHUNK_SHIFT = 9,
	CHUNKS = 64, /* 32,768 rows in 16 MiB: a machine with 1,000 processes */
	MOST_TEXT = 32 << 20,
	MOST_NAMED = 128,
	QUOTE = 0x22,
};

static const double READ_S = 60;

enum { JOB, RANK, UID, METRIC, LABEL, VALUE, COLUMNS };

/* The first ones are columns that each table has. */
static const struct prb_ring_column columns[COLUMNS] = {
	[JOB] = {"job", "", PRB_RING_TEXT, 0},	   [RANK] = {"rank", "", PRB_RING_INTEGER, 0},
	[UID] = {"uid", "", PRB_RING_INTEGER, 0},  [METRIC] = {"metric", "", PRB_RING_TEXT, 0},
	[LABEL] = {"label", "", PRB_RING_TEXT, 0}, [VALUE] = {"value", "", PRB_RING_REAL, 0},
};

static const struct prb_ring_shape shape = {.schema = "probing",
					    .name = "metrics",
					    .columns = columns,
					    .column_count = COLUMNS,
					    .slot_size = SLOT,
					    .chunk_shift = CHUNK_SHIFT,
					    .chunks = CHUNKS};

/** "ship-0123456789abcdef": each database has rings of its own. */
static const char *own_name(const struct prb_ship *ship)
{
	return strrchr(ship->state.path, '/') + 1;
}

static bool is_ring(const struct prb_ship *ship, const char *name)
{
	const char *own = own_name(ship);
	int pid, end = 0;
	int64_t time;

	return !strncmp(name, own, strlen(own)) &&
	       sscanf(name + strlen(own), ".metrics-%d-%" SCNd64 ".ring%n", &pid, &time, &end) ==
		       2 &&
	       end && !name[strlen(own) + (size_t)end];
}

static struct prb_error *follow(struct prb_ship *ship, const char *name, bool ended)
{
	struct prb_ship_source *source = prb_ship_new_source();
	prb_auto_free char *path = prb_format("%s/%s", ship->state.folder, name);
	prb_auto_close int fd = -1;
	struct prb_error *err;
	struct stat st;
	uint64_t size;

	if (!source || !path) {
		prb_ship_source_destroy(source);
		return prb_error_nomem();
	}
	fd = prb_own_file_open(ship->state.folder_fd, name, O_RDONLY, geteuid(), &size);
	source->kind = PRB_SHIP_METRICS;
	source->ended = ended;
	err = fd < 0 || fstat(fd, &st) ? prb_error_os(errno, "cannot read %s", path)
				       : prb_ship_describe(ship, path, fd, &st, source);
	/* Made by another version, or cut off while it was made. */
	if (!err && (source->header.column_count != COLUMNS ||
		     memcmp(source->columns, columns, sizeof(columns)) != 0))
		err = prb_error_create(PRB_ERROR_UNSUPPORTED, "its columns are others");
	if (!err)
		err = prb_str_copy("", &source->job);
	if (err) {
		if (err->code == PRB_ERROR_BAD_DATA && ended)
			unlinkat(ship->state.folder_fd, name, 0);
		err = prb_ship_refuse(ship, source, err, path);
		prb_ship_source_destroy(source);
		return err;
	}
	source->fd = prb_steal_fd(&fd);
	return prb_ship_add(ship, source);
}

struct prb_error *prb_ship_adopt_metrics(struct prb_ship *ship)
{
	int copy = openat(ship->state.folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!stream)
		return prb_error_os(errno, "cannot list %s", ship->state.folder);
	while ((entry = readdir(stream)))
		if (is_ring(ship, entry->d_name))
			PRB_TRY(follow(ship, entry->d_name, true));
	return NULL;
}

void prb_ship_remove_metrics(const struct prb_ship *ship, const struct prb_ship_source *source)
{
	const char *name = strrchr(source->path, '/');

	if (source->kind == PRB_SHIP_METRICS && source->fd >= 0 && name)
		unlinkat(ship->state.folder_fd, name + 1, 0);
}

static struct prb_error *make_ring(struct prb_ship *ship)
{
	struct prb_ship_metrics *m = &ship->metrics;
	prb_auto_free char *name = prb_format("%s.metrics-%d-%" PRId64 ".ring", own_name(ship),
					      (int)getpid(), m->time);

	if (m->made)
		return NULL;
	if (!name)
		return prb_error_nomem();
	prb_ring_maker_deinit(&m->ring);
	PRB_TRY(prb_ring_make(ship->state.folder_fd, name, &shape, &m->ring));
	m->made = true;
	return follow(ship, name, false);
}

/** The value of KEY="VALUE" among the labels of a line; *ret_length is 0 if there is none. */
static const char *label_of(const char *labels, const char *key, size_t *ret_length)
{
	for (const char *at = labels; *at && *at != '}';) {
		size_t name = strcspn(at, "="), value;

		if (at[name] != '=' || at[name + 1] != QUOTE)
			break;
		value = strcspn(at + name + 2, "\"");
		/* NULL: any label but the process's own. */
		if (key ? name == strlen(key) && !strncmp(at, key, name)
			: !(name == 3 && !strncmp(at, "pid", 3)) &&
				    !(name == 4 && !strncmp(at, "rank", 4))) {
			*ret_length = value;
			return at + name + 2;
		}
		at += name + 2 + value;
		at += *at == QUOTE;
		at += *at == ',';
	}
	*ret_length = 0;
	return "";
}

static void set_text(struct prb_ring_item *row, unsigned column, const char *text, size_t length)
{
	row->texts[column] = text;
	row->lengths[column] = (uint32_t)length;
	if (!length)
		row->nulls |= 1u << column;
}

/** Its job and user, as far as the process is followed. */
static void set_process(const struct prb_ship *ship, pid_t pid, struct prb_ring_item *row)
{
	const struct prb_ship_process *process = prb_ship_find_process(ship, pid);
	const char *job = ship->options->job;
	prb_auto_free char *path = prb_format("/proc/%d", (int)pid);
	struct stat st;

	if (!job && process)
		job = process->job;
	set_text(row, JOB, job ? job : "", PRB_MIN(strlen(job ? job : ""), (size_t)PRB_SHIP_JOB));
	if (!path || stat(path, &st))
		row->nulls |= 1u << UID;
	else
		row->cells[UID] = st.st_uid;
}

static const char NAMES[] = "probing_process_info{";

/** A line "probing_threads{pid="1",rank="0",state="running"} 3"; others have no process. */
static struct prb_error *take_line(struct prb_ship *ship, const char *line)
{
	struct prb_ship_metrics *m = &ship->metrics;
	const char *labels = strchr(line, '{'), *end = labels ? strstr(labels, "} ") : NULL;
	struct prb_ring_item row = {.time = m->time};
	size_t length;
	double value;
	char *after;
	pid_t pid;

	/* What a process is called is in the other columns. */
	if (*line == '#' || !end || !strncmp(line, NAMES, strlen(NAMES)))
		return NULL;
	pid = (pid_t)strtol(label_of(labels + 1, "pid", &length), NULL, 10);
	if (!length || pid <= 0 ||
	    (ship->options->targets && ship->options->targets->count &&
	     !prb_ship_find_process(ship, pid)))
		return NULL;
	value = strtod(end + 2, &after);
	if (after == end + 2)
		return NULL;
	row.pid = row.tid = (uint32_t)pid;
	row.cells[RANK] = (uint64_t)strtol(label_of(labels + 1, "rank", &length), NULL, 10);
	if (!length)
		row.nulls |= 1u << RANK;
	set_process(ship, pid, &row);
	set_text(&row, METRIC, line, (size_t)(labels - line));
	after = (char *)label_of(labels + 1, NULL, &length);
	set_text(&row, LABEL, after, length);
	memcpy(&row.cells[VALUE], &value, sizeof(value));
	return prb_ring_make_row(&m->ring, &row);
}

static struct prb_error *take_all(struct prb_ship *ship)
{
	char *rest = NULL, *text = ship->metrics.text.data;

	if (!ship->metrics.text.length)
		return NULL;
	PRB_TRY(make_ring(ship));
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		PRB_TRY(take_line(ship, line));
	return NULL;
}

/** The child: prints metrics of the followed processes, or of all there are. */
static void be_child(const struct prb_ship *ship, int out, pid_t parent)
{
	char names[MOST_NAMED][16];
	char *words[MOST_NAMED + 4] = {"probing", "export", "prometheus"};
	const bool named = ship->options->targets && ship->options->targets->count;
	size_t count = 3;
	sigset_t none;
	int null;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (getppid() != parent || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDERR_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(PRB_EXIT_FAILED);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; named && i < ship->processes.count && i < MOST_NAMED; i++) {
		snprintf(names[i], sizeof(names[i]), "%d", (int)ship->processes.items[i].pid);
		words[count++] = names[i];
	}
	/* Too many to name: the child prints all processes, and only the followed ones are used. */
	if (named && ship->processes.count > MOST_NAMED)
		words[3] = NULL;
	prb_start_become_at(NULL, words);
	_exit(PRB_EXIT_FAILED);
}

static struct prb_error *start_child(struct prb_ship *ship)
{
	struct prb_ship_metrics *m = &ship->metrics;
	prb_auto_close int out = -1;
	const pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	m->from_child = ends[0];
	out = ends[1];
	m->time = prb_clock_calendar_ns();
	m->limit = prb_clock_seconds() + READ_S;
	prb_str_truncate(&m->text, 0);
	fflush(NULL);
	m->child = fork();
	if (!m->child)
		be_child(ship, out, parent);
	if (m->child > 0)
		return NULL;
	m->child = 0;
	prb_close_guard(&m->from_child);
	return prb_error_os(errno, "cannot start ourselves");
}

/** True when it has printed all. */
static bool has_printed(struct prb_ship_metrics *m)
{
	char part[16384];
	ssize_t length;

	fcntl(m->from_child, F_SETFL, O_NONBLOCK);
	while ((length = read(m->from_child, part, sizeof(part))) > 0)
		if (m->text.length < MOST_TEXT)
			prb_str_append(&m->text, part, (size_t)length);
	return !length || (errno != EAGAIN && errno != EINTR);
}

/** Metrics are lost then, and no rows of others. Said once until it works again. */
static struct prb_error *tell(struct prb_ship_metrics *m, struct prb_error *err)
{
	prb_auto_str struct prb_str text = {};

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	if (err && !m->told) {
		prb_str_printf(&text, "metrics cannot be read: %s", err->message);
		prb_warn(prb_str_text(&text));
	}
	m->told = err != NULL;
	prb_error_destroy(err);
	return NULL;
}

void prb_ship_end_metrics(struct prb_ship *ship)
{
	struct prb_ship_metrics *m = &ship->metrics;

	if (m->child) {
		kill(m->child, SIGKILL);
		waitpid(m->child, NULL, 0);
	}
	m->child = 0;
	prb_close_guard(&m->from_child);
	prb_ring_maker_deinit(&m->ring);
	prb_str_deinit(&m->text);
}

static struct prb_error *finish(struct prb_ship *ship, bool late)
{
	struct prb_ship_metrics *m = &ship->metrics;
	struct prb_error *err = NULL;
	int status = 0;

	if (late)
		kill(m->child, SIGKILL);
	waitpid(m->child, &status, 0);
	m->child = 0;
	prb_close_guard(&m->from_child);
	m->readings++;
	if (late)
		err = prb_error_create(PRB_ERROR_TIMEOUT, "it took over %.0f s", READ_S);
	/* Of named processes, one may have ended meanwhile. */
	else if (status && !(ship->options->targets && ship->options->targets->count))
		err = prb_error_create(PRB_ERROR_FAILED, "'probing export prometheus' failed");
	else if (m->text.failed)
		err = prb_error_nomem();
	else
		err = take_all(ship);
	prb_str_deinit(&m->text);
	return tell(m, err);
}

struct prb_error *prb_ship_read_metrics(struct prb_ship *ship)
{
	struct prb_ship_metrics *m = &ship->metrics;
	const double now = prb_clock_seconds();

	if (m->child && (has_printed(m) || now > m->limit))
		return finish(ship, now > m->limit);
	if (m->child || ship->options->metrics <= 0 || now < m->next ||
	    (ship->options->once && m->readings))
		return NULL;
	m->next = now + ship->options->metrics;
	return tell(m, start_child(ship));
}

void prb_ship_place_metric(const struct prb_ring_item *row, struct prb_str *job,
			   struct prb_row_place *place)
{
	prb_str_truncate(job, 0);
	if (row->texts[JOB])
		prb_str_append(job, row->texts[JOB], row->lengths[JOB]);
	place->job = prb_str_text(job);
	place->role = NULL;
	place->rank = row->nulls >> RANK & 1 ? -1 : (int64_t)row->cells[RANK];
	place->uid = row->nulls >> UID & 1 ? (uint32_t)-1 : (uint32_t)row->cells[UID];
}
