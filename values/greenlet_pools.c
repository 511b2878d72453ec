/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/greenlet_pools.h"

#include "base/cleanup.h"
#include "python/repr/core/items.h"
#include "python/repr/core/repr.h"

enum { MOST_POOLS = 1000 };

void prb_greenlet_pools_deinit(struct prb_greenlet_pools *pools)
{
	prb_vec_free(&pools->list);
}

/* 0: it has no such attribute. */
static struct prb_error *attribute(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				   const char *name, uint64_t *ret)
{
	*ret = 0;
	return prb_error_tolerate(prb_object_attribute(py, mem, object, name, ret), NULL);
}

struct prb_error *prb_greenlet_pools_add(struct prb_greenlet_pools *pools, struct prb_python *py,
					 struct prb_mem *mem, uint64_t object)
{
	struct prb_greenlet_pool pool, *place;

	PRB_TRY(attribute(py, mem, object, "greenlets", &pool.greenlets));
	PRB_TRY(attribute(py, mem, object, "_semaphore", &pool.room));
	PRB_TRY(attribute(py, mem, object, "_empty_event", &pool.empty));
	if (!pool.greenlets || pools->list.count >= MOST_POOLS)
		return NULL;
	place = prb_vec_push(&pools->list);
	if (!place)
		return prb_error_nomem();
	*place = pool;
	return NULL;
}

struct members {
	struct prb_greenlets *greenlets;
	const struct prb_greenlet_pool *pool;
	size_t count, for_room, for_end;
	bool mark; /* set what they wait for */
};

static bool waits(const struct prb_greenlet *g, uint64_t object)
{
	return object && g->waits_on == object;
}

static bool visit(void *context, uint64_t key __attribute__((unused)), uint64_t address)
{
	struct members *m = context;
	struct prb_greenlet *g;

	m->count++;
	prb_vec_each (g, &m->greenlets->list) {
		if (g->address != address)
			continue;
		m->for_room += waits(g, m->pool->room);
		m->for_end += waits(g, m->pool->empty);
		if (m->mark)
			g->own_pool =
				g->own_pool || waits(g, m->pool->room) || waits(g, m->pool->empty);
	}
	return true;
}

/*
 * One that waits until its own pool is empty waits for ever, and then so do those that wait for
 * room, if all others do.
 */
static struct prb_error *judge(const struct prb_greenlet_pool *pool, struct prb_python *py,
			       struct prb_mem *mem, struct prb_greenlets *greenlets)
{
	struct members m = {.greenlets = greenlets, .pool = pool};
	bool torn;

	PRB_TRY(prb_object_items(py, mem, pool->greenlets, true, visit, &m, &torn));
	if (torn || !m.count || m.for_room + m.for_end != m.count)
		return NULL;
	m.mark = true;
	return prb_object_items(py, mem, pool->greenlets, true, visit, &m, &torn);
}

struct prb_error *prb_greenlet_pools_judge(const struct prb_greenlet_pools *pools,
					   struct prb_python *py, struct prb_mem *mem,
					   struct prb_greenlets *greenlets)
{
	const struct prb_greenlet_pool *pool;

	prb_vec_each (pool, &pools->list)
		PRB_TRY(prb_error_tolerate(judge(pool, py, mem, greenlets), NULL));
	return NULL;
}
