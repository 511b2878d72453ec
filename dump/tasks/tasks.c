/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/tasks/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/text.h"

enum {
	MAX_TASKS = 262144, /* a snapshot may claim any number */
	FILES_OF_ONE = 2,
};

/* Descriptors kept open for threads of all processes. */
static atomic_uint kept_files;

static bool reread(int fd, char *buffer, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, buffer, size - 1, 0);

	buffer[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/*
 * A kernel without this accounting lacks the file, or it has zeros for every thread, also for the
 * running caller.
 */
static bool has_schedstat(void)
{
	prb_auto_close int fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	char text[64];

	return reread(fd, text, sizeof(text)) && strcmp(text, "0 0 0\n") != 0;
}

/* True for states in which a thread has no processor and cannot get one by itself. */
static bool asleep(char state)
{
	return state && strchr("SDTtI", state);
}

/* comm and state from the text of `stat`: comm ends at the last ')'. */
static char parse_stat(const char *text, char *name, size_t size)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');

	if (!open || !close || close < open || !close[1] || !close[2])
		return 0;
	if (name) {
		size_t length = PRB_MIN((size_t)(close - open - 1), size - 1);

		for (size_t i = 0; i < length; i++)
			name[i] = (unsigned char)open[1 + i] < ' ' ? '?' : open[1 + i];
		name[length] = '\0';
	}
	return close[2];
}

/* -1 on failure; *gone: there is no such thread any more. */
static int open_fact(struct prb_target *t, pid_t tid, const char *name, bool *gone)
{
	int fd;
	prb_auto_error struct prb_error *err =
		prb_target_open_fact(t, &fd, "task/%d/%s", tid, name);

	*gone = err && (err->code == PRB_ERROR_NOT_FOUND || err->code == PRB_ERROR_NO_PROCESS);
	return err ? -1 : fd;
}

static const char *counters_name(const struct prb_tasks *tasks)
{
	return tasks->by_status ? "status" : "schedstat";
}

/*
 * Reads through the kept descriptor, or a temporary one; errno is ESRCH if there is no such thread.
 */
static bool read_fact(const struct prb_tasks *tasks, const struct prb_task_watch *task, int kept,
		      const char *name, char *buffer, size_t size)
{
	prb_auto_close int fd = -1;
	bool gone = false;

	if (kept >= 0 || !task->reopens)
		return reread(kept, buffer, size);
	fd = open_fact(tasks->target, task->tid, name, &gone);
	if (reread(fd, buffer, size))
		return true;
	if (fd < 0)
		errno = gone ? ESRCH : EBADF;
	return false;
}

/* Without `schedstat`: both context switch counts of `status`. */
static bool read_switches(const struct prb_tasks *tasks, const struct prb_task_watch *task,
			  char *buffer, size_t size)
{
	char text[4096];

	if (!read_fact(tasks, task, task->counters_fd, counters_name(tasks), text, sizeof(text)))
		return false;

	const char *switches = strstr(text, "voluntary_ctxt_switches:");
	if (!switches)
		return false;
	snprintf(buffer, size, "%s", switches);
	return true;
}

static bool read_counters(const struct prb_tasks *tasks, const struct prb_task_watch *task,
			  char *buffer, size_t size)
{
	return tasks->by_status ? read_switches(tasks, task, buffer, size)
				: read_fact(tasks, task, task->counters_fd, counters_name(tasks),
					    buffer, size);
}

void prb_task_note_counters(const struct prb_tasks *tasks, struct prb_task_watch *task)
{
	if (!read_counters(tasks, task, task->counters, sizeof(task->counters)))
		task->counters[0] = '\0';
}

void prb_task_note(struct prb_tasks *tasks, struct prb_task_watch *task)
{
	char stat[512];

	prb_task_note_counters(tasks, task);
	if (task->stat_fd < 0 && !task->reopens)
		return; /* open_task() has set its state */
	if (read_fact(tasks, task, task->stat_fd, "stat", stat, sizeof(stat)))
		task->state = parse_stat(stat, task->name, sizeof(task->name));
	else
		task->state = errno == ESRCH ? 'X' : 0;
}

static bool parse_times(const struct prb_tasks *tasks, const char *counters,
			struct prb_task_times *ret)
{
	char *end;

