/* SPDX-License-Identifier: GPL-3.0-or-later */
/* list, tuple, set, frozenset, deque, range and slice. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

enum { DEQUE_BLOCK_MAX = 64, SET_CHUNK = 64 };

struct prb_error *prb_repr_array(struct prb_repr *r, uint64_t address, uint64_t count)
{
	size_t shown = PRB_MIN(count, (uint64_t)r->max.max_items);
	prb_auto_free uint64_t *array = calloc(shown + 1, sizeof(*array));
	struct prb_items items = {.r = r, .total = count};

	if (!array)
		return prb_error_nomem();
	PRB_TRY(prb_repr_words(r, address, shown, array));
	while (prb_items_next(&items))
		PRB_TRY(prb_repr_object(r, array[items.done - 1]));
	return NULL;
}

struct prb_error *prb_repr_handle_list(struct prb_repr *r, uint64_t object,
				       struct prb_type *type __attribute__((unused)))
{
	uint64_t count, address;

	PRB_TRY(prb_repr_size(r, object, &count));
	PRB_TRY(prb_repr_word(r, object + (uint64_t)r->layout->list_items, &address));
	if (!prb_repr_enter(r, object, "[...]"))
		return NULL;
	prb_str_putc(r->out, '[');
	PRB_TRY(prb_repr_array(r, address, count));
	prb_str_putc(r->out, ']');
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_tuple(struct prb_repr *r, uint64_t object,
					struct prb_type *type __attribute__((unused)))
{
	uint64_t count;

	PRB_TRY(prb_repr_size(r, object, &count));
	if (!prb_repr_enter(r, object, "(...)"))
		return NULL;
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_repr_array(r, object + (uint64_t)r->layout->tuple_items, count));
	prb_str_puts(r->out, count == 1 ? ",)" : ")");
	prb_repr_leave(r);
	return NULL;
}

/* A set as it lies in memory, and how far it was walked. */
struct set {
	uint64_t table, slots, used;
	uint64_t next;		       /* slot */
	uint64_t chunk[SET_CHUNK * 2]; /* key and hash of slots */
};

static struct prb_error *open_set(struct prb_repr *r, uint64_t object, struct set *ret)
{
	uint64_t words[4]; /* fill, used, mask, table */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 4, words));
	ret->used = words[1];
	ret->slots = words[2] + 1;
	ret->table = words[3];
	ret->next = 0;
	if (ret->slots > UINT32_MAX || ret->used > ret->slots)
		return prb_repr_bad(object, "a set of impossible size");
	return NULL;
}

/* The next key in the order of memory; BAD_DATA if there are fewer than the set says. */
static struct prb_error *next_key(struct prb_repr *r, struct set *set, uint64_t *ret)
{
	for (; set->next < set->slots; set->next++) {
		uint64_t at = set->next % SET_CHUNK;

		PRB_TRY(prb_repr_walk(r, 1));
		if (at == 0)
			PRB_TRY(prb_repr_words(
				r, set->table + set->next * 16,
				PRB_MIN(set->slots - set->next, (uint64_t)SET_CHUNK) * 2,
				set->chunk));
		*ret = set->chunk[at * 2];
		/* A removed key leaves a dummy; no hash is -1, and 3.4 has a type of its own. */
		if (!*ret || set->chunk[at * 2 + 1] == UINT64_MAX ||
		    prb_repr_is(r, *ret, "<dummy key> type"))
			continue;
		set->next++;
		return NULL;
	}
	return prb_repr_bad(set->table, "a set with fewer keys than it says");
}

static struct prb_error *is_set(struct prb_repr *r, uint64_t object, bool *ret)
{
	uint64_t mro[PRB_MRO_MAX];
	struct prb_type *type;
	size_t count;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	*ret = prb_type_is(type, "set") || prb_type_is(type, "frozenset");
	if (*ret)
		return NULL;
	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = 0; i < count && !*ret; i++) {
		PRB_TRY(prb_repr_type(r, mro[i], &type));
		*ret = prb_type_is(type, "set") || prb_type_is(type, "frozenset");
	}
	return NULL;
}

struct prb_error *prb_repr_set_each(struct prb_repr *r, uint64_t object,
				    bool (*visit)(void *context, uint64_t key), void *context)
{
	struct set set;
	uint64_t key;
	bool fits;

	PRB_TRY(is_set(r, object, &fits));
	if (!fits)
		return prb_repr_bad(object, "not a set");
	PRB_TRY(open_set(r, object, &set));
	for (uint64_t i = 0; i < set.used; i++) {
		PRB_TRY(next_key(r, &set, &key));
		if (!visit(context, key))
			break;
	}
	return NULL;
}

