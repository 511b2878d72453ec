/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where objects are in containers. If a container holds thousands of objects whose paths are
 * requested, all places are noted at once: a search for each would take hours in a list of a
 * million.
 */
#include "base/checked.h"
#include "python/repr/core/items.h"
#include "values/census/private.h"

enum { MOST = 1 << 22 /* items of a container whose places are noted */ };

struct search {
	uint64_t child;
	struct prb_census_place *ret;
	bool found;
};

static bool look(void *context, uint64_t key, uint64_t value)
{
	struct search *s = context;

	s->ret->key = key;
	s->ret->is_key = key == s->child;
	s->found = value == s->child || s->ret->is_key;
	s->ret->index += !s->found;
	return !s->found;
}

static bool note_as(struct prb_census_places *p, uint64_t object, bool is_key)
{
	size_t known;

	return !object || prb_number_map_get(&p->numbers, object, &known) ||
	       prb_number_map_put(&p->numbers, object, p->keys.count * 2 + is_key);
}

/* The first place of an object counts. */
static bool note(void *context, uint64_t key, uint64_t value)
{
	struct prb_census_places *p = context;
	uint64_t *added;

	p->whole = p->keys.count < MOST && note_as(p, key, true) && note_as(p, value, false);
	added = p->whole ? prb_vec_push(&p->keys) : NULL;
	p->whole = added;
	if (added)
		*added = key;
	return p->whole;
}

static void forget(struct prb_census_places *p)
{
	prb_number_map_deinit(&p->numbers);
	prb_vec_free(&p->keys);
	*p = (struct prb_census_places){};
}

void prb_census_forget_places(struct prb_census *c)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(c->places); i++)
		forget(&c->places[i]);
}

static bool note_all(struct prb_census *c, struct prb_census_places *p)
{
	p->whole = true;
	return prb_census_try(c,
			      prb_object_items(c->py, c->mem, p->container, true, note, p, NULL)) &&
	       p->whole;
}

/* The noted places of a container, from the second search in it on. */
static struct prb_census_places *known(struct prb_census *c, uint64_t container)
{
	struct prb_census_places *p;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(c->places); i++) {
		p = &c->places[i];
		if (p->container != container)
			continue;
		if (!p->tried && !note_all(c, p))
			forget(p);
		p->container = container;
		p->tried = true;
		return p->whole ? p : NULL;
	}
	p = &c->places[c->next_places++ % PRB_ARRAY_SIZE(c->places)];
	forget(p);
	p->container = container;
	return NULL;
}

static bool find_known(const struct prb_census_places *p, uint64_t child,
		       struct prb_census_place *ret)
{
	size_t number;

	if (!prb_number_map_get(&p->numbers, child, &number))
		return false;
	*ret = (struct prb_census_place){
		.index = number / 2, .is_key = number % 2, .key = p->keys.items[number / 2]};
	return true;
}

bool prb_census_find_place(struct prb_census *c, uint64_t container, uint64_t child,
			   struct prb_census_place *ret)
{
	const struct prb_census_places *p = known(c, container);
	struct search s = {.child = child, .ret = ret};

	*ret = (struct prb_census_place){};
	if (p)
		return find_known(p, child, ret);
	return prb_census_try(c,
			      prb_object_items(c->py, c->mem, container, true, look, &s, NULL)) &&
	       s.found;
}