	if (tasks->by_status || !*counters)
		return false;
	ret->ran = strtoll(counters, &end, 10);
	ret->waited = strtoll(end, &end, 10);
	ret->turns = strtoll(end, &end, 10);
	return *end == '\n';
}

bool prb_task_times(const struct prb_tasks *tasks, const struct prb_task_watch *task,
		    struct prb_task_times *ret)
{
	return parse_times(tasks, task->counters, ret);
}

bool prb_task_times_now(const struct prb_tasks *tasks, const struct prb_task_watch *task,
			struct prb_task_times *ret)
{
	char counters[sizeof(task->counters)];

	return read_counters(tasks, task, counters, sizeof(counters)) &&
	       parse_times(tasks, counters, ret);
}

static bool still_asleep(const struct prb_tasks *tasks, const struct prb_task_watch *task)
{
	char stat[512];

	return read_fact(tasks, task, task->stat_fd, "stat", stat, sizeof(stat)) &&
	       parse_stat(stat, NULL, 0) == task->state;
}

bool prb_task_slept(struct prb_tasks *tasks, const struct prb_task_watch *task, bool seen_off)
{
	char counters[sizeof(task->counters)];

	return asleep(task->state) && (seen_off || still_asleep(tasks, task)) &&
	       read_counters(tasks, task, counters, sizeof(counters)) &&
	       !strcmp(counters, task->counters);
}

/* The last number of NSpid is the tid in the innermost namespace. */
pid_t prb_task_inner_tid(struct prb_target *t, pid_t tid)
{
	prb_auto_str struct prb_str status = {};
	prb_auto_error struct prb_error *err =
		prb_target_read_file(t, &status, "task/%d/status", tid);
	int64_t inner = tid;

	if (!err)
		prb_text_last_number(prb_str_text(&status), "NSpid", &inner);
	return (pid_t)inner;
}

/*
 * True if the target has the same tids in its pid namespace as in ours. For a remote process a link
 * answers in most cases, which costs less than a file.
 */
static bool has_our_tids(struct prb_target *t)
{
	static const char first_namespace[] = "pid:[4026531836]"; /* PROC_PID_INIT_INO */
	prb_auto_str struct prb_str link = {};

	if (prb_target_is_remote(t)) {
		prb_error_destroy(prb_target_read_link(t, &link, "ns/pid"));
		if (!strcmp(prb_str_text(&link), first_namespace))
			return true;
	}
	return prb_task_inner_tid(t, t->pid) == t->pid;
}

/* The other half of the descriptor limit is left for everything else. */
static bool may_keep(void)
{
	struct rlimit limit = {};

	getrlimit(RLIMIT_NOFILE, &limit);
	if (atomic_fetch_add(&kept_files, FILES_OF_ONE) + FILES_OF_ONE <= limit.rlim_cur / 2)
		return true;
	atomic_fetch_sub(&kept_files, FILES_OF_ONE);
	return false;
}

static void close_task(struct prb_task_watch *task)
{
	if (task->counters_fd < 0 && task->stat_fd < 0)
		return;
	prb_close_guard(&task->counters_fd);
	prb_close_guard(&task->stat_fd);
	atomic_fetch_sub(&kept_files, FILES_OF_ONE);
}

/*
 * Keeps both files of the thread open, up to a number in all; further threads' files are opened for
 * each read.
 */
static void open_task(struct prb_tasks *tasks, struct prb_target *t, struct prb_task_watch *task)
{
	bool gone = false;

	task->stat_fd = task->counters_fd = -1;
	if (!t->local)
		return;
	if (may_keep()) {
		task->counters_fd = open_fact(t, task->tid, counters_name(tasks), &gone);
		task->stat_fd = open_fact(t, task->tid, "stat", &gone);
		if (task->counters_fd < 0 && task->stat_fd < 0)
			atomic_fetch_sub(&kept_files, FILES_OF_ONE);
	}
	task->reopens = !gone && (task->counters_fd < 0 || task->stat_fd < 0);
	task->state = gone ? 'X' : 0;
	prb_task_note(tasks, task);
}

/*
 * Threads held by a debugger are traced, so only their names are missing, which the debugger may
 * know. False if it does not, or if `stat` would show the name in another way.
 */
