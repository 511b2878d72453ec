/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Tasks and futures of asyncio's own C module: <Task pending name='Task-1' coro=<…>>. The built-in
 * offsets are checked, since this process's module was not read.
 */
#include <string.h>

#include "base/cleanup.h"
#include "python/layout/asyncio_table.h"
#include "python/repr/core/handlers.h"

enum { PENDING, CANCELLED, FINISHED };

static const struct prb_asyncio_layout *table_of(const struct prb_repr *r)
{
	/* The first release of 3.10 had one field less. */
	return strcmp(r->py->version, "3.10.0") != 0 ? prb_asyncio_table_find(r->layout) : NULL;
}

/* 0: NULL there. */
static struct prb_error *read_place(struct prb_repr *r, uint64_t object, int32_t place,
				    uint64_t *ret)
{
	*ret = 0;
	return place < 0 ? NULL : prb_repr_word(r, object + (uint64_t)place, ret);
}

static bool is_task(struct prb_repr *r, const struct prb_type *type)
{
	struct prb_type *base = (struct prb_type *)type;

	for (int i = 0; i < PRB_MRO_MAX; i++) {
		if (prb_type_is(base, "_asyncio.Task"))
			return true;

		struct prb_error *err = base->base ? prb_repr_type(r, base->base, &base) : NULL;

		if (err || !base->base) {
			prb_error_destroy(err);
			return false;
		}
	}
	return false;
}

static struct prb_error *put_name(struct prb_repr *r, uint64_t name)
{
	int64_t number;

	prb_str_puts(r->out, " name=");
	/* A number is the rest of "Task-", until the name is requested. */
	if (!prb_repr_is(r, name, "int"))
		return prb_repr_object(r, name);
	PRB_TRY(prb_repr_int(r, name, &number));
	prb_str_printf(r->out, "'Task-%lld'", (long long)number);
	return NULL;
}

static struct prb_error *put_task(struct prb_repr *r, const struct prb_asyncio_layout *table,
				  uint64_t object)
{
	uint64_t name, coro, waiter;

	PRB_TRY(read_place(r, object, table->name, &name));
	PRB_TRY(read_place(r, object, table->coro, &coro));
	PRB_TRY(read_place(r, object, table->waiter, &waiter));
	if (name)
		PRB_TRY(put_name(r, name));
	if (coro) {
		prb_str_puts(r->out, " coro=");
		PRB_TRY(prb_repr_object(r, coro));
	}
	if (waiter) {
		prb_str_puts(r->out, " wait_for=");
		PRB_TRY(prb_repr_object(r, waiter));
	}
	return NULL;
}

/* Behind the exception, and from 3.10 on its traceback. */
static struct prb_error *put_result(struct prb_repr *r, const struct prb_asyncio_layout *table,
				    uint64_t object)
{
	uint64_t exception, result;

	PRB_TRY(read_place(r, object, table->exception, &exception));
	PRB_TRY(read_place(r, object, table->exception + (table->version < 0x030a ? 8 : 16),
			   &result));
	if (!exception && !result)
		return prb_repr_bad(object, "a future without a result");
	prb_str_puts(r->out, exception ? " exception=" : " result=");
	return prb_repr_object(r, exception ? exception : result);
}

static struct prb_error *put_parts(struct prb_repr *r, const struct prb_asyncio_layout *table,
				   uint64_t object, const struct prb_type *type)
{
	static const char *const states[] = {" pending", " cancelled", " finished"};
	uint32_t state;
	uint64_t loop;
	struct prb_type *of_loop;

	PRB_TRY(prb_mem_read_u32(r->mem, object + (uint64_t)table->state, &state));
	PRB_TRY(read_place(r, object, table->loop, &loop));
	PRB_TRY(prb_repr_type_of(r, loop, &of_loop));
	if (state > FINISHED)
		return prb_repr_bad(object, "a future in no known state");
	prb_str_puts(r->out, states[state]);
	if (is_task(r, type))
		PRB_TRY(put_task(r, table, object));
	return state == FINISHED ? put_result(r, table, object) : NULL;
}

static struct prb_error *put_future(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	const struct prb_asyncio_layout *table = table_of(r);

	if (!table)
		return prb_repr_bad(object, "a future of an unknown layout");
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_name(r, type));
	PRB_TRY(put_parts(r, table, object, type));
	prb_str_putc(r->out, '>');
	return NULL;
}

struct prb_error *prb_repr_handle_future(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_future);
}

int32_t prb_repr_future_field(const struct prb_repr *r, const char *name)
{
	const struct prb_asyncio_layout *table = table_of(r);

	if (!table)
		return -1;
	return !strcmp(name, "_coro")	      ? table->coro
	       : !strcmp(name, "_fut_waiter") ? table->waiter
	       : !strcmp(name, "_loop")	      ? table->loop
	       : !strcmp(name, "_exception")  ? table->exception
					      : -1;
}
