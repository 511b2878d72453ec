/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which processes and rings there are. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/own_file.h"
#include "base/siphash.h"
#include "clickhouse/ship_private.h"
#include "cluster/jobs/job.h"
#include "command/exit.h"
#include "target/proc/process.h"
#include "rings/files.h"
#include "target/recorded/left.h"
#include "target/recorded/recorded.h"
#include "target/spec/target_spec.h"
#include "target/target.h"

/** Twice what an agent makes at most. */
static const uint64_t MOST_BYTES = UINT64_C(2) << 30;

/* Seconds. A process makes its first ring when it first has a row, so new ones are looked at often
 * and old ones seldom: a memory map takes milliseconds. */
static const double LIST_EVERY = 5, FULL_EVERY = 60, LEFT_EVERY = 60, LEFT_REST = 5, FIRST_LOOK = 1,
		    MOST_LOOK = 120;

void prb_ship_source_destroy(struct prb_ship_source *source)
{
	if (!source)
		return;
	prb_ring_close(source->open);
	prb_cold_deinit(&source->cold);
	prb_close_guard(&source->fd);
	prb_vec_free(&source->holders);
	free(source->path);
	free(source->job);
	free(source);
}

void prb_ship_process_deinit(struct prb_ship_process *process)
{
	prb_close_guard(&process->pidfd);
	prb_close_guard(&process->folder);
	free(process->job);
}

bool prb_ship_look(struct prb_ship_source *source)
{
	uint64_t head;
	bool good =
		source->fd >= 0 && pread(source->fd, &head, sizeof(head),
					 offsetof(struct prb_ring_header, head)) == sizeof(head);

	if (good && head >= source->head && head <= INT64_MAX)
		source->head = head;
	return good;
}

/** `_ring`: the same for a ring after its process has ended, and after the daemon was restarted. */
static uint64_t identify(const struct prb_ship *ship, const struct prb_ring_header *h, uid_t uid)
{
	static const uint64_t key[2] = {0x70726f62696e6721, 0x72696e6773};
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%s\n%u\n%u\n%" PRIu64 "\n%" PRId64 "\n%" PRId64 "\n%s\n%s",
		       ship->host, (unsigned)uid, h->pid, h->start_time, h->realtime, h->monotonic,
		       h->schema, h->name);
	return prb_siphash(2, 4, key, prb_str_text(&text), text.length);
}

bool prb_ship_has_room(struct prb_ship *ship, uid_t uid)
{
	const size_t most =
		uid == geteuid() ? ship->most_sources : ship->most_sources / PRB_SHIP_SHARE;
	prb_auto_str struct prb_str text = {};
	size_t count = 0;

	if (ship->sources.count >= ship->most_sources)
		return false;
	for (size_t i = 0; i < ship->sources.count; i++)
		count += ship->sources.items[i]->uid == uid;
	if (count < most)
		return true;
	if (ship->crowded_by != uid) {
		prb_str_printf(&text, "user %u has over %zu rings: the others are not sent",
			       (unsigned)uid, most);
		prb_warn(prb_str_text(&text));
	}
	ship->crowded_by = uid;
	return false;
}

/** Refuses rings larger than any agent makes: they would use up memory and time. */
static struct prb_error *check_size(const struct prb_ring *ring, const struct stat *st)
{
	const struct prb_ring_header *h = &ring->header;

	if ((uint64_t)st->st_size > MOST_BYTES ||
	    (uint64_t)h->slot_size << h->chunk_shift > PRB_COLD_CHUNK_BYTES)
		return prb_error_create(PRB_ERROR_BAD_DATA, "it is larger than any");
	return NULL;
}

struct prb_ship_source *prb_ship_find_source(const struct prb_ship *ship, const struct stat *st)
{
	for (size_t i = 0; i < ship->sources.count; i++)
		if (ship->sources.items[i]->device == st->st_dev &&
		    ship->sources.items[i]->inode == st->st_ino)
			return ship->sources.items[i];
	return NULL;
}

static struct prb_error *hold(struct prb_ship_source *source, pid_t pid)
{
	pid_t *holder;

	prb_vec_each (holder, &source->holders)
		if (*holder == pid)
			return NULL;
	holder = prb_vec_push(&source->holders);
	if (!holder)
		return prb_error_nomem();
	*holder = pid;
	source->ended = false;
	return NULL;
}

