/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A live process as a target. Everything is read relative to one descriptor of /proc/PID, so that
 * a pid that is used again for another process is never mistaken for ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "target/proc/process.h"
#include "target/proc/rights.h"
#include "target/task.h"
#include "target/architecture.h"
#include "target/target.h"
#include "target/proc/pids.h"

struct process {
	struct prb_target target;
	int proc;  /* /proc/PID */
	int tasks; /* /proc/PID/task, -1 until first needed: what lies deep is found sooner from it
		    */
	bool special;		  /* we may have more rights than the target */
	struct prb_rights rights; /* of the target when it was opened, if so */
};

static struct prb_error *gone_or(struct process *p, int os_errno, const char *name)
{
	if (os_errno == ESRCH)
		return prb_error_os(ESRCH, "process %d is gone", p->target.pid);
	if (os_errno == ENOENT) {
		/* The folder outlives its process only as an empty shell. */
		if (faccessat(p->proc, "stat", F_OK, 0))
			return prb_error_os(ESRCH, "process %d is gone", p->target.pid);
		return prb_error_create(PRB_ERROR_NOT_FOUND, "/proc/%d/%s does not exist",
					p->target.pid, name);
	}
	return prb_error_os(os_errno, "cannot read /proc/%d/%s", p->target.pid, name);
}

static struct prb_error *read_whole(struct process *p, int fd, const char *name,
				    struct prb_str *ret)
{
	char chunk[16384];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return gone_or(p, errno, name);
		if (n == 0)
			return NULL;
		prb_str_append(ret, chunk, (size_t)n);
	}
}

static struct prb_error *process_open_fact(struct prb_target *t, const char *name, int *ret_fd)
{
	struct process *p = (struct process *)t;
	bool of_task = !strncmp(name, "task/", 5);

	if (of_task && p->tasks < 0)
		p->tasks = openat(p->proc, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*ret_fd = of_task && p->tasks >= 0 ? openat(p->tasks, name + 5, O_RDONLY | O_CLOEXEC)
					   : openat(p->proc, name, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? gone_or(p, errno, name) : NULL;
}

static struct prb_error *process_read_file(struct prb_target *t, const char *name,
					   struct prb_str *ret)
{
	prb_auto_close int fd = -1;

	PRB_TRY(process_open_fact(t, name, &fd));
	return read_whole((struct process *)t, fd, name, ret);
}

static struct prb_error *process_read_link(struct prb_target *t, const char *name,
					   struct prb_str *ret)
{
	struct process *p = (struct process *)t;
	char path[4096];
	ssize_t n = readlinkat(p->proc, name, path, sizeof(path));

	if (n < 0)
		return gone_or(p, errno, name);
	prb_str_append(ret, path, (size_t)n);
	return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return x < y ? -1 : x > y;
}

static struct prb_error *process_list(struct prb_target *t, const char *name, struct prb_str *ret)
{
	struct process *p = (struct process *)t;
	int fd = openat(p->proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return gone_or(p, errno, name);
	prb_auto_closedir DIR *dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return prb_error_nomem();
	}

	PRB_VEC(long) numbers = {};
	for (struct dirent *entry; (entry = readdir(dir));) {
		long *number;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		number = prb_vec_push(&numbers);
		if (!number) {
			prb_vec_free(&numbers);
			return prb_error_nomem();
		}
		*number = strtol(entry->d_name, NULL, 10);
	}
	if (numbers.count)
		qsort(numbers.items, numbers.count, sizeof(long), compare_numbers);
	for (size_t i = 0; i < numbers.count; i++)
		prb_str_printf(ret, "%ld\n", numbers.items[i]);
	prb_vec_free(&numbers);
	return NULL;
}

static struct prb_error *other_program(struct process *p)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED,
					       "process %d began to run another program while it "
					       "was read",
					       (int)p->target.pid),
			      "try again");
}

/*
 * A hash of the auxiliary vector: each execve() makes one with other random addresses. 0 if it may
 * not be read.
 */
