/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/own_file.h"
#include "base/str.h"
#include "target/proc/instance.h"
#include "target/proc/text.h"
#include "rings/cold.h"
#include "target/recorded/left.h"
#include "target/recorded/recorded.h"

enum {
	MAX_GAPS = 4096,
	MAX_FILES = 1024, /* an agent makes 64 rings at most, and each may have many cold files */
};

void prb_ring_files_deinit(struct prb_ring_files *files)
{
	struct prb_ring_stored *stored;
	struct prb_ring_file *file;

	prb_vec_each (file, &files->list) {
		prb_close_guard(&file->fd);
		free(file->path);
	}
	prb_vec_free(&files->list);
	prb_vec_each (stored, &files->stored)
		prb_vec_free(&stored->gaps);
	prb_vec_free(&files->stored);
	free(files->why);
}

static bool is_ring_name(const char *path)
{
	size_t length = strlen(path);

	return length > 5 && !strcmp(path + length - 5, ".ring");
}

/** Takes over @p fd. */
static struct prb_error *add(struct prb_ring_files *files, int fd, const char *path)
{
	prb_auto_close int own = fd;
	struct prb_ring_file *file = prb_vec_push(&files->list);

	if (!file)
		return prb_error_nomem();
	file->fd = prb_steal_fd(&own);
	file->path = strdup(path);
	return file->path ? NULL : prb_error_nomem();
}

/** Takes over @p err: one ring that cannot be read does not hide the others. */
static struct prb_error *leave_out(struct prb_ring_files *files, struct prb_error *err)
{
	if (err->code == PRB_ERROR_NOMEM)
		return err;
	if (!files->unreadable++)
		files->why = strdup(err->message);
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *too_many(void)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "there are more than %d files of rings",
				MAX_FILES);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct prb_ring_file *)a)->path,
		      ((const struct prb_ring_file *)b)->path);
}

/** By path, and all that is cold first. */
static int by_kind(const void *a, const void *b)
{
	bool x = prb_cold_is_name(((const struct prb_ring_file *)a)->path);
	bool y = prb_cold_is_name(((const struct prb_ring_file *)b)->path);

	return x != y ? (int)y - (int)x : by_path(a, b);
}

/** Files in a folder, of its owner: rings and cold files, or only these. */
static struct prb_error *find_in_folder(int folder, const char *path, bool rings,
					struct prb_ring_files *ret)
{
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	prb_auto_closedir DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	struct stat st;

	if (!stream || fstat(folder, &st))
		return prb_error_os(errno, "cannot list %s", path);
	while ((entry = readdir(stream))) {
		prb_auto_free char *name = NULL;
		uint64_t size;
		int fd;

		if (!(rings && is_ring_name(entry->d_name)) && !prb_cold_is_name(entry->d_name))
			continue;
		if (ret->list.count == MAX_FILES)
			return leave_out(ret, too_many());
		name = prb_format("%s/%s", path, entry->d_name);
		if (!name)
			return prb_error_nomem();
		fd = prb_own_file_open(folder, entry->d_name, O_RDONLY, st.st_uid, &size);
		if (fd >= 0)
			PRB_TRY(add(ret, fd, name));
		else
			PRB_TRY(leave_out(ret, prb_error_os(errno, "cannot open %s", name)));
	}
	if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), by_kind);
	return NULL;
}

/** The cold files in the folders of rings that the process has mapped. */
static struct prb_error *find_cold(struct prb_ring_files *ret)
{
	size_t rings = ret->list.count;

	for (size_t i = 0; i < rings; i++) {
		prb_auto_free char *path = strdup(ret->list.items[i].path);
		char *slash = path ? strrchr(path, '/') : NULL, *name;
		prb_auto_close int folder = -1;
		uint64_t start_ticks;
		bool known = false;
		struct stat st;
		pid_t pid;

		if (!path)
			return prb_error_nomem();
		if (!slash)
			continue;
		*slash = '\0';
		for (size_t j = 0; j < i && !known; j++)
			known = !strncmp(ret->list.items[j].path, path, (size_t)(slash - path)) &&
				strrchr(ret->list.items[j].path, '/') ==
					ret->list.items[j].path + (slash - path);
		name = strrchr(path, '/');
		if (known || !name || !prb_instance_parse(name + 1, &pid, &start_ticks) ||
		    fstat(ret->list.items[i].fd, &st))
			continue;
		folder = prb_own_folder_open(path, st.st_uid);
		if (folder >= 0)
			PRB_TRY(find_in_folder(folder, path, false, ret));
	}
	return NULL;
}

/** The folder of a ring, if it has a process's name and only its owner can write to it; else -1. */
static int open_process_folder(const char *ring, char **ret_path)
{
	char *path = strdup(ring), *slash = path ? strrchr(path, '/') : NULL;
	uint64_t start_ticks;
	struct stat st;
	pid_t pid;

	*ret_path = path;
	if (!slash)
		return -1;
	*slash = '\0';
	slash = strrchr(path, '/');
	if (!slash || !prb_instance_parse(slash + 1, &pid, &start_ticks) || lstat(path, &st))
		return -1;
	return prb_own_folder_open(path, st.st_uid);
}