struct prb_error *prb_ship_describe(struct prb_ship *ship, const char *path, int fd,
				    const struct stat *st, struct prb_ship_source *source)
{
	char name[PRB_TABLE_NAME];
	prb_auto_ring struct prb_ring *ring = NULL;
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return prb_error_os(errno, "cannot keep %s open", path);
	PRB_TRY(prb_ring_open(copy, path, &ring));
	if (ring->cold)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s is a cold file", path);
	PRB_TRY(check_size(ring, st));
	PRB_TRY(prb_table_name(&ring->header, source->kind != PRB_SHIP_RING, name));
	source->header = ring->header;
	memcpy(source->columns, ring->columns, sizeof(source->columns));
	source->device = st->st_dev;
	source->inode = st->st_ino;
	source->uid = st->st_uid;
	source->id = identify(ship, &ring->header, st->st_uid);
	source->head = source->goal = ring->header.head;
	return prb_str_copy(path, &source->path);
}

static struct prb_error *note_job(const struct prb_ship *ship, const char *job,
				  struct prb_ship_source *source)
{
	const struct prb_ship_entry *entry = prb_ship_state_find(&ship->state, source->id);

	if (ship->options->job)
		job = ship->options->job;
	else if (!job && entry)
		job = entry->job;
	return prb_str_copy(job ? job : "", &source->job);
}

struct prb_error *prb_ship_refuse(struct prb_ship *ship, struct prb_ship_source *source,
				  struct prb_error *err, const char *path)
{
	prb_auto_str struct prb_str text = {};

	if (err->code == PRB_ERROR_NOMEM)
		return err;
	prb_str_printf(&text, "%s is not sent: %s", path, err->message);
	prb_warn(prb_str_text(&text));
	prb_error_destroy(err);
	source->refused = true;
	ship->sums.refused++;
	return NULL;
}

struct prb_ship_source *prb_ship_new_source(void)
{
	struct prb_ship_source *source = calloc(1, sizeof(*source));

	if (source)
		source->fd = source->cold.fd = source->cold.folder = -1;
	return source;
}

struct prb_error *prb_ship_add(struct prb_ship *ship, struct prb_ship_source *source)
{
	struct prb_ship_source **slot = prb_vec_push(&ship->sources);

	if (!slot) {
		prb_ship_source_destroy(source);
		return prb_error_nomem();
	}
	*slot = source;
	ship->sums.rings++;
	return NULL;
}

/** True if all of an ended ring was sent earlier. */
static bool is_sent(const struct prb_ship *ship, const struct prb_ship_source *source)
{
	const struct prb_ship_entry *entry = prb_ship_state_find(&ship->state, source->id);

	return source->ended && entry && entry->next >= source->head;
}

static struct prb_error *add_source(struct prb_ship *ship, struct prb_ring_file *file,
				    const struct stat *st, const char *job, pid_t pid)
{
	struct prb_ship_source *source;
	struct prb_error *err;

	if (!prb_ship_has_room(ship, st->st_uid))
		return NULL;
	source = prb_ship_new_source();
	if (!source)
		return prb_error_nomem();
	err = prb_ship_describe(ship, file->path, file->fd, st, source);
	if (err)
		err = prb_ship_refuse(ship, source, err, file->path);
	source->device = st->st_dev;
	source->inode = st->st_ino;
	source->uid = st->st_uid;
	if (!err)
		err = note_job(ship, job, source);
	if (!err && pid)
		err = hold(source, pid);
	source->ended = !pid;
	if (err || is_sent(ship, source)) {
		prb_ship_source_destroy(source);
		return err;
	}
	source->fd = prb_steal_fd(&file->fd);
	return prb_ship_add(ship, source);
}

/** Rings that cannot be opened are said once for each process. */
static void tell_unreadable(const struct prb_ring_files *files, pid_t pid, bool *told)
{
	prb_auto_str struct prb_str text = {};

	if (!files->unreadable || *told)
		return;
	*told = true;
	prb_str_printf(&text, "%u rings of process %d cannot be read: %s", files->unreadable,
		       (int)pid, files->why ? files->why : "no memory");
	prb_warn(prb_str_text(&text));
}

/** The rings of a target, but for its cold files. @p pid: of the live process, or 0. */
static struct prb_error *add_rings(struct prb_ship *ship, struct prb_target *target,
				   const char *job, pid_t pid, bool *told)
{
	struct prb_ring_files files = {};
	struct prb_error *err = prb_ring_files_find(target, &files);
	struct prb_ring_file *file;

	tell_unreadable(&files, pid ? pid : target->pid, told);

	prb_vec_each (file, &files.list) {
		const char *name = strrchr(file->path, '/');
		struct prb_ship_source *known;
		struct stat st;

		if (err || !name || prb_cold_is_name(name) || fstat(file->fd, &st))
			continue;
		known = prb_ship_find_source(ship, &st);
		if (!known)
			err = add_source(ship, file, &st, job, pid);
		else if (pid)
			err = hold(known, pid);
	}
	prb_ring_files_deinit(&files);
	return err;
}

