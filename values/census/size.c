/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/census/size.h"

#include <math.h>

#include "base/cleanup.h"
#include "values/census/private.h"

/* A census whose only node is the object; the first member, by which it is freed. */
struct prb_measure {
	struct prb_census census;
};

struct prb_error *prb_measure_create(struct prb_python *py, struct prb_mem *mem,
				     struct prb_measure **ret)
{
	struct prb_census *c;

	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return prb_error_nomem();
	c = &(*ret)->census;
	c->py = py;
	c->base = c->mem = mem;
	c->alone = true;
	c->deadline = INFINITY;
	prb_repr_init(&c->repr, py, mem, NULL, NULL);
	prb_repr_init(&c->fresh, py, mem, NULL, NULL);
	prb_repr_init(&c->classes, py, mem, NULL, NULL);
	return NULL;
}

void prb_measure_destroy(struct prb_measure *measure)
{
	if (measure)
		prb_census_destroy(&measure->census);
}

struct prb_error *prb_measure_object(struct prb_measure *measure, uint64_t object, uint64_t *ret)
{
	struct prb_census *c = &measure->census;
	struct prb_census_entry *type = prb_census_look_at(c, object);
	struct prb_census_node *node;

	if (!type)
		return c->fatal ? prb_steal(&c->fatal)
				: prb_error_create(PRB_ERROR_BAD_DATA, "no object is at %#llx",
						   (unsigned long long)object);
	c->nodes.count = c->tensors.count = 0;
	node = prb_vec_push(&c->nodes);
	if (!node)
		return prb_error_nomem();
	*node = (struct prb_census_node){
		.address = object,
		.type = (uint32_t)(type - c->types.items),
		.parent = PRB_CENSUS_NONE,
	};
	node->bytes = prb_census_own_bytes(c, type, object);
	prb_census_follow(c, 0);
	prb_census_share_storages(c);
	*ret = c->nodes.items[0].bytes;
	return prb_steal(&c->fatal);
}
