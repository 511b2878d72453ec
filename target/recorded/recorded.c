/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/recorded/recorded.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"

struct recorded {
	struct prb_target target;
	struct prb_mem mem;
	char *path;
	bool ring;
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
	prb_auto_close int fd = -1;
	char begin[sizeof(magic)];
	struct prb_error *err = prb_file_open(-1, path, &fd);

	prb_error_destroy(err);
	return !err && pread(fd, begin, sizeof(begin), 0) == (ssize_t)sizeof(begin) &&
	       !memcmp(begin, magic, sizeof(magic));
}

static struct prb_error *only_rows(const struct recorded *recorded)
{
	if (recorded->ring)
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

	free(recorded->path);
	free(recorded);
}

static const struct prb_target_ops ops = {
	.read_file = no_text,
	.read_link = no_text,
	.list = no_text,
	.destroy = destroy,
};

struct prb_error *prb_target_open_recorded(const char *path, struct prb_target **ret)
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
	recorded->ring = prb_recorded_probe_ring(path);
	recorded->path = strdup(path);
	if (!recorded->path) {
		free(recorded);
		return prb_error_nomem();
	}
	*ret = &recorded->target;
	return NULL;
}

static const char *path_of(const struct prb_target *t, bool ring)
{
	const struct recorded *recorded = (const struct recorded *)t;

	return t->kind == PRB_TARGET_RECORDED && recorded->ring == ring ? recorded->path : NULL;
}

const char *prb_recorded_path(const struct prb_target *t)
{
	return path_of(t, false);
}

const char *prb_recorded_ring(const struct prb_target *t)
{
	return path_of(t, true);
}