struct prb_error *prb_repr_handle_set(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_items items = {.r = r};
	struct set set;
	uint64_t key;

	PRB_TRY(open_set(r, object, &set));

	bool plain = prb_type_is(type, "set") && set.used;

	if (!plain)
		PRB_TRY(prb_repr_put_name(r, type));
	if (!prb_repr_enter(r, object, NULL)) {
		prb_str_puts(r->out, plain ? "set(...)" : "(...)");
		return NULL;
	}
	if (!plain)
		prb_str_putc(r->out, '(');
	if (set.used) {
		prb_str_putc(r->out, '{');
		items.total = set.used;
		while (prb_items_next(&items)) {
			PRB_TRY(next_key(r, &set, &key));
			PRB_TRY(prb_repr_object(r, key));
		}
		prb_str_putc(r->out, '}');
	}
	if (!plain)
		prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

/* The blocks of a deque: a link to the left, the items, a link to the right. */
struct deque {
	uint64_t block, index; /* where the next item is */
};

static struct prb_error *next_in_deque(struct prb_repr *r, struct deque *deque, uint64_t *ret)
{
	unsigned length = r->traits->deque_block;

	if (deque->index == length) {
		PRB_TRY(prb_repr_word(r, deque->block + 8 + length * 8, &deque->block));
		deque->index = 0;
	}
	return prb_repr_word(r, deque->block + 8 + deque->index++ * 8, ret);
}

static struct prb_error *open_deque(struct prb_repr *r, uint64_t object, uint64_t words[6],
				    struct deque *ret)
{
	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->var_size + 8, 6, words));
	*ret = (struct deque){.block = words[0], .index = words[2]};
	if (ret->index > r->traits->deque_block)
		return prb_repr_bad(object, "a deque that begins outside of its block");
	return NULL;
}

struct prb_error *prb_repr_deque_each(struct prb_repr *r, uint64_t object,
				      bool (*visit)(void *context, uint64_t item), void *context)
{
	uint64_t words[6], count, item;
	struct deque deque;

	PRB_TRY(prb_repr_size(r, object, &count));
	PRB_TRY(open_deque(r, object, words, &deque));
	for (uint64_t i = 0; i < count; i++) {
		PRB_TRY(prb_repr_walk(r, 1));
		PRB_TRY(next_in_deque(r, &deque, &item));
		if (!visit(context, item))
			break;
	}
	return NULL;
}

struct prb_error *prb_repr_deque_item(struct prb_repr *r, uint64_t object, uint64_t index,
				      uint64_t *ret)
{
	uint64_t words[6];
	struct deque deque;

	PRB_TRY(open_deque(r, object, words, &deque));
	for (uint64_t i = 0; i <= index; i++) {
		PRB_TRY(prb_repr_walk(r, 1));
		PRB_TRY(next_in_deque(r, &deque, ret));
	}
	return NULL;
}

struct prb_error *prb_repr_handle_deque(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t words[6]; /* left block, right block, left index, right index, state, maxlen */
	struct prb_items items = {.r = r};
	struct deque deque;
	uint64_t item;

	PRB_TRY(prb_repr_size(r, object, &items.total));
	PRB_TRY(open_deque(r, object, words, &deque));
	if (!prb_repr_enter(r, object, "[...]"))
		return NULL;
	PRB_TRY(prb_repr_put_kind(r, type, "deque"));
	prb_str_puts(r->out, "([");
	while (prb_items_next(&items)) {
		PRB_TRY(next_in_deque(r, &deque, &item));
		PRB_TRY(prb_repr_object(r, item));
	}
	prb_str_putc(r->out, ']');
	if ((int64_t)words[5] >= 0)
		prb_str_printf(r->out, ", maxlen=%lld", (long long)words[5]);
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_range(struct prb_repr *r, uint64_t object,
					struct prb_type *type __attribute__((unused)))
{
	uint64_t words[3]; /* start, stop, step */
	int64_t step;

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 3, words));
	prb_str_puts(r->out, "range(");
	PRB_TRY(prb_repr_object(r, words[0]));
	prb_str_puts(r->out, ", ");
	PRB_TRY(prb_repr_object(r, words[1]));

	struct prb_error *err = prb_repr_int(r, words[2], &step);

	if (err || step != 1) {
		if (err && !prb_error_catch(&err, PRB_ERROR_BAD_DATA))
			return err;
		prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_object(r, words[2]));
	}
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_slice(struct prb_repr *r, uint64_t object,
					struct prb_type *type __attribute__((unused)))
{
	uint64_t words[3]; /* start, stop, step */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 3, words));
	prb_str_puts(r->out, "slice(");
	for (unsigned i = 0; i < 3; i++) {
		if (i)
			prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_object(r, words[i]));
	}
	prb_str_putc(r->out, ')');
	return NULL;
}
