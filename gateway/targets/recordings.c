/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/targets/recordings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/conflict.h"
#include "base/new_file.h"

/** A recording ends by itself; one that is so late is ended. */
static const double LATE_SECONDS = 30;

struct prb_error *prb_recordings_prepare(struct prb_recordings *recordings)
{
	const char *base = getenv("XDG_RUNTIME_DIR");

	if (recordings->folder)
		return NULL;
	if (!base || *base != '/' || access(base, W_OK))
		base = "/tmp";
	PRB_TRY(prb_new_file_check_way(base));
	prb_auto_free char *path = prb_format("%s/probing-serve-XXXXXX", base);
	if (!path)
		return prb_error_nomem();
	/* Of mode 0700, and new: no other user can put anything into it. */
	if (!mkdtemp(path))
		return prb_error_os(errno, "cannot make a folder in %s", base);
	recordings->folder = prb_steal(&path);
	return NULL;
}

char *prb_recordings_file(struct prb_recordings *recordings, const char *ending)
{
	return prb_format("%s/%u%s", recordings->folder, ++recordings->files, ending);
}

static void destroy(struct prb_profile_made *made)
{
	prb_child_deinit(&made->child);
	if (made->path)
		unlink(made->path);
	prb_process_deinit(&made->process);
	free(made->path);
	free(made->name);
	free(made->note);
	free(made);
}

static void empty_folder(const char *path)
{
	prb_auto_closedir DIR *folder = opendir(path);

	for (struct dirent *e; folder && (e = readdir(folder));)
		if (e->d_name[0] != '.')
			unlinkat(dirfd(folder), e->d_name, 0);
	rmdir(path);
}

void prb_recordings_deinit(struct prb_recordings *recordings)
{
	for (size_t i = 0; i < recordings->list.count; i++)
		destroy(recordings->list.items[i]);
	prb_vec_free(&recordings->list);
	if (recordings->folder)
		empty_folder(recordings->folder);
	free(prb_steal(&recordings->folder));
}

static size_t count_running(const struct prb_recordings *recordings)
{
	size_t count = 0;

	for (size_t i = 0; i < recordings->list.count; i++)
		count += recordings->list.items[i]->child.pid != 0;
	return count;
}

bool prb_recordings_run(const struct prb_recordings *recordings)
{
	return count_running(recordings);
}

static struct prb_error *begin(struct prb_recordings *recordings, struct prb_profile_made *made,
			       struct prb_words *words)
{
	prb_auto_close int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

	made->path = prb_recordings_file(recordings, ".profile");
	if (!made->path)
		return prb_error_nomem();
	PRB_TRY(prb_words_add(words, "--output=%s", made->path));
	return prb_child_start(&made->child, words, NULL, nothing);
}

struct prb_error *prb_recordings_start(struct prb_recordings *recordings, const char *target,
				       pid_t pid, double duration, double now,
				       struct prb_words *words, struct prb_profile_made **ret)
{
	struct prb_profile_made *made, **place;

	if (recordings->list.count >= PRB_RECORDINGS_MAX)
		return prb_error_hint(
			prb_conflict_create("there are %d recordings already", PRB_RECORDINGS_MAX),
			"delete one");
	if (count_running(recordings) >= PRB_RECORDINGS_MAX_RUNNING)
		return prb_error_hint(prb_conflict_create("%d recordings run already",
							  PRB_RECORDINGS_MAX_RUNNING),
				      "stop one, or wait until it ends");
	PRB_TRY(prb_recordings_prepare(recordings));
	made = calloc(1, sizeof(*made));
	place = made ? prb_vec_push(&recordings->list) : NULL;
	if (!place) {
		free(made);
		return prb_error_nomem();
	}
	*made = (struct prb_profile_made){.started = prb_clock_calendar_seconds(),
					  .duration = duration,
					  .child = {.out = -1, .err = -1}};
	snprintf(made->id, sizeof(made->id), "p%u", ++recordings->made);
	snprintf(made->target, sizeof(made->target), "%s", target);
	*place = made;
	if (pid)
		prb_error_destroy(prb_process_describe(pid, &made->process));

	struct prb_error *err = begin(recordings, made, words);

	made->child.until = now + duration + LATE_SECONDS;
	if (err) {
		recordings->list.count--;
		destroy(made);
	}
	*ret = err ? NULL : made;
	return err;
}

struct prb_profile_made *prb_recordings_find(const struct prb_recordings *recordings,
					     const char *id)
{
	for (size_t i = 0; i < recordings->list.count; i++)
		if (!strcmp(recordings->list.items[i]->id, id))
			return recordings->list.items[i];
	return NULL;
}

void prb_recordings_stop(struct prb_profile_made *made)
{
	if (made->child.pid && !made->stopped)
		kill(made->child.pid, SIGINT);
	made->stopped = made->child.pid;
}

void prb_recordings_remove(struct prb_recordings *recordings, struct prb_profile_made *made)
{
	size_t kept = 0;

	for (size_t i = 0; i < recordings->list.count; i++)
		if (recordings->list.items[i] != made)
			recordings->list.items[kept++] = recordings->list.items[i];
	recordings->list.count = kept;
	destroy(made);
}

void prb_recordings_tend(struct prb_recordings *recordings, double now)
{
	for (size_t i = 0; i < recordings->list.count; i++)
		prb_child_tend(&recordings->list.items[i]->child, now);
}

void prb_recordings_put(const struct prb_profile_made *made, const char *key, struct prb_json *json)
{
	prb_auto_error struct prb_error *err =
		made->child.ended ? prb_child_judge(&made->child) : NULL;
	char *const *argument;

	prb_json_open(json, key, '{');
	prb_json_text(json, "id", made->id);
	prb_json_text(json, "target", made->target);
	prb_json_open(json, "argv", '[');
	prb_vec_each (argument, &made->process.argv)
		prb_json_text(json, NULL, *argument);
	prb_json_close(json, ']');
	prb_json_text(json, "name", made->name);
	prb_json_text(json, "note", made->note);
	prb_json_real(json, "started", made->started, 3);
	prb_json_real(json, "duration", made->duration, 3);
	/* An interrupted recording has an exit code of its own, and is complete. */
	prb_json_text(json, "state",
		      made->child.pid	      ? "running"
		      : err && !made->stopped ? "failed"
					      : "finished");
	prb_json_bool(json, "stopped", made->stopped);
	prb_json_text(json, "error", err && !made->stopped ? err->message : NULL);
	prb_json_close(json, '}');
}
