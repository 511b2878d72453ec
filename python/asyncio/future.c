/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Futures and tasks: members by offset in _asyncio's, by name in ones written in Python. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/asyncio/private.h"

enum { BASES_MAX = 64, NAME_CHARACTERS = 1000 };

static struct prb_error *member(struct prb_asyncio_reader *t, const struct prb_future *future,
				int32_t offset, const char *name, uint64_t *ret)
{
	struct prb_error *err;

	*ret = 0;
	if (future->kind == PRB_FUTURE_PYTHON) {
		err = prb_repr_attribute(&t->r, future->address, name, ret);
		if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			return NULL;
	} else {
		if (offset == PRB_ABSENT)
			return NULL;
		err = prb_repr_word(&t->r, future->address + (uint64_t)offset, ret);
	}
	if (!err && *ret && prb_repr_is_none(&t->r, *ret))
		*ret = 0;
	return err;
}

/* The twins in Python have these among their own attributes; what is not set yet, only their class
 * has. */
static struct prb_error *look_like_python(struct prb_asyncio_reader *t, struct prb_future *ret)
{
	uint64_t value;
	struct prb_error *err = prb_repr_attribute(&t->r, ret->address, "_callbacks", &value);

	if (!err)
		err = prb_repr_attribute(&t->r, ret->address, "_loop", &value);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	ret->kind = PRB_FUTURE_PYTHON;
	err = prb_repr_attribute(&t->r, ret->address, "_coro", &value);
	ret->is_task = !err;
	prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
	return err;
}

static struct prb_error *open_future(struct prb_asyncio_reader *t, struct prb_future *ret)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(&t->r, ret->address, &type));
	if (!(type->flags & PRB_PY_HEAP_TYPE) && !strchr(type->name, '.'))
		return NULL; /* a builtin type: spares most objects the search */
	for (unsigned i = 0; i < BASES_MAX; i++) {
		if (prb_type_is(type, "_asyncio.Task"))
			ret->is_task = true;
		if (ret->is_task || prb_type_is(type, "_asyncio.Future")) {
			ret->kind = PRB_FUTURE_C;
			return NULL;
		}
		if (!type->base)
			return look_like_python(t, ret);
		PRB_TRY(prb_repr_type(&t->r, type->base, &type));
	}
	return prb_repr_bad(ret->address, "too many base classes");
}

struct prb_error *prb_future_open(struct prb_asyncio_reader *t, uint64_t object,
				  struct prb_future *ret)
{
	*ret = (struct prb_future){.address = object};

	struct prb_error *err = open_future(t, ret);

	if (prb_error_catch(&err, PRB_ERROR_FAULT) || prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		ret->kind = PRB_FUTURE_NONE;
	return err;
}

struct prb_error *prb_future_state(struct prb_asyncio_reader *t, const struct prb_future *future,
				   enum prb_future_state *ret)
{
	static const char *const names[] = {"PENDING", "CANCELLED", "FINISHED"};
	uint64_t value;
	uint32_t number;
	bool same;

	if (future->kind == PRB_FUTURE_C) {
		PRB_TRY(prb_mem_read_u32(t->r.mem, future->address + (uint64_t)t->layout.state,
					 &number));
		if (number > PRB_FUTURE_FINISHED)
			return prb_repr_bad(future->address, "a future in no known state");
		*ret = (enum prb_future_state)number;
		return NULL;
	}
	PRB_TRY(member(t, future, PRB_ABSENT, "_state", &value));
	*ret = PRB_FUTURE_PENDING;
	if (!value)
		return NULL;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		PRB_TRY(prb_repr_text_is(&t->r, value, names[i], &same));
		*ret = (enum prb_future_state)i;
		if (same)
			return NULL;
	}
	return prb_repr_bad(future->address, "a future in no known state");
}

struct prb_error *prb_future_loop(struct prb_asyncio_reader *t, const struct prb_future *future,
				  uint64_t *ret)
{
	return member(t, future, t->layout.loop, "_loop", ret);
}

struct prb_error *prb_future_exception(struct prb_asyncio_reader *t,
				       const struct prb_future *future, uint64_t *ret)
{
	return member(t, future, t->layout.exception, "_exception", ret);
}

struct prb_error *prb_asyncio_waiter(struct prb_asyncio_reader *t, const struct prb_future *task,
				     uint64_t *ret)
{
	return member(t, task, t->layout.waiter, "_fut_waiter", ret);
}

