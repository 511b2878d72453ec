/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The C libraries' lists of thread descriptors. glibc has two circular lists, of stacks that it
 * allocated and of stacks that the program provided; their heads are adjacent in the loader
 * (2.34+), or variables of libpthread. musl has one circular list of descriptors.
 */
#include <string.h>

#include "base/cleanup.h"
#include "dump/tasks/thread_of_state_private.h"

enum {
	GLIBC_LIST = 0x10,    /* `list` before `tid` */
	MUSL_NEXT = 0x18,     /* `next` before `tid` */
	MUSL_TID = 0x38,      /* the highest offset of `tid` */
	HEAD_SIZE = 16,	      /* list_t: next and prev */
	SPARE_NODES = 4096,   /* nodes that are no threads: cached stacks of ended threads */
	STACK_SIZE = 8 << 20, /* if the map does not show it */
};

/* One walk. */
struct walk {
	struct prb_thread_finder *finder;
	struct prb_mem *mem;
	uint32_t tid_offset;
	size_t left;   /* nodes that may still be visited */
	uint64_t head; /* the last list head on the walk */
};

bool prb_descriptor_is_musl(const struct prb_descriptor *descriptor)
{
	return descriptor->tid_offset <= MUSL_TID;
}

/* Follows a circular list from @p start, a node or a head, to its end. */
static struct prb_error *go_round(struct walk *w, uint64_t start, uint64_t node_offset)
{
	uint64_t node = start;

	while (w->left) {
		struct prb_descriptor *d;

		w->left--;
		PRB_TRY(prb_mem_read_u64(w->mem, node, &node));
		if (!node || node == start)
			return NULL;
		if (prb_modules_find(w->finder->modules, node)) {
			w->head = node;
			continue;
		}
		PRB_TRY(prb_thread_finder_descriptor(w->finder, w->mem, node - node_offset, &d));
	}
	return NULL;
}

static struct prb_error *walk_musl(struct walk *w, uint64_t self)
{
	uint64_t next = w->tid_offset - MUSL_NEXT, node = self;

	while (w->left) {
		struct prb_descriptor *d;

		w->left--;
		PRB_TRY(prb_mem_read_u64(w->mem, node + next, &node));
		if (!node || node == self)
			return NULL;
		PRB_TRY(prb_thread_finder_descriptor(w->finder, w->mem, node, &d));
	}
	return NULL;
}

/* libpthread's own variables, before 2.34; only symbol tables of files have their addresses. */
static struct prb_error *walk_old(struct walk *w, uint64_t node_offset)
{
	static const char *const heads[] = {"stack_used", "__stack_user"};
	struct prb_module **module;

	prb_vec_each (module, &w->finder->modules->list) {
		const char *slash = strrchr((*module)->path, '/');

		if (!slash || strncmp(slash, "/libpthread", strlen("/libpthread")) != 0)
			continue;
		for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
			uint64_t address;
			struct prb_error *err =
				prb_module_symbol(*module, heads[i], &address, NULL);

			if (!err)
				err = go_round(w, address, node_offset);
			PRB_TRY(prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ? NULL : err);
		}
	}
	return NULL;
}

static struct prb_error *walk_from(struct walk *w, const struct prb_descriptor *d)
{
	uint64_t node_offset = w->tid_offset - GLIBC_LIST;

	if (prb_descriptor_is_musl(d))
		return walk_musl(w, d->self);
	w->head = 0;
	PRB_TRY(go_round(w, d->self + node_offset, node_offset));
	if (w->head) { /* _dl_stack_used, _dl_stack_user, _dl_stack_cache */
		PRB_TRY(go_round(w, w->head - HEAD_SIZE, node_offset));
		PRB_TRY(go_round(w, w->head + HEAD_SIZE, node_offset));
	}
	if (w->finder->known.count < w->finder->tasks->list.count)
		PRB_TRY(walk_old(w, node_offset));
	return NULL;
}

struct prb_error *prb_thread_finder_walk(struct prb_thread_finder *finder, struct prb_mem *mem)
{
	size_t threads = finder->tasks->list.count, begun = finder->known.count;

	if (finder->walked)
		return NULL;
	finder->walked = true;
	for (size_t i = 0; i < begun && finder->known.count < threads; i++) {
		const struct prb_descriptor d = finder->known.items[i];
		struct walk w = {.finder = finder,
				 .mem = mem,
				 .tid_offset = d.tid_offset,
				 .left = 4 * threads + SPARE_NODES};
		struct prb_error *err = walk_from(&w, &d);

		if (err && (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS))
			return err;
		prb_error_destroy(err);
	}
	return NULL;
}

/* Descriptors are at the upper end of the stacks, except that of the first thread. */
const struct prb_descriptor *prb_thread_finder_by_stack(const struct prb_thread_finder *finder,
							uint64_t address)
{
	const struct prb_map *map = prb_maps_find(&finder->target->maps, address);
	const struct prb_descriptor *d, *best = NULL;

	prb_vec_each (d, &finder->known) {
		if (d->self <= address || (best && best->self < d->self))
			continue;
		if (map ? d->self < map->end : d->self - address < STACK_SIZE)
			best = d;
	}
	return best;
}
