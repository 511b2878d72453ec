/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Along the doubly linked lists of the garbage collector, while they change. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/heap/private.h"

enum {
	FLAG_BITS = 3,	 /* of both pointers; where there are none these bits are 0 */
	NODE_BYTES = 96, /* room for the collector's head and the object's */
	ATTEMPTS = 4,	 /* to find the way back after the list has changed */
};

enum step {
	STEP_OBJECT,
	STEP_END,    /* the head again */
	STEP_BROKEN, /* what follows does not point back, or is no object */
	STEP_ASTRAY, /* the head of another list: the objects were moved there */
};

struct node {
	uint64_t next, prev;
};

static struct prb_error *read_node(struct prb_heap *h, uint64_t address, struct node *ret)
{
	uint64_t words[2];

	PRB_TRY(prb_mem_read(prb_blocks_mem(h->blocks), address, words, sizeof(words)));
	ret->next = words[0] & ~(uint64_t)FLAG_BITS;
	ret->prev = words[1] & ~(uint64_t)FLAG_BITS;
	return NULL;
}

/* Memory that is gone, or was never an object, breaks a list; other errors end the walk. */
static bool is_break(struct prb_error **err)
{
	return prb_error_catch(err, PRB_ERROR_FAULT) || prb_error_catch(err, PRB_ERROR_BAD_DATA);
}

static bool is_head(const struct prb_heap *h, uint64_t address)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(h->lists.gc.heads); i++)
		if (h->lists.gc.heads[i] == address)
			return true;
	return false;
}

/* Reads the successor of a node that is known to be in the list. */
static struct prb_error *look(struct prb_heap *h, uint64_t from, bool anew, uint64_t *next,
			      enum step *step, struct prb_heap_object *ret)
{
	uint64_t head_size = h->lists.gc.head_size;
	size_t length = head_size + (uint64_t)h->py->layout.object_size;
	uint8_t copy[NODE_BYTES];
	const uint8_t *bytes;
	struct node node;
	uint64_t prev;

	*step = STEP_BROKEN;
	if (anew)
		prb_blocks_forget(h->blocks, from);
	PRB_TRY(read_node(h, from, &node));
	*next = node.next;
	if (!node.next || (node.next % sizeof(void *) && !is_head(h, node.next)))
		return NULL;
	if (anew)
		prb_blocks_forget(h->blocks, node.next);
	if (is_head(h, node.next)) {
		PRB_TRY(read_node(h, node.next, &node));
		if (h->lists.collecting || node.prev == from)
			*step = *next == h->lists.gc.heads[h->lists.list] ? STEP_END : STEP_ASTRAY;
		return NULL;
	}
	bytes = prb_blocks_at(h->blocks, node.next, length);
	if (!bytes) {
		PRB_TRY(prb_mem_read(prb_blocks_mem(h->blocks), node.next, copy, length));
		bytes = copy;
	}
	memcpy(&prev, bytes + sizeof(uint64_t), sizeof(prev));
	if (!h->lists.collecting && (prev & ~(uint64_t)FLAG_BITS) != from)
		return NULL;
	PRB_TRY(prb_heap_describe(h, node.next + head_size, bytes + head_size, ret));
	*step = STEP_OBJECT;
	return NULL;
}

static struct prb_error *try_step(struct prb_heap *h, uint64_t from, bool anew, uint64_t *next,
				  enum step *step, struct prb_heap_object *ret)
{
	struct prb_error *err = look(h, from, anew, next, step, ret);
	if (is_break(&err))
		*step = STEP_BROKEN;
	return err;
}

static uint64_t *trail_at(struct prb_heap_lists *lists, size_t step)
{
	return &lists->trail[step % PRB_HEAP_TRAIL];
}

static void put_on_trail(struct prb_heap_lists *lists, uint64_t node)
{
	if (lists->steps >= lists->oldest + PRB_HEAP_TRAIL)
		lists->oldest = lists->steps - PRB_HEAP_TRAIL + 1;
	*trail_at(lists, lists->steps++) = node;
}

/* True if the node of a step is still where it was met. */
static struct prb_error *still_linked(struct prb_heap *h, size_t step, bool *ret)
{
	uint64_t address = *trail_at(&h->lists, step);
	struct node node, before;
	struct prb_error *err;

