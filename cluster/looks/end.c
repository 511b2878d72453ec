/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/end.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/own_file.h"
#include "base/str.h"
#include "target/proc/cgroup.h"
#include "target/proc/pids.h"
#include "target/proc/process.h"
#include "target/proc/signal_text.h"
#include "target/proc/text.h"

enum {
	LOG_TAIL = 65536,
	MOST_LEVELS = 3,     /* parents of a rank that may be its launcher */
	MOST_PROCESSES = 16, /* whose logs are read */
	EXIT_CODE = PRB_STAT_NUMBERS - 1,
};

/** The processes that know of the ranks, and where their numbers begin. */
struct ends {
	const struct prb_job *job;
	struct prb_round *round;
	pid_t parent;			 /* of the first living rank; 0: none lives */
	const struct prb_rank *living;	 /* that one */
	pid_t processes[MOST_PROCESSES]; /* it, its parents, and other ranks */
	size_t count;
};

/** A process of ours that is gone, or a rank that this machine should have. */
static bool has_ended(const struct prb_seen *seen)
{
	return !seen->rank->host && (seen->gone || seen->state == 'Z');
}

static bool read_stat(pid_t pid, struct prb_str *line, struct prb_stat *stat,
		      int64_t numbers[PRB_STAT_NUMBERS])
{
	return prb_proc_read(pid, "stat", line) && prb_stat_parse(prb_str_text(line), stat) &&
	       prb_stat_numbers(prb_str_text(line), numbers);
}

static pid_t parent_of(pid_t pid)
{
	prb_auto_str struct prb_str line = {};
	int64_t numbers[PRB_STAT_NUMBERS];
	struct prb_stat stat;

	return read_stat(pid, &line, &stat, numbers) ? stat.ppid : 0;
}

static void find_processes(struct ends *e)
{
	const struct prb_seen *seen;
	pid_t above;

	prb_vec_each (seen, &e->round->list) {
		if (seen->rank->host || !seen->rank->pid || has_ended(seen))
			continue;
		if (!e->living) {
			e->living = seen->rank;
			e->parent = parent_of(seen->rank->pid);
		}
		if (e->count < MOST_PROCESSES - MOST_LEVELS)
			e->processes[e->count++] = seen->rank->pid;
	}
	above = e->parent;
	for (size_t i = 0; i < MOST_LEVELS && above > 1; i++) {
		e->processes[e->count++] = above;
		above = parent_of(above);
	}
}

static void put_status(struct prb_str *s, int status)
{
	if (WIFSIGNALED(status)) {
		prb_str_puts(s, "killed by ");
		prb_put_signal(s, WTERMSIG(status));
		prb_str_puts(s, WCOREDUMP(status) ? ", with a core file" : "");
	} else {
		prb_str_printf(s, "exited with status %d", WEXITSTATUS(status));
	}
}

/** Which zombie is meant; 0 or NULL: whatever it has. */
struct wanted {
	pid_t parent;
	const char *comm;
	uint64_t start_ticks;
};

/** Of a process that we may not read, the kernel says 0 in place of its exit status. */
static bool may_read(pid_t pid)
{
	char name[32], link[1];

	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	return readlink(name, link, sizeof(link)) >= 0 || errno != EACCES;
}

/** The exit status of process @p pid, if it is a zombie whose status the kernel tells us. */
static bool read_status(pid_t pid, const struct wanted *wanted, int *ret)
{
	prb_auto_str struct prb_str line = {};
	int64_t numbers[PRB_STAT_NUMBERS];
	struct prb_stat stat;
	bool found = read_stat(pid, &line, &stat, numbers) && stat.state == 'Z' &&
		     (!wanted->parent || stat.ppid == wanted->parent) &&
		     (!wanted->start_ticks || stat.start_ticks == wanted->start_ticks) &&
		     (!wanted->comm || (strlen(wanted->comm) == stat.comm_length &&
					!strncmp(wanted->comm, stat.comm, stat.comm_length))) &&
		     (numbers[EXIT_CODE] || may_read(pid));

	*ret = found ? (int)numbers[EXIT_CODE] : 0;
	return found;
}

void prb_end_put(struct prb_str *s, pid_t pid, uint64_t start_ticks)
{
	int status;

	if (read_status(pid, &(const struct wanted){.start_ticks = start_ticks}, &status))
		put_status(s, status);
}

/**
 * The zombies among the children of the ranks' parent, which are named as the ranks are: of the
 * ranks without a process, if there are as many. *pid: the only one, or 0.
 */
