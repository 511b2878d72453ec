/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Types with parameters as the module typing has them: typing.List[int]. */
#include <string.h>

#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

/* Its own name, or that of what it was made from. */
static struct prb_error *put_origin(struct prb_repr *r, uint64_t object)
{
	uint64_t name, origin;
	struct prb_error *err = prb_repr_attribute(r, object, "_name", &name);

	if (err && !prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err;
	if (!err && !prb_repr_is_none(r, name)) {
		prb_str_puts(r->out, "typing.");
		return prb_repr_put_text(r, name);
	}
	PRB_TRY(prb_repr_attribute(r, object, "__origin__", &origin));
	return prb_repr_put_parameter(r, origin);
}

struct prb_error *prb_repr_handle_typing_alias(struct prb_repr *r, uint64_t object,
					       struct prb_type *type __attribute__((unused)))
{
	struct prb_items items = {.r = r};
	uint64_t arguments, item;
	struct prb_error *err = prb_repr_attribute(r, object, "__args__", &arguments);
	bool bare = prb_error_catch(&err, PRB_ERROR_NOT_FOUND);

	PRB_TRY(err);
	if (!bare && !prb_repr_is(r, arguments, "tuple"))
		return prb_repr_bad(object, "its arguments are no tuple");
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(put_origin(r, object));
	if (!bare) {
		PRB_TRY(prb_repr_tuple(r, arguments, NULL, 0, &items.total));
		prb_str_puts(r->out, items.total ? "[" : "[()");
		while (prb_items_next(&items)) {
			PRB_TRY(prb_repr_word(r,
					      arguments + (uint64_t)r->layout->tuple_items +
						      (items.done - 1) * 8,
					      &item));
			PRB_TRY(prb_repr_put_parameter(r, item));
		}
		prb_str_putc(r->out, ']');
	}
	prb_repr_leave(r);
	return NULL;
}
