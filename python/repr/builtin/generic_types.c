/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Types with parameters: list[int], int | None. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

struct prb_error *prb_repr_put_parameter(struct prb_repr *r, uint64_t object)
{
	struct prb_type *type, *self;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	if (prb_type_is(type, "ellipsis")) {
		prb_str_puts(r->out, "...");
		return NULL;
	}
	if (!(type->flags & PRB_PY_TYPE))
		return prb_repr_object(r, object);
	PRB_TRY(prb_repr_type(r, object, &self));
	PRB_TRY(prb_repr_put_module(r, self));
	return prb_repr_put_qualname(r, self);
}

struct prb_error *prb_repr_handle_generic_alias(struct prb_repr *r, uint64_t object,
						struct prb_type *type __attribute__((unused)))
{
	struct prb_items items = {.r = r};
	uint64_t words[2], item; /* origin, arguments */

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	PRB_TRY(prb_repr_tuple(r, words[1], NULL, 0, &items.total));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(prb_repr_put_parameter(r, words[0]));
	prb_str_puts(r->out, items.total ? "[" : "[()");
	while (prb_items_next(&items)) {
		PRB_TRY(prb_repr_word(
			r, words[1] + (uint64_t)r->layout->tuple_items + (items.done - 1) * 8,
			&item));
		PRB_TRY(prb_repr_put_parameter(r, item));
	}
	prb_str_putc(r->out, ']');
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_union(struct prb_repr *r, uint64_t object,
					struct prb_type *type __attribute__((unused)))
{
	enum { MEMBERS_MAX = 64 };
	uint64_t args, members[MEMBERS_MAX], count;
	struct prb_type *member;

	PRB_TRY(prb_repr_member(r, object, 0, &args));
	PRB_TRY(prb_repr_tuple(r, args, members, MEMBERS_MAX, &count));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	for (uint64_t i = 0; i < PRB_MIN(count, (uint64_t)MEMBERS_MAX); i++) {
		if (i)
			prb_str_puts(r->out, " | ");

		struct prb_error *err = prb_repr_type(r, members[i], &member);

		if (!err && prb_type_is(member, "NoneType")) {
			prb_str_puts(r->out, "None");
			continue;
		}
		if (err && !prb_error_catch(&err, PRB_ERROR_BAD_DATA))
			return err;
		PRB_TRY(prb_repr_put_parameter(r, members[i]));
	}
	if (count > MEMBERS_MAX)
		prb_str_printf(r->out, " | …+%llu", (unsigned long long)count - MEMBERS_MAX);
	prb_repr_leave(r);
	return NULL;
}
