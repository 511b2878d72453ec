/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/known.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "base/str.h"
#include "dump/text/paths.h"
#include "target/proc/text.h"

enum {
	MOST_ENTRIES = 4096,
	MOST_BYTES = PATH_MAX + 1024,
	DAY = 24 * 60 * 60, /* seconds for which the recording of an ended recorder is found */
	LOOK_NS = 10000000, /* between two looks at a recorder that is to end */
};

/* Parses a name: "perf-4242-5151", and ".profile" of a recording in this folder. */
static bool parse_name(const char *name, pid_t *pid, pid_t *recorder)
{
	int length = 0;

	return sscanf(name, "perf-%d-%d%n", pid, recorder, &length) == 2 && !name[length];
}

static uint64_t start_of(pid_t pid)
{
	prb_auto_free char *path = prb_format("/proc/%d/stat", (int)pid);
	prb_auto_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char line[1024];
	ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	struct prb_stat stat;

	if (length <= 0)
		return 0;
	line[length] = 0;
	return prb_stat_parse(line, &stat) && stat.state != 'Z' ? stat.start_ticks : 0;
}

struct prb_error *prb_known_folder(int *ret_fd, char **ret_path)
{
	*ret_fd = prb_run_folder_make(ret_path);
	if (*ret_fd >= 0)
		return NULL;
	return prb_error_hint(prb_error_os(errno,
					   "there is no folder to note the recording in: none can "
					   "be made in /tmp"),
			      "set XDG_RUNTIME_DIR to a folder of your own");
}

/* Removes a recording in the folder itself, whose path the user did not choose. */
static void remove_recording(int folder, const char *folder_path, const char *path)
{
	const size_t length = strlen(folder_path);
	prb_auto_free char *journal = NULL;

	if (strncmp(path, folder_path, length) || path[length] != '/' ||
	    strchr(path + length + 1, '/'))
		return;
	journal = prb_format("%s-journal", path + length + 1);
	unlinkat(folder, path + length + 1, 0);
	if (journal)
		unlinkat(folder, journal, 0);
}

/* The lines: start of the process and the word of its kind, path, and what has ended it. */
static bool parse_note(char *text, struct prb_known_recording *ret)
{
	char *path = strchr(text, '\n'), *failed, kind[16];

	if (!path || path[1] != '/' ||
	    sscanf(text, "%" SCNu64 " %15s", &ret->start_ticks, kind) != 2)
		return false;
	failed = strchr(++path, '\n');
	if (!failed)
		return false;
	*failed++ = 0;
	failed[strcspn(failed, "\n")] = 0;
	ret->background = !strcmp(kind, "background");
	ret->path = strdup(path);
	ret->failed = *failed ? strdup(failed) : NULL;
	return ret->path;
}

/* False if it is no note of ours. */
static bool read_note(int folder, const char *name, struct prb_known_recording *ret)
{
	char text[MOST_BYTES];
	uint64_t size;
	prb_auto_close int fd = prb_own_file_open(folder, name, O_RDONLY, geteuid(), &size);
	struct stat st;
	ssize_t length;

	if (fd < 0 || fstat(fd, &st))
		return false;
	ret->running = flock(fd, LOCK_SH | LOCK_NB) != 0;
	ret->noted = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
	length = read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return false;
	text[length] = 0;
	return parse_note(text, ret);
}

static void recording_deinit(struct prb_known_recording *recording)
{
	free(recording->path);
	free(recording->failed);
}

/* Forgets entries older than a day. */
static void forget_old(int folder, const char *path)
{
	prb_auto_closedir DIR *dir = fdopendir(dup(folder));
	struct dirent *entry;

	for (unsigned n = 0; dir && n < MOST_ENTRIES && (entry = readdir(dir)); n++) {
		struct prb_known_recording old = {};
		pid_t pid;

		if (!parse_name(entry->d_name, &pid, &old.recorder))
			continue;
		if (read_note(folder, entry->d_name, &old) && !old.running &&
		    (double)time(NULL) - old.noted > DAY) {
			remove_recording(folder, path, old.path);
			unlinkat(folder, entry->d_name, 0);
		}
		recording_deinit(&old);
	}
}

struct prb_error *prb_known_add(pid_t pid, const char *path, bool background, struct prb_known *ret)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_free char *folder_path = NULL;
	prb_auto_str struct prb_str text = {};
	prb_auto_close int folder = -1;

	PRB_TRY(prb_known_folder(&folder, &folder_path));
	forget_old(folder, folder_path);
	ret->path = prb_format("%s/perf-%d-%d", folder_path, (int)pid, (int)getpid());
	if (!ret->path)
		return prb_error_nomem();
	if (strchr(path, '\n'))
		return prb_error_create(PRB_ERROR_USAGE, "the path of a ring is one line");
	prb_str_printf(&text, "%" PRIu64 " %s\n%s\n", start_of(pid),
		       background ? "background" : "foreground", path);
	if (text.failed)
		return prb_error_nomem();
	PRB_TRY(prb_new_file_open_in(&file, folder, prb_path_last(ret->path)));
	/* It is locked before it has the name that others look for. */
	if (flock(file.fd, LOCK_EX) ||
	    write(file.fd, text.data, text.length) != (ssize_t)text.length)
		return prb_error_os(errno, "cannot note the recording in %s", folder_path);
	PRB_TRY(prb_new_file_place(&file));
	ret->fd = prb_steal_fd(&file.fd);
	return NULL;
}

