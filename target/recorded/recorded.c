/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/recorded/recorded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"

struct recorded {
	struct prb_target target;
	struct prb_mem mem;
	char *path;
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

static struct prb_error *only_samples(void)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED, "a recording holds samples, and no memory"),
		"'probing FILE perf' shows it; the tables are profile.…");
}

struct prb_error *prb_target_check_memory(const struct prb_target *t)
{
	return t->kind == PRB_TARGET_RECORDED ? only_samples() : NULL;
}

static struct prb_error *no_memory(struct prb_mem *mem, uint64_t address, void *buffer,
				   size_t length)
{
	(void)mem;
	(void)address;
	(void)buffer;
	(void)length;
	return only_samples();
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
	(void)t;
	(void)name;
	(void)ret;
	return only_samples();
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
	recorded->path = strdup(path);
	if (!recorded->path) {
		free(recorded);
		return prb_error_nomem();
	}
	*ret = &recorded->target;
	return NULL;
}

const char *prb_recorded_path(const struct prb_target *t)
{
	return t->kind == PRB_TARGET_RECORDED ? ((const struct recorded *)t)->path : NULL;
}
