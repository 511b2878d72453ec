/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/debugger/filled_mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"

struct file {
	char *path;
	int fd; /* -1: not to be had */
};

struct filled_mem {
	struct prb_mem mem;
	struct prb_mem *base;
	const struct prb_maps *maps;
	prb_filled_open *open;
	void *context;
	PRB_VEC(struct file) files; /* opened once each */
};

static struct prb_error *find_file(struct filled_mem *m, const struct prb_map *map, int *ret_fd)
{
	struct file *file;

	prb_vec_each (file, &m->files) {
		if (strcmp(file->path, map->path))
			continue;
		*ret_fd = file->fd;
		return NULL;
	}
	prb_auto_free char *path = strdup(map->path);
	file = path ? prb_vec_push(&m->files) : NULL;
	if (!file)
		return prb_error_nomem();
	file->path = prb_steal(&path);
	file->fd = -1;

	prb_auto_error struct prb_error *err = m->open(m->context, map, &file->fd);
	if (err) {
		prb_log("debugger", 1, "%s", err->message);
		file->fd = -1;
	}
	*ret_fd = file->fd;
	return NULL;
}

/* Reads the file from @p address on, up to the end of its mapping; length 0 if there is none. */
static struct prb_error *read_file(struct filled_mem *m, uint64_t address, void *buffer,
				   size_t length, size_t *ret)
{
	const struct prb_map *map = prb_maps_find(m->maps, address);
	int fd;

	*ret = 0;
	if (!map || map->write || map->path[0] != '/')
		return NULL;
	PRB_TRY(find_file(m, map, &fd));
	if (fd < 0)
		return NULL;

	ssize_t n = pread(fd, buffer, PRB_MIN(length, map->end - address),
			  (off_t)(map->offset + (address - map->start)));
	if (n > 0)
		*ret = (size_t)n;
	return NULL;
}

static struct prb_error *filled_read(struct prb_mem *mem, uint64_t address, void *buffer,
				     size_t length)
{
	struct filled_mem *m = (struct filled_mem *)mem;
	struct prb_error *err = prb_mem_read(m->base, address, buffer, length);

	if (!err || err->code != PRB_ERROR_FAULT)
		return err;
	for (size_t done = 0, part; done < length; done += part) {
		struct prb_error *own =
			read_file(m, address + done, (char *)buffer + done, length - done, &part);
		if (!own && part)
			continue;
		if (!own)
			return err;
		prb_error_destroy(err);
		return own;
	}
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *filled_read_many(struct prb_mem *mem, struct prb_block *blocks,
					  size_t count)
{
	struct filled_mem *m = (struct filled_mem *)mem;

	PRB_TRY(prb_mem_read_many(m->base, blocks, count));
	for (struct prb_block *b = blocks; b < blocks + count; b++) {
		if (b->ok)
			continue;

		struct prb_error *err = filled_read(mem, b->address, b->buffer, b->length);
		b->ok = !err;
		if (err && !prb_error_catch(&err, PRB_ERROR_FAULT))
			return err;
	}
	return NULL;
}

static void filled_destroy(struct prb_mem *mem)
{
	struct filled_mem *m = (struct filled_mem *)mem;
	struct file *file;

	prb_vec_each (file, &m->files) {
		free(file->path);
		prb_close_guard(&file->fd);
	}
	prb_vec_free(&m->files);
	prb_mem_destroy(m->base);
	free(m);
}

static const struct prb_mem_ops filled_ops = {
	.read = filled_read,
	.read_many = filled_read_many,
	.destroy = filled_destroy,
};

struct prb_error *prb_filled_mem_create(struct prb_mem *base, const struct prb_maps *maps,
					prb_filled_open *open, void *context, struct prb_mem **ret)
{
	struct filled_mem *m = calloc(1, sizeof(*m));

	if (!m)
		return prb_error_nomem();
	*m = (struct filled_mem){.mem.ops = &filled_ops,
				 .mem.kept = base->kept,
				 .base = base,
				 .maps = maps,
				 .open = open,
				 .context = context};
	*ret = &m->mem;
	return NULL;
}