struct prb_error *prb_asyncio_task_coro(struct prb_asyncio_reader *t, const struct prb_future *task,
					uint64_t *ret)
{
	return member(t, task, t->layout.coro, "_coro", ret);
}

/* A number is the rest of "Task-", which is only put together when the name is requested. */
struct prb_error *prb_asyncio_task_name(struct prb_asyncio_reader *t, const struct prb_future *task,
					char **ret)
{
	prb_auto_str struct prb_str text = {};
	uint64_t value;
	int64_t number;

	*ret = NULL;
	PRB_TRY(member(t, task, t->layout.name, "_name", &value));
	if (!value)
		return NULL;
	if (prb_repr_is(&t->r, value, "int")) {
		PRB_TRY(prb_repr_int(&t->r, value, &number));
		prb_str_printf(&text, "Task-%lld", (long long)number);
	} else {
		PRB_TRY(prb_object_str(t->r.py, t->r.mem, value, NAME_CHARACTERS, &text));
	}
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

struct prb_error *prb_sequence_each(struct prb_asyncio_reader *t, uint64_t object,
				    prb_object_visit *visit, void *context)
{
	struct prb_type *type;
	uint64_t count, items, item;

	PRB_TRY(prb_repr_type_of(&t->r, object, &type));
	if (prb_type_is(type, "list"))
		PRB_TRY(prb_repr_word(&t->r, object + (uint64_t)t->r.layout->list_items, &items));
	else if (type->flags & PRB_PY_TUPLE)
		items = object + (uint64_t)t->r.layout->tuple_items;
	else
		return prb_repr_bad(object, "neither a list nor a tuple");
	PRB_TRY(prb_repr_size(&t->r, object, &count));
	if (count > PRB_TASK_ITEMS_MAX)
		return prb_repr_bad(object, "a list of impossible size");
	for (uint64_t i = 0; i < count; i++) {
		PRB_TRY(prb_repr_word(&t->r, items + i * 8, &item));
		PRB_TRY(visit(context, item));
	}
	return NULL;
}

struct pairs {
	struct prb_asyncio_reader *t;
	prb_object_visit *visit;
	void *context;
};

/* A callback and the context it runs in. */
static struct prb_error *visit_pair(void *context, uint64_t pair)
{
	const struct pairs *pairs = context;
	uint64_t items[2], count;

	PRB_TRY(prb_repr_tuple(&pairs->t->r, pair, items, PRB_ARRAY_SIZE(items), &count));
	return count ? pairs->visit(pairs->context, items[0]) : NULL;
}

struct prb_error *prb_future_callbacks(struct prb_asyncio_reader *t,
				       const struct prb_future *future, prb_object_visit *visit,
				       void *context)
{
	struct pairs pairs = {t, visit, context};
	uint64_t first = 0, list;

	if (future->kind == PRB_FUTURE_C)
		PRB_TRY(member(t, future, t->layout.callback, NULL, &first));
	if (first)
		PRB_TRY(visit(context, first));
	PRB_TRY(member(t, future, t->layout.callbacks, "_callbacks", &list));
	return list ? prb_sequence_each(t, list, visit_pair, &pairs) : NULL;
}

struct keys {
	prb_object_visit *visit;
	void *context;
	struct prb_error *err;
};

static bool visit_key(void *context, uint64_t key)
{
	struct keys *keys = context;

	keys->err = keys->visit(keys->context, key);
	return !keys->err;
}

struct prb_error *prb_future_awaited_by(struct prb_asyncio_reader *t,
					const struct prb_future *future, prb_object_visit *visit,
					void *context)
{
	struct keys keys = {visit, context, NULL};
	uint64_t object;
	uint8_t is_set;

	if (future->kind == PRB_FUTURE_C && t->layout.awaited_by_is_set == PRB_ABSENT)
		return NULL;
	PRB_TRY(member(t, future, t->layout.awaited_by, "_Future__asyncio_awaited_by", &object));
	if (!object)
		return NULL;
	if (future->kind == PRB_FUTURE_C)
		PRB_TRY(prb_mem_read_u8(t->r.mem,
					future->address + (uint64_t)t->layout.awaited_by_is_set,
					&is_set));
	else
		is_set = prb_repr_is(&t->r, object, "set");
	if (!is_set)
		return visit(context, object);
	PRB_TRY(prb_repr_set_each(&t->r, object, visit_key, &keys));
	return keys.err;
}