	*ret = is_head(h, address);
	if (*ret)
		return NULL;
	prb_blocks_forget(h->blocks, address);
	prb_blocks_forget(h->blocks, *trail_at(&h->lists, step - 1));
	err = read_node(h, address, &node);
	if (!err)
		err = read_node(h, *trail_at(&h->lists, step - 1), &before);
	if (is_break(&err) || err)
		return err;
	*ret = node.prev == *trail_at(&h->lists, step - 1) && before.next == address;
	return NULL;
}

/* Goes back along the trail to a node that still is in the list, and on from there. */
static struct prb_error *rewind_trail(struct prb_heap *h, uint64_t *next, enum step *step,
				      struct prb_heap_object *ret)
{
	struct prb_heap_lists *lists = &h->lists;

	for (size_t i = lists->steps; i-- > lists->oldest;) {
		bool linked;

		if (i == lists->oldest && i) /* what was before it is forgotten */
			break;
		PRB_TRY(still_linked(h, i, &linked));
		if (!linked)
			continue;
		PRB_TRY(try_step(h, *trail_at(lists, i), true, next, step, ret));
		if (*step != STEP_BROKEN)
			lists->steps = i + 1;
		return NULL;
	}
	return NULL;
}

static struct prb_error *read_collecting(struct prb_heap *h)
{
	uint32_t flag = 0;

	if (h->lists.gc.collecting)
		PRB_TRY(prb_mem_read_u32(h->mem, h->lists.gc.collecting, &flag));
	h->lists.collecting = flag == 1;
	if (h->lists.collecting)
		prb_heap_set_doubt(
			h,
			"the garbage collector is running: objects that it visits may be missing");
	return NULL;
}

/* One step along the list, found again if it has changed. */
static struct prb_error *advance(struct prb_heap *h, uint64_t *next, enum step *step,
				 struct prb_heap_object *ret)
{
	uint64_t from = *trail_at(&h->lists, h->lists.steps - 1);

	PRB_TRY(try_step(h, from, false, next, step, ret));
	for (int i = 0; *step == STEP_BROKEN && i < ATTEMPTS; i++) {
		PRB_TRY(read_collecting(h));
		PRB_TRY(rewind_trail(h, next, step, ret));
	}
	return NULL;
}

/*
 * A list that was torn may lead in a circle. The anchor is set anew at each power of two (Brent),
 * so that in a circle it is met again after at most three rounds.
 */
static bool circles(struct prb_heap_lists *lists, uint64_t node)
{
	if (node == lists->anchor)
		return true;
	if (lists->steps >= lists->next_anchor) {
		lists->anchor = node;
		lists->next_anchor = lists->steps * 2;
	}
	return false;
}

static void begin_list(struct prb_heap_lists *lists)
{
	lists->trail[0] = lists->gc.heads[lists->list];
	lists->steps = 1;
	lists->oldest = 0;
	lists->anchor = 0;
	lists->next_anchor = 2;
}

struct prb_error *prb_heap_lists_init(struct prb_heap *h)
{
	PRB_TRY(prb_gc_lists(h->py, h->mem, h->interp, &h->lists.gc));
	if (h->lists.gc.head_size + (uint64_t)h->py->layout.object_size > NODE_BYTES)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the layout of objects is implausible");
	return read_collecting(h);
}

struct prb_error *prb_heap_lists_next(struct prb_heap *h, struct prb_heap_object *ret, bool *more)
{
	struct prb_heap_lists *lists = &h->lists;

	for (; lists->list < PRB_ARRAY_SIZE(lists->gc.heads); lists->list++, lists->steps = 0) {
		enum step step;
		uint64_t next;

		if (!lists->gc.heads[lists->list])
			continue;
		if (!lists->steps)
			begin_list(lists);
		PRB_TRY(advance(h, &next, &step, ret));
		if (step == STEP_BROKEN || (step == STEP_OBJECT && circles(lists, next)))
			prb_heap_torn(h);
		else if (step == STEP_ASTRAY)
			prb_heap_set_doubt(h, "the garbage collector ran meanwhile: objects may be "
					      "missing or be counted twice");
		else if (step == STEP_OBJECT) {
			put_on_trail(lists, next);
			ret->generation = (uint8_t)lists->list;
			*more = true;
			return NULL;
		}
	}
	*more = false;
	return NULL;
}