static struct prb_error *find_zombies(const struct ends *e, size_t missing, pid_t *pid, int *status,
				      bool *found)
{
	prb_auto_pids struct prb_pids pids = {};
	struct prb_process like = {};
	size_t count = 0;
	bool same = true;
	int one;

	*found = false;
	if (e->parent <= 1)
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_process_describe(e->living->pid, &like), NULL));
	prb_auto_error struct prb_error *err = prb_pids_of_all(&pids);
	for (size_t i = 0; !err && like.comm && i < pids.list.count; i++) {
		if (!read_status(pids.list.items[i],
				 &(const struct wanted){e->parent, like.comm, 0}, &one))
			continue;
		same &= !count || one == *status;
		*status = one;
		*pid = count++ ? 0 : pids.list.items[i];
	}
	prb_process_deinit(&like);
	*found = count && count == missing && same;
	return prb_steal(&err);
}

/** Appends that a crash record of ours is there of process @p pid. */
static void put_record(struct prb_str *s, uid_t uid, pid_t pid)
{
	prb_auto_free char *folder = NULL, *path = NULL, *end = NULL;
	prb_auto_close int place = prb_tmp_folder_open(uid, false, &folder), records = -1;
	const struct dirent *entry;
	DIR *list;

	if (place < 0 || !(path = prb_format("%s/crashes", folder)) ||
	    !(end = prb_format("-%d.core", (int)pid)))
		return;
	records = prb_own_folder_open(path, uid);
	list = records < 0 ? NULL : fdopendir(records);
	if (!list)
		return;
	records = -1;
	while ((entry = readdir(list))) {
		const char *at = strstr(entry->d_name, end);

		if (at && !strcmp(at, end)) {
			prb_str_puts(s, "; it left a crash record: 'probing crashes'");
			break;
		}
	}
	closedir(list);
}

/** How many processes the OOM killer has killed in the control group of the living rank. */
static void put_oom(const struct ends *e, struct prb_str *s)
{
	prb_auto_str struct prb_str mounts = {}, group = {}, events = {};
	const char *at;
	long killed;

	if (!e->living || !prb_cgroup_mounts(&mounts) ||
	    !prb_proc_read(e->living->pid, "cgroup", &group) ||
	    !prb_cgroup_own_file(prb_str_text(&mounts), prb_str_text(&group), "memory",
				 "memory.events", "memory.oom_control", &events))
		return;
	at = strstr(prb_str_text(&events), "oom_kill ");
	killed = at ? strtol(at + strlen("oom_kill "), NULL, 10) : 0;
	if (killed > 0)
		prb_str_printf(s,
			       "; the OOM killer has killed %ld process%s of the job's control "
			       "group",
			       killed, killed == 1 ? "" : "es");
}

/** True if the file system of a descriptor of a process is of this machine, so that it answers. */
static bool is_local(pid_t pid, int fd)
{
	static const char *const types[] = {"ext2",  "ext3",	"ext4", "xfs", "btrfs",
					    "tmpfs", "overlay", "zfs",	"f2fs"};
	prb_auto_str struct prb_str info = {}, mounts = {};
	char name[32];
	int64_t wanted;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (!prb_proc_read(pid, name, &info) ||
	    !prb_text_last_number(prb_str_text(&info), "mnt_id", &wanted) ||
	    !prb_proc_read(pid, "mountinfo", &mounts))
		return false;
	for (const char *line = prb_str_text(&mounts); *line;) {
		const char *end = strchrnul(line, '\n'), *type = strstr(line, " - ");

		if (strtol(line, NULL, 10) != wanted || !type || type > end) {
			line = *end ? end + 1 : end;
			continue;
		}
		type += strlen(" - ");
		for (size_t i = 0; i < PRB_ARRAY_SIZE(types); i++)
			if (!strncmp(type, types[i], strlen(types[i])) &&
			    type[strlen(types[i])] == ' ')
				return true;
		return false;
	}
	return false;
}

/** Appends the end of the file that is a process's stdout or stderr; false if it is none. */
static bool read_log(pid_t pid, int number, struct prb_str *ret)
{
	prb_auto_free char *path = prb_format("/proc/%d/fd/%d", (int)pid, number);
	prb_auto_free char *chunk = malloc(LOG_TAIL);
	prb_auto_close int fd = -1;
	ssize_t got;
	off_t size;

	if (!path || !chunk || !is_local(pid, number))
		return false;
	prb_auto_error struct prb_error *err = prb_file_open(-1, path, &fd);
	size = err ? -1 : lseek(fd, 0, SEEK_END);
	got = size > 0 ? pread(fd, chunk, LOG_TAIL, PRB_MAX(size - LOG_TAIL, 0)) : -1;
	if (got <= 0)
		return false;
	prb_str_append(ret, chunk, (size_t)got);
	return true;
}