static uint64_t program_of(struct process *p)
{
	prb_auto_str struct prb_str vector = {};
	prb_auto_error struct prb_error *err = process_read_file(&p->target, "auxv", &vector);

	return err || !vector.length ? 0
				     : prb_hash_bytes(PRB_HASH_START, vector.data, vector.length);
}

static struct prb_error *read_rights(struct process *p, struct prb_rights *ret)
{
	prb_auto_str struct prb_str status = {};

	PRB_TRY(process_read_file(&p->target, "status", &status));
	return prb_rights_parse(prb_str_text(&status), ret);
}

/*
 * Opens a file that the target names, with the rights of its user. A program that has our rights
 * only now, such as su, did not have them when it wrote the names that we read.
 */
static struct prb_error *open_named(struct process *p, int root, const char *path, int *ret_fd)
{
	__attribute__((cleanup(prb_rights_deinit))) struct prb_rights now = {};

	if (!p->special)
		return prb_file_open(root, path, ret_fd);
	PRB_TRY(read_rights(p, &now));

	const struct prb_rights *user = now.uid == geteuid() ? &p->rights : &now;
	if (user->uid == geteuid() && program_of(p) != p->target.program)
		return other_program(p);
	return prb_rights_open(user, root, path, ret_fd);
}

static struct prb_error *process_open_file(struct prb_target *t, const char *path, int *ret_fd)
{
	struct process *p = (struct process *)t;
	prb_auto_close int root = openat(p->proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return root < 0 ? gone_or(p, errno, "root") : open_named(p, root, path, ret_fd);
}

static bool same_file(int fd, const struct prb_map *map)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == map->inode;
}

/* By one of the kernel's own links to what the target has mapped, which no name can lead astray. */
static struct prb_error *open_link(struct process *p, const char *link, const struct prb_map *map,
				   int *ret_fd)
{
	prb_auto_close int place = openat(p->proc, link, O_PATH | O_CLOEXEC);

	if (place < 0 || !same_file(place, map))
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"the file mapped from %s is not available", map->path);
	return prb_file_open_found(place, map->path, ret_fd);
}

/*
 * The path may by now name another file, so what it opens must be the mapped inode; else the
 * kernel's own links to the mapped file are used.
 */
static struct prb_error *process_open_map(struct prb_target *t, const struct prb_map *map,
					  int *ret_fd)
{
	struct process *p = (struct process *)t;
	char link[64];

	if (!map->deleted && map->path[0] == '/') {
		struct prb_error *err = process_open_file(t, map->path, ret_fd);

		if (!err && same_file(*ret_fd, map))
			return NULL;
		if (!err)
			close(*ret_fd);
		prb_error_destroy(err);
	}
	snprintf(link, sizeof(link), "map_files/%llx-%llx", (unsigned long long)map->start,
		 (unsigned long long)map->end);
	struct prb_error *err = open_link(p, link, map, ret_fd);
	if (!err)
		return NULL;
	prb_error_destroy(err);
	return open_link(p, "exe", map, ret_fd);
}

static void process_destroy(struct prb_target *t)
{
	struct process *p = (struct process *)t;

	prb_close_guard(&p->tasks);
	prb_close_guard(&p->proc);
	prb_rights_deinit(&p->rights);
	free(p);
}

static const struct prb_target_ops process_ops = {
	.read_file = process_read_file,
	.read_link = process_read_link,
	.list = process_list,
	.open_fact = process_open_fact,
	.open_file = process_open_file,
	.open_map = process_open_map,
	.destroy = process_destroy,
};

struct prb_error *prb_target_same_program(struct prb_target *t, struct prb_error *err)
{
	uint64_t now = t->program ? program_of((struct process *)t) : 0;

	if (!now || now == t->program)
		return err;
	prb_error_destroy(err);
	return other_program((struct process *)t);
}

static struct prb_error *open_proc(struct process *p, pid_t tid)
{
	char path[32];
	int fd;