static struct prb_error *find_mapped(struct prb_target *target, const struct prb_maps *maps,
				     struct prb_ring_files *ret)
{
	const struct prb_map *map;

	prb_vec_each (map, &maps->list) {
		struct prb_error *err;
		int fd;

		/* The agent maps a whole file at once. */
		if (!map->shared || map->offset || !is_ring_name(map->path))
			continue;
		if (ret->list.count == MAX_FILES)
			return leave_out(ret, too_many());
		err = prb_target_open_map(target, map, &fd);
		if (!err)
			PRB_TRY(add(ret, fd, map->path));
		else
			PRB_TRY(leave_out(ret, err));
	}
	return NULL;
}

/** Its pid in its own namespace. */
static struct prb_error *find_pid(struct prb_target *target, uint32_t *ret)
{
	prb_auto_str struct prb_str status = {};
	int64_t pid = target->pid;

	PRB_TRY(prb_target_read_file(target, &status, "status"));
	prb_text_last_number(prb_str_text(&status), "NSpid", &pid);
	*ret = (uint32_t)pid;
	return NULL;
}

static struct prb_error *find_live(struct prb_target *target, struct prb_ring_files *ret)
{
	struct prb_maps maps = {};
	struct prb_error *err = prb_target_read_maps(target, &maps);

	if (!err)
		err = find_mapped(target, &maps, ret);
	prb_maps_deinit(&maps);
	if (!err)
		err = find_cold(ret);
	if (!err && ret->list.count)
		err = find_pid(target, &ret->pid);
	return err;
}

/** A core, or a crash record: what its process has left on this machine, as far as it is there. */
static struct prb_error *find_crashed(struct prb_target *target, struct prb_ring_files *ret)
{
	struct prb_maps maps = {};
	struct prb_error *err = prb_target_read_maps(target, &maps);
	const struct prb_map *map;

	prb_vec_each (map, &maps.list) {
		prb_auto_free char *path = NULL;
		prb_auto_close int folder = -1;

		if (err || !is_ring_name(map->path))
			continue;
		folder = open_process_folder(map->path, &path);
		if (folder < 0)
			continue;
		ret->pid = (uint32_t)target->pid;
		err = find_in_folder(folder, path, true, ret);
		break; /* all of a process are in one folder */
	}
	prb_maps_deinit(&maps);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

struct prb_error *prb_ring_files_find(struct prb_target *target, struct prb_ring_files *ret)
{
	const char *path = prb_recorded_ring(target);
	int fd;

	if (path) {
		PRB_TRY(prb_file_open(-1, path, &fd));
		return add(ret, fd, path);
	}
	path = prb_recorded_folder(target, &fd);
	if (path)
		return find_in_folder(fd, path, true, ret);
	if (target->partial && !prb_target_is_recorded(target))
		return find_crashed(target, ret);
	/* A snapshot has no rings, also while it is made. */
	return target->local && !target->partial && !prb_target_is_recorded(target)
		       ? find_live(target, ret)
		       : NULL;
}

static struct prb_ring_stored *find_stored(struct prb_ring_files *files,
					   const struct prb_ring *ring)
{
	struct prb_ring_stored *stored;

	prb_vec_each (stored, &files->stored)
		if (prb_ring_is_same(&ring->header, &stored->header))
			return stored;
	return NULL;
}

struct prb_error *prb_ring_files_open(struct prb_ring_files *files, size_t index,
				      struct prb_ring **ret)
{
	struct prb_ring_file *file = &files->list.items[index];
	const struct prb_ring_stored *stored;

	PRB_TRY(prb_ring_open(prb_steal_fd(&file->fd), file->path, ret));
	stored = find_stored(files, *ret);
	if (!stored || (*ret)->cold)
		return NULL;
	return prb_ring_leave_stored(*ret, stored->next, stored->gaps.items, stored->gaps.count);
}

/** The gap without what files before this one had. There are few, unless the files are forged. */
static struct prb_error *add_gap(struct prb_ring_stored *stored, const struct prb_ring_span *gap)
{
	const uint64_t from = PRB_MAX(gap->from, stored->next);
	struct prb_ring_span *added;

	if (from >= gap->to || stored->gaps.count == MAX_GAPS)
		return NULL;
	added = prb_vec_push(&stored->gaps);
	if (!added)
		return prb_error_nomem();
	*added = (struct prb_ring_span){from, gap->to};
	return NULL;
}

struct prb_error *prb_ring_files_ended(struct prb_ring_files *files, const struct prb_ring *ring)
{
	struct prb_ring_stored *stored = find_stored(files, ring);
	const struct prb_ring_span *gap;

	if (!ring->cold)
		return NULL;
	if (!stored) {
		stored = prb_vec_push(&files->stored);
		if (!stored)
			return prb_error_nomem();
		*stored = (struct prb_ring_stored){.header = ring->header};
	}
	prb_vec_each (gap, &ring->gaps)
		PRB_TRY(add_gap(stored, gap));
	stored->next = PRB_MAX(stored->next, ring->chunk);
	return NULL;
}
