/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which of the objects that no module or frame leads to are garbage: as the collector finds it out,
 * each object's reference count less the references from the others of them. An object with more
 * references is held by C code, and so is all that it leads to; the rest is garbage that was not
 * collected yet.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/census/private.h"

enum { PY_3_12 = 0x030c };

struct counting {
	struct prb_census *c;
	int64_t *counts; /* of the objects from unheld_from on */
	uint32_t *stack; /* held objects that were not followed yet */
	size_t depth;
};

/* INT64_MAX for objects that are immortal. */
static int64_t reference_count(struct prb_census *c, uint64_t object)
{
	const struct prb_layout *l = &c->py->layout;
	uint64_t count, shared = 0;

	if (!prb_census_try(c,
			    prb_mem_read_u64(c->mem, object + (uint64_t)l->object_refcnt, &count)))
		return INT64_MAX;
	if (l->version < PY_3_12)
		return (int64_t)count;
	if (!l->free_threaded)
		return (int32_t)count < 0 ? INT64_MAX : (int64_t)(count & INT32_MAX);
	if ((uint32_t)count == UINT32_MAX ||
	    !prb_census_try(c, prb_mem_read_u64(c->mem, object + (uint64_t)l->object_refcnt_shared,
						&shared)))
		return INT64_MAX;
	return (int64_t)(uint32_t)count + ((int64_t)shared >> 2);
}

static struct prb_error *subtract(void *context, uint32_t holder __attribute__((unused)),
				  uint32_t object)
{
	struct counting *k = context;

	if (object >= k->c->unheld_from && k->counts[object - k->c->unheld_from] != INT64_MAX)
		k->counts[object - k->c->unheld_from]--;
	return NULL;
}

static struct prb_error *hold(void *context, uint32_t holder __attribute__((unused)),
			      uint32_t object)
{
	struct counting *k = context;

	if (object < k->c->unheld_from || k->counts[object - k->c->unheld_from] > 0)
		return NULL;
	k->counts[object - k->c->unheld_from] = 1;
	k->stack[k->depth++] = object;
	return NULL;
}

static void count(struct counting *k, size_t n)
{
	struct prb_census *c = k->c;

	c->wanted = PRB_CENSUS_NONE;
	c->context = k;
	c->holder = subtract;
	for (size_t i = 0; i < n && !c->fatal && !prb_census_is_late(c); i++)
		prb_census_follow(c, (uint32_t)(c->unheld_from + i));
	c->holder = hold;
	for (size_t i = 0; i < n; i++)
		if (k->counts[i] > 0)
			k->stack[k->depth++] = (uint32_t)(c->unheld_from + i);
	while (k->depth && !c->fatal && !prb_census_is_late(c))
		prb_census_follow(c, k->stack[--k->depth]);
	c->holder = NULL;
}

void prb_census_find_garbage(struct prb_census *c)
{
	size_t n = c->nodes.count - c->unheld_from;
	prb_auto_free int64_t *counts = calloc(n + 1, sizeof(*counts));
	prb_auto_free uint32_t *stack = calloc(n + 1, sizeof(*stack));
	struct counting k = {.c = c, .counts = counts, .stack = stack};

	c->garbage = calloc(n / 8 + 1, 1);
	if (!counts || !stack || !c->garbage) {
		prb_census_try(c, prb_error_nomem());
		return;
	}
	for (size_t i = 0; i < n; i++)
		counts[i] = reference_count(c, c->nodes.items[c->unheld_from + i].address);
	count(&k, n);
	/* Half a count says nothing. */
	if (c->late)
		return;
	for (size_t i = 0; i < n; i++) {
		if (counts[i] > 0)
			continue;
		c->garbage[i / 8] |= (uint8_t)(1 << i % 8);
		c->garbage_count++;
		c->garbage_bytes += c->nodes.items[c->unheld_from + i].bytes;
	}
}

bool prb_census_is_garbage(const struct prb_census *c, uint32_t index)
{
	uint64_t i = index - c->unheld_from;

	return index >= c->unheld_from && index < c->nodes.count && c->garbage &&
	       c->garbage[i / 8] >> i % 8 & 1;
}