static bool read_held(struct prb_target *t, struct prb_task_watch *task)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err = NULL;
	size_t length;

	if (!prb_target_is_remote(t))
		return false;
	err = prb_target_read_file(t, &text, "task/%d/comm", task->tid);
	length = err ? 0 : strcspn(text.data, "\n");
	if (!length || length >= sizeof(task->name) || length + 1 != text.length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (text.data[i] < ' ' || text.data[i] > '~' || text.data[i] == '\\')
			return false;
	memcpy(task->name, text.data, length);
	task->name[length] = '\0';
	task->state = 't';
	return true;
}

/* A core or a snapshot: nothing runs, and only the text of `stat` is read. */
static struct prb_error *read_recorded(struct prb_target *t, struct prb_task_watch *task)
{
	prb_auto_str struct prb_str stat = {};
	struct prb_error *err;

	if (read_held(t, task))
		return NULL;
	err = prb_target_read_file(t, &stat, "task/%d/stat", task->tid);

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	task->state = parse_stat(prb_str_text(&stat), task->name, sizeof(task->name));
	return NULL;
}

static struct prb_error *add_task(struct prb_tasks *tasks, struct prb_target *t, pid_t tid)
{
	struct prb_task_watch *task;

	if (tasks->list.count >= MAX_TASKS)
		return prb_error_create(PRB_ERROR_BAD_DATA, "more than %d threads", MAX_TASKS);
	task = prb_vec_push(&tasks->list);
	if (!task)
		return prb_error_nomem();
	task->tid = task->inner_tid = tid;
	open_task(tasks, t, task);
	if (!t->local || prb_target_is_recorded(t))
		PRB_TRY(read_recorded(t, task));
	if (tasks->other_tids)
		task->inner_tid = prb_task_inner_tid(t, tid);
	return NULL;
}

/* The next tid in a list of them; 0 at its end. */
static pid_t next_tid(char **at)
{
	while (*at && **at) {
		long tid = strtol(*at, at, 10);

		*at = strchrnul(*at, '\n');
		*at += **at == '\n';
		if (tid > 0 && tid <= INT32_MAX)
			return (pid_t)tid;
	}
	return 0;
}

struct prb_error *prb_tasks_create(struct prb_target *t, struct prb_tasks *ret)
{
	prb_auto_str struct prb_str names = {};
	pid_t tid;

	*ret = (struct prb_tasks){.by_status = !has_schedstat(), .target = t};
	PRB_TRY(prb_target_list(t, &names, "task"));
	ret->other_tids = !has_our_tids(t);
	for (char *at = names.data; (tid = next_tid(&at));)
		PRB_TRY(add_task(ret, t, tid));
	return NULL;
}

struct prb_error *prb_tasks_update(struct prb_tasks *tasks, struct prb_target *t)
{
	struct prb_tasks before = *tasks;
	prb_auto_str struct prb_str names = {};
	struct prb_task_watch *old = before.list.items;
	const struct prb_task_watch *end = old + before.list.count;
	struct prb_error *err = NULL;
	pid_t tid;

	PRB_TRY(prb_target_list(t, &names, "task"));
	memset(&tasks->list, 0, sizeof(tasks->list));
	for (char *at = names.data; !err && (tid = next_tid(&at));) {
		for (; old < end && old->tid < tid; old++)
			close_task(old);
		if (old < end && old->tid == tid && old->state != 'X') {
			struct prb_task_watch *task = prb_vec_push(&tasks->list);

			err = task ? NULL : prb_error_nomem();
			if (task)
				*task = *old++;
		} else {
			err = add_task(tasks, t, tid);
		}
	}
	for (; old < end; old++)
		close_task(old);
	prb_vec_free(&before.list);
	return err;
}

void prb_tasks_deinit(struct prb_tasks *tasks)
{
	struct prb_task_watch *task;

	prb_vec_each (task, &tasks->list)
		close_task(task);
	prb_vec_free(&tasks->list);
}

struct prb_task_watch *prb_tasks_find_inner(struct prb_tasks *tasks, pid_t inner_tid)
{
	struct prb_task_watch *task;

	prb_vec_each (task, &tasks->list)
		if (task->inner_tid == inner_tid)
			return task;
	return NULL;
}