void prb_known_end(struct prb_known *known, const struct prb_error *err)
{
	/* If this fails, the recording itself still shows that it was not finished. */
	if (known->fd >= 0 && err &&
	    write(known->fd, err->message, strcspn(err->message, "\n")) < 0)
		prb_log("profile", 1, "cannot note: %s", err->message);
	if (known->fd >= 0) {
		futimens(known->fd, NULL);
		close(known->fd);
	}
	free(prb_steal(&known->path));
	known->fd = -1;
}

static int newest_first(const void *a, const void *b)
{
	const struct prb_known_recording *left = a, *right = b;

	if (left->running != right->running)
		return left->running ? -1 : 1;
	return left->noted < right->noted ? 1 : left->noted > right->noted ? -1 : 0;
}

static struct prb_error *find_in(int folder, pid_t pid, struct prb_known_list *ret)
{
	prb_auto_closedir DIR *dir = fdopendir(dup(folder));
	uint64_t start = pid ? start_of(pid) : 0;
	struct dirent *entry;

	for (unsigned n = 0; dir && n < MOST_ENTRIES && (entry = readdir(dir)); n++) {
		struct prb_known_recording found = {}, *slot;
		pid_t of;

		if (!parse_name(entry->d_name, &of, &found.recorder) || (pid && of != pid))
			continue;
		found.pid = of;
		if (!read_note(folder, entry->d_name, &found) ||
		    (start && found.start_ticks != start)) {
			recording_deinit(&found);
			continue;
		}
		slot = prb_vec_push(&ret->list);
		if (!slot) {
			recording_deinit(&found);
			return prb_error_nomem();
		}
		*slot = found;
	}
	return NULL;
}

struct prb_error *prb_known_find(pid_t pid, struct prb_known_list *ret)
{
	for (int runtime = 1; runtime >= 0; runtime--) {
		prb_auto_close int folder = prb_run_folder_open(geteuid(), runtime, NULL);

		if (folder >= 0)
			PRB_TRY(find_in(folder, pid, ret));
	}
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), newest_first);
	return NULL;
}

void prb_known_list_deinit(struct prb_known_list *list)
{
	struct prb_known_recording *recording;

	prb_vec_each (recording, &list->list)
		recording_deinit(recording);
	prb_vec_free(&list->list);
}

/* The recorder's notes so far, owned by the caller; empty if the file is gone. */
static struct prb_error *look_again(const struct prb_known_recording *recording, pid_t pid,
				    struct prb_known_recording *ret)
{
	prb_auto_known_list struct prb_known_list now = {};
	struct prb_known_recording *other;

	*ret = (struct prb_known_recording){};
	PRB_TRY(prb_known_find(pid, &now));
	prb_vec_each (other, &now.list)
		if (other->recorder == recording->recorder &&
		    other->start_ticks == recording->start_ticks) {
			*ret = *other;
			other->path = other->failed = NULL;
			break;
		}
	return NULL;
}

struct prb_error *prb_known_stop(const struct prb_known_recording *recording, pid_t pid)
{
	prb_auto_close int process = (int)syscall(SYS_pidfd_open, recording->recorder, 0);
	int reason = process < 0 ? errno : 0;
	struct prb_known_recording now;

	if (reason == ESRCH)
		return NULL;
	PRB_TRY(look_again(recording, pid, &now));
	recording_deinit(&now);
	/* As it runs still, it is the process that was opened. */
	if (!now.running)
		return NULL;
	if (!reason && syscall(SYS_pidfd_send_signal, process, SIGINT, NULL, 0))
		reason = errno;
	return reason ? prb_error_hint(prb_error_os(reason, "cannot end the recorder %d",
						    (int)recording->recorder),
				       "'kill -INT %d' ends it", (int)recording->recorder)
		      : NULL;
}

struct prb_error *prb_known_await(const struct prb_known_recording *recording, pid_t pid,
				  double seconds, bool *ret_ended)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	const int64_t end = prb_clock_ns() + (int64_t)(seconds * 1e9);
	struct prb_known_recording now;
	struct prb_error *err;

	for (;;) {
		PRB_TRY(look_again(recording, pid, &now));
		*ret_ended = !now.running;
		err = now.running || !now.failed
			      ? NULL
			      : prb_error_create(PRB_ERROR_FAILED,
						 "the recording has ended early: %s", now.failed);
		recording_deinit(&now);
		if (*ret_ended || prb_clock_ns() >= end)
			return err;
		nanosleep(&pause, NULL);
	}
}