struct prb_error *prb_ship_find_job(struct prb_target *target, char **ret, long *ret_rank)
{
	prb_auto_str struct prb_str environment = {};
	prb_auto_error struct prb_error *err =
		prb_target_read_file(target, &environment, "environ");

	free(*ret);
	*ret = NULL;
	*ret_rank = err ? -1 : prb_process_job(&environment).rank;
	if (*ret_rank < 0)
		return NULL;
	*ret = prb_job_name_of_all(&environment, target->pid);
	/* Each row contains it, and it is the process's claim: bound its length. */
	if (*ret && strlen(*ret) > PRB_SHIP_JOB)
		(*ret)[PRB_SHIP_JOB] = '\0';
	return *ret ? NULL : prb_error_nomem();
}

/** Keeps the folder of its rings, to watch for new ones. */
static void keep_folder(const struct prb_ship *ship, struct prb_ship_process *process)
{
	for (size_t i = 0; process->folder < 0 && i < ship->sources.count; i++) {
		const struct prb_ship_source *source = ship->sources.items[i];
		const char *end = source->path ? strrchr(source->path, '/') : NULL;
		prb_auto_free char *path = NULL;
		const pid_t *holder;
		struct stat st;

		prb_vec_each (holder, &source->holders)
			if (*holder == process->pid && end && !path)
				path = strndup(source->path, (size_t)(end - source->path));
		if (!path)
			continue;
		process->folder = prb_own_folder_open(path, source->uid);
		if (process->folder >= 0 && !fstat(process->folder, &st))
			process->changed = st.st_mtim;
	}
}

static bool has_changed(struct prb_ship_process *process)
{
	struct stat st;

	if (process->folder < 0 || fstat(process->folder, &st) ||
	    (st.st_mtim.tv_sec == process->changed.tv_sec &&
	     st.st_mtim.tv_nsec == process->changed.tv_nsec))
		return false;
	process->changed = st.st_mtim;
	return true;
}

/** If the process ends meanwhile, its rings are found in the folder that it leaves. */
static struct prb_error *look_at(struct prb_ship *ship, struct prb_ship_process *process)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_error *err = prb_target_open_process(process->pid, &target);
	const double now = prb_clock_seconds();
	long rank;

	if (!err && !process->job)
		err = prb_ship_find_job(target, &process->job, &rank);
	if (!err)
		err = add_rings(ship, target, process->job, process->pid, &process->told);
	if (!err)
		keep_folder(ship, process);
	process->wait = process->wait ? PRB_MIN(2 * process->wait, MOST_LOOK) : FIRST_LOOK;
	process->next_look = now + process->wait;
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

struct prb_ship_process *prb_ship_find_process(const struct prb_ship *ship, pid_t pid)
{
	struct prb_ship_process *process;

	prb_vec_each (process, &ship->processes)
		if (process->pid == pid)
			return process;
	return NULL;
}

static struct prb_error *add_process(struct prb_ship *ship, pid_t pid)
{
	struct prb_ship_process *process = prb_ship_find_process(ship, pid);

	if (!process) {
		process = prb_vec_push(&ship->processes);
		if (!process)
			return prb_error_nomem();
		*process = (struct prb_ship_process){
			.pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0), .folder = -1};
	}
	return NULL;
}

/** No process maps these rings any more: they are read to their ends. */
static void end_process(struct prb_ship *ship, pid_t pid)
{
	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];

		if (source->kind != PRB_SHIP_RING)
			continue;
		for (size_t j = 0; j < source->holders.count; j++)
			if (source->holders.items[j] == pid)
				source->holders.items[j--] =
					source->holders.items[--source->holders.count];
		source->ended = !source->holders.count;
	}
}

static bool has_ended(const struct prb_ship_process *process)
{
	struct prb_process now = {};
	bool gone;

	if (process->ended)
		return true;
	if (process->pidfd >= 0)
		return false; /* poll() has reported it */
	prb_auto_error struct prb_error *err = prb_process_describe(process->pid, &now);
	gone = err || now.kind != PRB_PROCESS_PROGRAM;
	prb_process_deinit(&now);
	return gone;
}

