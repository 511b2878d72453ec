/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/repr/core/items.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"

enum { CHUNK = 256 /* items that are read at once */ };

struct walk {
	struct prb_repr *r;
	uint64_t object;
	prb_item_visit *visit;
	void *context;
	bool stopped; /* by the visitor */
};

static struct prb_error *walk_array(struct walk *w, uint64_t address, uint64_t count)
{
	uint64_t items[CHUNK];

	for (uint64_t i = 0; i < count; i += CHUNK) {
		uint64_t n = PRB_MIN(count - i, (uint64_t)CHUNK);

		PRB_TRY(prb_repr_walk(w->r, n));
		PRB_TRY(prb_repr_words(w->r, address + i * 8, n, items));
		for (uint64_t j = 0; j < n; j++) {
			if (!items[j])
				w->r->torn = true;
			else if (!w->visit(w->context, 0, items[j])) {
				w->stopped = true;
				return NULL;
			}
		}
	}
	return NULL;
}

static struct prb_error *walk_list(struct walk *w)
{
	uint64_t count, address;

	PRB_TRY(prb_repr_size(w->r, w->object, &count));
	PRB_TRY(prb_repr_word(w->r, w->object + (uint64_t)w->r->layout->list_items, &address));
	return walk_array(w, address, count);
}

static struct prb_error *walk_tuple(struct walk *w)
{
	uint64_t count;

	PRB_TRY(prb_repr_size(w->r, w->object, &count));
	return walk_array(w, w->object + (uint64_t)w->r->layout->tuple_items, count);
}

static struct prb_error *walk_dict(struct walk *w)
{
	return prb_repr_dict_each(w->r, w->object, w->visit, w->context);
}

static bool visit_key(void *context, uint64_t key)
{
	struct walk *w = context;

	return w->visit(w->context, 0, key);
}

static struct prb_error *walk_set(struct walk *w)
{
	return prb_repr_set_each(w->r, w->object, visit_key, w);
}

static struct prb_error *walk_deque(struct walk *w)
{
	return prb_repr_deque_each(w->r, w->object, visit_key, w);
}

/* A ring: where to put the next item, where to get one, the items, room for how many, how many. */
static struct prb_error *walk_ring(struct walk *w)
{
	enum { PUT, GET, ITEMS, ROOM, COUNT, WORDS };
	uint64_t words[WORDS], first;

	PRB_TRY(prb_repr_words(w->r, w->object + (uint64_t)w->r->layout->object_size + 8, WORDS,
			       words));
	if (words[COUNT] > words[ROOM] || words[ROOM] > UINT32_MAX || words[GET] > words[ROOM])
		return prb_repr_bad(w->object, "a queue with more items than room");
	first = PRB_MIN(words[COUNT], words[ROOM] - words[GET]);
	PRB_TRY(walk_array(w, words[ITEMS] + words[GET] * 8, first));
	return w->stopped ? NULL : walk_array(w, words[ITEMS], words[COUNT] - first);
}

/* Until 3.12 a lock, if it is held, a list, and how many of its items were taken. */
static struct prb_error *walk_simple_queue(struct walk *w)
{
	enum { LOCK, HELD, LIST, TAKEN, WORDS };
	uint64_t words[WORDS], count, items;

	if (w->r->traits->queue_ring)
		return walk_ring(w);
	PRB_TRY(prb_repr_words(w->r, w->object + (uint64_t)w->r->layout->object_size, WORDS,
			       words));
	PRB_TRY(prb_repr_size(w->r, words[LIST], &count));
	if (words[TAKEN] > count)
		return prb_repr_bad(w->object, "a queue with fewer items than were taken");
	PRB_TRY(prb_repr_word(w->r, words[LIST] + (uint64_t)w->r->layout->list_items, &items));
	return walk_array(w, items + words[TAKEN] * 8, count - words[TAKEN]);
}

static const struct {
	const char *type;
	struct prb_error *(*walk)(struct walk *w);
} containers[] = {
	{"_queue.SimpleQueue", walk_simple_queue},
	{"collections.deque", walk_deque},
	{"dict", walk_dict},
	{"frozenset", walk_set},
	{"list", walk_list},
	{"set", walk_set},
	{"tuple", walk_tuple},
};

static struct prb_error *walk(struct walk *w)
{
	uint64_t mro[PRB_MRO_MAX];
	struct prb_type *type, *base;
	size_t count;

	PRB_TRY(prb_repr_type_of(w->r, w->object, &type));
	if (prb_repr_hides_items(w->r, type))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the class %s hides its items",
					type->name);
	PRB_TRY(prb_repr_mro(w->r, type, mro, &count));
	for (size_t i = 0; i < count; i++) {
		PRB_TRY(prb_repr_type(w->r, mro[i], &base));
		for (size_t j = 0; j < PRB_ARRAY_SIZE(containers); j++)
			if (prb_type_is(base, containers[j].type))
				return containers[j].walk(w);
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "%s objects have no items that can be told",
				type->name);
}

struct prb_error *prb_object_items(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				   bool secrets, prb_item_visit *visit, void *context, bool *torn)
{
	prb_auto_str struct prb_str unused = {};
	prb_auto_repr struct prb_repr r;
	struct walk w = {.r = &r, .object = object, .visit = visit, .context = context};

	prb_repr_init(&r, py, mem, &(struct prb_repr_options){.secrets = secrets}, &unused);

	struct prb_error *err = walk(&w);

	if (torn)
		*torn = r.torn;
	return err;
}
