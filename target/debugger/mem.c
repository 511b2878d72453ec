/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/debugger/mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/debugger/line_cache.h"

enum { RUN_MAX = 1 << 18 /* bytes in one call */ };

struct debugger_mem {
	struct prb_mem mem; /* what is used: through the cache, if things are kept */
	struct prb_mem raw; /* the debugger's functions */
	const struct prb_debugger *debugger;
	struct prb_line_cache lines;
};

static const struct debugger_mem *of_raw(const struct prb_mem *raw)
{
	return (const struct debugger_mem *)((const char *)raw -
					     offsetof(struct debugger_mem, raw));
}

/* How much of it the debugger could read; no more is believed than was asked for. */
static size_t ask(const struct prb_debugger *d, uint64_t address, void *buffer, size_t length)
{
	return PRB_MIN(d->read(d->context, address, buffer, length), length);
}

static struct prb_error *raw_read(struct prb_mem *mem, uint64_t address, void *buffer,
				  size_t length)
{
	size_t done = ask(of_raw(mem)->debugger, address, buffer, length);

	return done == length ? NULL : prb_error_fault(address + done, length - done);
}

/* How many blocks lie one behind the other, from the first on. */
static size_t run_length(const struct prb_block *blocks, size_t count, size_t *length)
{
	size_t n = 1;

	*length = blocks[0].length;
	while (n < count && blocks[n].length <= RUN_MAX - *length &&
	       blocks[n].address - blocks[0].address == *length)
		*length += blocks[n++].length;
	return n;
}

/* Reads blocks that are neighbours in one call; or each by itself, if that fails. */
static struct prb_error *read_run(struct prb_mem *raw, struct prb_block *blocks, size_t count,
				  size_t length)
{
	const struct prb_debugger *d = of_raw(raw)->debugger;
	prb_auto_free char *buffer = count > 1 ? malloc(length) : NULL;
	size_t done = 0, at = 0;

	if (count > 1 && !buffer)
		return prb_error_nomem();
	if (buffer)
		done = ask(d, blocks[0].address, buffer, length);
	for (size_t i = 0; i < count; at += blocks[i++].length) {
		struct prb_block *b = &blocks[i];

		b->ok = buffer && at + b->length <= done;
		if (b->ok)
			memcpy(b->buffer, buffer + at, b->length);
		else
			b->ok = ask(d, b->address, b->buffer, b->length) == b->length;
	}
	return NULL;
}

static struct prb_error *raw_read_many(struct prb_mem *mem, struct prb_block *blocks, size_t count)
{
	for (size_t i = 0, run, length; i < count; i += run) {
		if (blocks[i].length > RUN_MAX) {
			run = 1;
			blocks[i].ok = ask(of_raw(mem)->debugger, blocks[i].address,
					   blocks[i].buffer, blocks[i].length) == blocks[i].length;
			continue;
		}
		run = run_length(blocks + i, count - i, &length);
		PRB_TRY(read_run(mem, blocks + i, run, length));
	}
	return NULL;
}

static const struct prb_mem_ops raw_ops = {
	.read = raw_read,
	.read_many = raw_read_many,
};

static struct prb_error *kept_read(struct prb_mem *mem, uint64_t address, void *buffer,
				   size_t length)
{
	return prb_line_cache_read(&((struct debugger_mem *)mem)->lines, address, buffer, length);
}

static struct prb_error *direct_read(struct prb_mem *mem, uint64_t address, void *buffer,
				     size_t length)
{
	return raw_read(&((struct debugger_mem *)mem)->raw, address, buffer, length);
}

static struct prb_error *direct_read_many(struct prb_mem *mem, struct prb_block *blocks,
					  size_t count)
{
	return raw_read_many(&((struct debugger_mem *)mem)->raw, blocks, count);
}

static void mem_destroy(struct prb_mem *mem)
{
	prb_line_cache_deinit(&((struct debugger_mem *)mem)->lines);
	free(mem);
}

static const struct prb_mem_ops kept_ops = {
	.read = kept_read,
	.destroy = mem_destroy,
};

static const struct prb_mem_ops direct_ops = {
	.read = direct_read,
	.read_many = direct_read_many,
	.destroy = mem_destroy,
};

struct prb_error *prb_debugger_mem_create(const struct prb_debugger *debugger,
					  const struct prb_maps *maps, bool keep,
					  struct prb_mem **ret)
{
	struct debugger_mem *m = calloc(1, sizeof(*m));

	if (!m)
		return prb_error_nomem();
	m->debugger = debugger;
	m->raw.ops = &raw_ops;
	m->mem.ops = keep ? &kept_ops : &direct_ops;
	m->mem.kept = keep;

	struct prb_error *err = keep ? prb_line_cache_init(&m->lines, debugger, maps) : NULL;
	if (err)
		free(m);
	else
		*ret = &m->mem;
	return err;
}