/** The number after @p word in @p line; -1. *end: behind it. */
static long number_after(const char *line, const char *word, const char **end)
{
	const char *at = strstr(line, word);
	char *stop;
	long number;

	if (!at)
		return -1;
	at += strlen(word);
	number = strtol(at, &stop, 10);
	*end = stop;
	return stop > at && number >= 0 ? number : -1;
}

long prb_end_parse(const char *line, long first_rank, const char **ret)
{
	const char *end;
	long rank;

	*ret = line;
	/* torch: "[rank2]: RuntimeError: …", of each line of a traceback. */
	rank = number_after(line, "[rank", &end);
	if (rank >= 0 && !strncmp(end, "]: ", 3) && strstr(end, "Error")) {
		*ret = end + 3;
		return rank;
	}
	/* srun: "srun: error: node1: task 2: Killed". */
	rank = strstr(line, "error: ") ? number_after(line, " task ", &end) : -1;
	if (rank >= 0 && !strncmp(end, ": ", 2)) {
		*ret = end + 2;
		return rank;
	}
	/* mpirun: "… that process rank 2 with PID 71 on node node1 exited on signal 9 (Killed)." */
	rank = number_after(line, "process rank ", &end);
	if (rank >= 0 && (*ret = strstr(end, "exited ")))
		return rank;
	/* torchrun: "failed (exitcode: -9) local_rank: 2 (pid: 71) of binary: …". */
	*ret = strstr(line, "(exitcode: ");
	rank = *ret ? number_after(line, "local_rank: ", &end) : -1;
	if (rank >= 0 && rank < LONG_MAX - first_rank)
		return rank + first_rank;
	*ret = NULL;
	return -1;
}

/** Keeps what a log says last of a rank that has ended. */
static struct prb_error *note_line(struct ends *e, const char *line)
{
	const long first = e->living->local_rank >= 0 ? e->living->rank - e->living->local_rank : 0;
	const char *text;
	const long rank = prb_end_parse(line, first, &text);
	struct prb_seen *seen;

	prb_vec_each (seen, &e->round->list) {
		if (rank < 0 || seen->rank->rank != rank || !has_ended(seen))
			continue;
		free(prb_steal(&seen->end_log));
		seen->end_log = strndup(text, 200);
		return seen->end_log ? NULL : prb_error_nomem();
	}
	return NULL;
}

static struct prb_error *read_logs(struct ends *e)
{
	for (size_t i = 0; i < e->count; i++) {
		for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
			prb_auto_str struct prb_str text = {};
			char *rest = NULL;

			if (!read_log(e->processes[i], fd, &text) || text.failed)
				continue;
			for (char *line = strtok_r(text.data, "\r\n", &rest); line;
			     line = strtok_r(NULL, "\r\n", &rest))
				PRB_TRY(note_line(e, line));
		}
	}
	return NULL;
}

static struct prb_error *note(const struct ends *e, struct prb_seen *seen, bool zombies,
			      pid_t zombie, int status)
{
	prb_auto_str struct prb_str s = {};
	pid_t pid = seen->rank->pid ? seen->rank->pid : zombie;
	int own;

	if (seen->rank->pid && read_status(seen->rank->pid, &(const struct wanted){}, &own)) {
		put_status(&s, own);
		seen->end_known = true;
	} else if (!seen->rank->pid && zombies) {
		put_status(&s, status);
		seen->end_known = true;
	}
	seen->end_known |= seen->end_log != NULL;
	if (!s.length)
		prb_str_puts(&s, "why is not known");
	if (pid)
		put_record(&s, e->job->uid, pid);
	put_oom(e, &s);
	seen->end = prb_str_take(&s);
	return seen->end ? NULL : prb_error_nomem();
}

struct prb_error *prb_end_note(const struct prb_job *job, struct prb_round *round)
{
	struct ends e = {.job = job, .round = round};
	struct prb_seen *seen;
	size_t ended = 0, missing = 0;
	pid_t zombie = 0;
	int status = 0;
	bool zombies = false;

	prb_vec_each (seen, &round->list) {
		ended += has_ended(seen);
		missing += has_ended(seen) && !seen->rank->pid;
	}
	if (!ended)
		return NULL;
	find_processes(&e);
	if (missing)
		PRB_TRY(find_zombies(&e, missing, &zombie, &status, &zombies));
	if (e.living)
		PRB_TRY(read_logs(&e));
	prb_vec_each (seen, &round->list)
		if (has_ended(seen))
			PRB_TRY(note(&e, seen, zombies, zombie, status));
	return NULL;
}