	PRB_TRY(prb_proc_check());
	snprintf(path, sizeof(path), "/proc/%d", tid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int os_errno = errno;
	if (fd < 0)
		return prb_error_hint(prb_error_os(os_errno == ENOENT ? ESRCH : os_errno,
						   "cannot open process %d", p->target.pid),
				      "'probing list' shows the Python processes");
	prb_close_guard(&p->tasks);
	prb_close_guard(&p->proc);
	p->proc = fd;
	p->target.program = program_of(p);
	prb_mem_destroy(prb_steal(&p->target.mem));
	return prb_mem_live_create(tid, &p->target.mem);
}

/* One byte of its first mapping: memory may be closed to us even where the map is open. */
static struct prb_error *try_memory(struct process *p)
{
	const struct prb_map *map;
	uint8_t byte;

	prb_vec_each (map, &p->target.maps.list)
		if (map->read)
			return prb_mem_read_u8(p->target.mem, map->start, &byte);
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "process %d has no memory", p->target.pid);
}

/* A 32-bit program; memory would show it as a process without anything that we know. */
static bool is_32_bit(struct process *p)
{
	prb_auto_close int fd = openat(p->proc, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char ident[EI_NIDENT];

	return fd >= 0 && pread(fd, ident, sizeof(ident), 0) == (ssize_t)sizeof(ident) &&
	       !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS32;
}

/*
 * When the first thread has ended but others live on, the process seems to have no memory: any
 * other thread can be used instead, since /proc has a (hidden) folder for each. One may end before
 * it is looked at.
 */
static struct prb_error *use_other_thread(struct process *p)
{
	enum { CHURN_MAX = 100 };
	struct prb_error *err = NULL;

	for (int i = 0; i < CHURN_MAX && !p->target.maps.list.count; i++) {
		pid_t tid;

		prb_error_destroy(err);
		PRB_TRY(open_proc(p, p->target.pid));
		PRB_TRY(prb_task_oldest_other(&p->target, &tid));
		if (!tid)
			return NULL;
		err = open_proc(p, tid);
		if (!err)
			err = prb_target_refresh_maps(&p->target);
	}
	return err;
}

/* Its maps, and that they can be read. */
static struct prb_error *look(struct process *p)
{
	PRB_TRY(prb_target_refresh_maps(&p->target));
	if (!p->target.maps.list.count)
		PRB_TRY(use_other_thread(p));
	return try_memory(p);
}

/* Refuses what can be known to fail, with the rule that forbids it. */
static struct prb_error *check(struct process *p)
{
	enum { ATTEMPTS = 5 };
	struct prb_error *refusal = NULL, *err = look(p);

	/* During an exec, a process has no memory for a moment, and then another one. */
	for (int n = 0; n < ATTEMPTS && p->target.program &&
			(prb_error_catch(&err, PRB_ERROR_FAULT) ||
			 prb_error_catch(&err, PRB_ERROR_UNSUPPORTED));
	     n++) {
		poll(NULL, 0, 1 << n);
		PRB_TRY(open_proc(p, p->target.pid));
		err = look(p);
	}
	if (!err && !is_32_bit(p))
		return NULL;
	prb_process_refusal(p->target.pid, &refusal);
	if (!refusal)
		return err;
	prb_error_destroy(err);
	return refusal;
}

struct prb_error *prb_target_open_process(pid_t pid, struct prb_target **ret)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		return prb_error_nomem();
	p->target = (struct prb_target){
		.ops = &process_ops,
		.kind = PRB_TARGET_PROCESS,
		.live = true,
		.moves = true,
		.local = true,
		.loadable = true,
		.pid = pid,
		.machine = PRB_HOST_ARCHITECTURE,
		.time = prb_clock_calendar_seconds(),
	};
	p->proc = p->tasks = -1;
	p->special = prb_rights_are_special();

	struct prb_error *err = open_proc(p, pid);
	if (!err && p->special)
		err = read_rights(p, &p->rights);
	if (!err)
		err = check(p);
	if (err) {
		prb_target_destroy(&p->target);
		return err;
	}
	*ret = &p->target;
	return NULL;
}
