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

/* Of all pools: the sets are the target's, and may share their members. */
enum { MOST_MEMBERS = 1000000 };

struct members {
	struct prb_greenlets *greenlets;
	const struct prb_number_map *places; /* of each greenlet in the list, by its address */
	const struct prb_greenlet_pool *pool;
	size_t left;  /* members that may still be looked at */
	size_t count; /* that wait for the pool */
	bool others;  /* one does not, or is not known */
	bool mark;    /* set what they wait for */
};

static bool waits(const struct prb_greenlet *g, uint64_t object)
{
	return object && g->waits_on == object;
}

static bool visit(void *context, uint64_t key __attribute__((unused)), uint64_t address)
{
	struct members *m = context;
	struct prb_greenlet *g;
	size_t place;

	m->others = true;
	if (!m->left || !prb_number_map_get(m->places, address, &place))
		return false;
	m->left--;
	g = &m->greenlets->list.items[place];
	if (!waits(g, m->pool->room) && !waits(g, m->pool->empty))
		return false;
	m->others = false;
	m->count++;
	if (m->mark)
		g->own_pool = m->pool->greenlets;
	return true;
}

/*
 * A greenlet that waits until its own pool is empty waits for ever. If all others wait for a free
 * slot, none of them can go on.
 */
static struct prb_error *judge(struct members *m, struct prb_python *py, struct prb_mem *mem)
{
	bool torn;

	m->count = 0;
	m->others = m->mark = false;
	PRB_TRY(prb_object_items(py, mem, m->pool->greenlets, true, visit, m, &torn));
	if (torn || m->others || !m->count)
		return NULL;
	m->mark = true;
	return prb_object_items(py, mem, m->pool->greenlets, true, visit, m, &torn);
}

struct prb_error *prb_greenlet_pools_judge(const struct prb_greenlet_pools *pools,
					   struct prb_python *py, struct prb_mem *mem,
					   const struct prb_number_map *places,
					   struct prb_greenlets *greenlets)
{
	struct members m = {.greenlets = greenlets, .places = places, .left = MOST_MEMBERS};

	prb_vec_each (m.pool, &pools->list)
		PRB_TRY(prb_error_tolerate(judge(&m, py, mem), NULL));
	return NULL;
}