static int by_pid(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool was_there(const struct prb_ship *ship, pid_t pid)
{
	return ship->pids.list.count &&
	       bsearch(&pid, ship->pids.list.items, ship->pids.list.count, sizeof(pid), by_pid);
}

/** Lists all pids. *ret is true if there is a new one since the last list. */
static struct prb_error *find_pids(struct prb_ship *ship, bool *ret)
{
	prb_auto_pids struct prb_pids before = {}, now = {};
	const pid_t *pid;

	PRB_TRY(prb_pids_of_all(&now));
	*ret = false;
	prb_vec_each (pid, &now.list)
		*ret |= !was_there(ship, *pid);
	before = ship->pids;
	ship->pids = now;
	now = (struct prb_pids){};
	return NULL;
}

static struct prb_error *list_all(struct prb_ship *ship)
{
	__attribute__((cleanup(prb_python_processes_deinit))) struct prb_python_processes all = {};
	const struct prb_python_process *p;

	PRB_TRY(prb_process_list(&all));
	prb_vec_each (p, &all.list)
		if (!p->refusal)
			PRB_TRY(add_process(ship, p->process.pid));
	return NULL;
}

static struct prb_error *look_at_folder(struct prb_ship *ship, const char *path)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_error *err = prb_spec_open(path, NULL, &target);
	bool told = true; /* it is looked at again and again */

	if (!err)
		err = add_rings(ship, target, NULL, 0, &told);
	return err;
}

/** Looks at rings left by ended processes, in the agents' folders. */
static struct prb_error *look_at_left(struct prb_ship *ship)
{
	struct prb_left_list left = {};
	struct prb_error *err = prb_left_find_all(&left);
	const struct prb_left *one;

	prb_vec_each (one, &left.list) {
		if (err)
			break;
		err = look_at_folder(ship, one->path);
		if (err && err->code != PRB_ERROR_NOMEM) {
			prb_error_destroy(err);
			err = NULL;
		}
	}
	prb_left_list_deinit(&left);
	return err;
}

static struct prb_error *find_named(struct prb_ship *ship)
{
	for (size_t i = 0; i < ship->options->targets->count; i++) {
		const char *text = ship->options->targets->items[i];
		prb_auto_target struct prb_target *target = NULL;
		bool told = false;

		PRB_TRY(prb_spec_open(text, NULL, &target));
		if (target->live && target->local)
			PRB_TRY(add_process(ship, target->pid));
		else if (prb_recorded_path(target))
			PRB_TRY(prb_ship_add_recording(ship, prb_recorded_path(target)));
		else
			PRB_TRY(add_rings(ship, target, NULL, 0, &told));
	}
	return NULL;
}

/** New processes and folders, when it is time for them. */
static struct prb_error *find_new(struct prb_ship *ship, double now)
{
	const bool named = ship->options->targets && ship->options->targets->count;

	if (named) {
		if (!ship->next_list)
			PRB_TRY(find_named(ship));
		ship->next_list = 1;
		return NULL;
	}
	if (now >= ship->next_list) {
		bool found;

		/* A shell may still become a Python: what is new is looked at twice. */
		PRB_TRY(find_pids(ship, &found));
		if (found || now >= ship->next_full) {
			PRB_TRY(list_all(ship));
			ship->next_full = now + (found ? LIST_EVERY : FULL_EVERY);
		}
		ship->next_list = now + LIST_EVERY;
	}
	if (now >= ship->next_left) {
		PRB_TRY(look_at_left(ship));
		ship->next_left = now + LEFT_EVERY;
	}
	return NULL;
}

struct prb_error *prb_ship_find(struct prb_ship *ship)
{
	const double now = prb_clock_seconds();
	bool ended = false;

	for (size_t i = 0; i < ship->processes.count; i++) {
		struct prb_ship_process *process = &ship->processes.items[i];

		if (!has_ended(process))
			continue;
		/* A ring that it made last may be new to us: it is in the folder that it left. */
		ended = true;
		end_process(ship, process->pid);
		prb_ship_process_deinit(process);
		*process = ship->processes.items[--ship->processes.count];
		i--;
	}
	if (ended)
		ship->next_left = PRB_MIN(ship->next_left, now + LEFT_REST);
	PRB_TRY(find_new(ship, now));
	for (size_t i = 0; i < ship->processes.count; i++)
		if (now >= ship->processes.items[i].next_look ||
		    has_changed(&ship->processes.items[i]))
			PRB_TRY(look_at(ship, &ship->processes.items[i]));
	return prb_ship_find_recordings(ship);
}
