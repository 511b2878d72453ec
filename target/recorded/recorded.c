/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/instance.h"
#include "target/recorded/recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "target/recorded/left.h"

struct recorded {
	struct prb_target target;
	struct prb_mem mem;
	char *path;
	enum { RECORDING, RING, FOLDER } form;
	int folder; /**< open on it, or -1 */
};

bool prb_recorded_probe(const char *path)
{
	enum { HEADER = 72, APPLICATION = 68 };
	static const uint8_t application[] = {'P', 'R', 'B', 'F'};
	prb_auto_close int fd = -1;
	char header[HEADER];
	struct prb_error *err = prb_file_open(-1, path, &fd);

	prb_error_destroy(err);
	return !err && pread(fd, header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	       !memcmp(header, "SQLite format 3", 16) &&
	       !memcmp(header + APPLICATION, application, sizeof(application));
}

bool prb_recorded_probe_ring(const char *path)
{
	static const char magic[] = {'P', 'R', 'B', 'R', 'I', 'N', 'G', '\n'};
	static const char cold[] = {'P', 'R', 'B', 'C', 'O', 'L', 'D', '\n'};
	prb_auto_close int fd = -1;
	char begin[sizeof(magic)];
	struct prb_error *err = prb_file_open(-1, path, &fd);

	prb_error_destroy(err);
	return !err && pread(fd, begin, sizeof(begin), 0) == (ssize_t)sizeof(begin) &&
	       (!memcmp(begin, magic, sizeof(magic)) || !memcmp(begin, cold, sizeof(cold)));
}

bool prb_recorded_probe_folder(const char *path)
{
	prb_auto_free char *name = strdup(path);
	size_t length = name ? strlen(name) : 0;
	uint64_t start_ticks;
	struct stat st;
	pid_t pid;

	while (length > 1 && name[length - 1] == '/')
		name[--length] = '\0';
	return length && prb_instance_parse(basename(name), &pid, &start_ticks) &&
	       !stat(path, &st) && S_ISDIR(st.st_mode);
}

static struct prb_error *only_rows(const struct recorded *recorded)
{
	if (recorded->form == FOLDER)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "a folder of rings holds rows of tables, "
						       "and no memory"),
				      "'probing FOLDER query' asks for some");
	if (recorded->form == RING)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "a ring holds the rows of one table, and no "
						       "memory"),
				      "'probing ring FILE' prints them, 'probing FILE query' asks "
				      "for some");
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED, "a recording holds samples, and no memory"),
		"'probing FILE perf' shows it; the tables are profile.…");
}

struct prb_error *prb_target_check_memory(const struct prb_target *t)
{
	return t->kind == PRB_TARGET_RECORDED ? only_rows((const struct recorded *)t) : NULL;
}

static struct prb_error *no_memory(struct prb_mem *mem, uint64_t address, void *buffer,
				   size_t length)
{
	(void)address;
	(void)buffer;
	(void)length;
	return only_rows((struct recorded *)((char *)mem - offsetof(struct recorded, mem)));
}

/* It belongs to the target. */
static void destroy_mem(struct prb_mem *mem)
{
	(void)mem;
}

static const struct prb_mem_ops mem_ops = {
	.read = no_memory,
	.destroy = destroy_mem,
};

static struct prb_error *no_text(struct prb_target *t, const char *name, struct prb_str *ret)
{
	(void)name;
	(void)ret;
	return only_rows((struct recorded *)t);
}

static void destroy(struct prb_target *t)
{
	struct recorded *recorded = (struct recorded *)t;

	prb_close_guard(&recorded->folder);
	free(recorded->path);
	free(recorded);
}

static const struct prb_target_ops ops = {
	.read_file = no_text,
	.read_link = no_text,
	.list = no_text,
	.destroy = destroy,
};

static struct prb_error *create(const char *path, struct recorded **ret)
{
	struct recorded *recorded = calloc(1, sizeof(*recorded));
	struct stat st;

	if (!recorded)
		return prb_error_nomem();
	recorded->mem.ops = &mem_ops;
	recorded->target = (struct prb_target){
		.ops = &ops,
		.kind = PRB_TARGET_RECORDED,
		.mem = &recorded->mem,
		.time = stat(path, &st) ? 0 : (double)st.st_mtime,
	};
	recorded->folder = -1;
	recorded->path = strdup(path);
	if (!recorded->path) {
		free(recorded);
		return prb_error_nomem();
	}
	*ret = recorded;
	return NULL;
}

struct prb_error *prb_target_open_rings(int fd, const char *path, struct prb_target **ret)
{
	prb_auto_close int own = fd;
	struct recorded *recorded;

	PRB_TRY(create(path, &recorded));
	recorded->form = FOLDER;
	recorded->folder = prb_steal_fd(&own);
	*ret = &recorded->target;
	return NULL;
}

struct prb_error *prb_target_open_recorded(const char *path, struct prb_target **ret)
{
	struct recorded *recorded;

	if (prb_recorded_probe_folder(path)) {
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		return fd < 0 ? prb_error_os(errno, "cannot open %.200s", path)
			      : prb_target_open_rings(fd, path, ret);
	}
	PRB_TRY(create(path, &recorded));
	recorded->form = prb_recorded_probe_ring(path) ? RING : RECORDING;
	*ret = &recorded->target;
	return NULL;
}

static const struct recorded *of(const struct prb_target *t, int form)
{
	const struct recorded *recorded = (const struct recorded *)t;

	return t->kind == PRB_TARGET_RECORDED && (int)recorded->form == form ? recorded : NULL;
}

const char *prb_recorded_path(const struct prb_target *t)
{
	return of(t, RECORDING) ? of(t, RECORDING)->path : NULL;
}

const char *prb_recorded_ring(const struct prb_target *t)
{
	return of(t, RING) ? of(t, RING)->path : NULL;
}

const char *prb_recorded_folder(const struct prb_target *t, int *ret_fd)
{
	const struct recorded *recorded = of(t, FOLDER);

	*ret_fd = recorded ? recorded->folder : -1;
	return recorded ? recorded->path : NULL;
}
