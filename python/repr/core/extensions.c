/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Objects of classes for which an extension of the user has a text (target/custom.h). */
#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"
#include "target/custom.h"

/* "module.Class", as the program calls it. */
static struct prb_error *put_class(struct prb_repr *r, const struct prb_type *type,
				   struct prb_str *ret)
{
	struct prb_str *out = r->out;
	size_t start = r->start;
	struct prb_error *err;

	r->out = ret;
	r->start = 0;
	err = prb_repr_put_module(r, type);
	if (!err && !ret->length)
		prb_str_puts(ret, "builtins.");
	if (!err)
		err = prb_repr_put_qualname(r, type);
	r->out = out;
	r->start = start;
	return err;
}

static bool has_class(struct prb_repr *r, const struct prb_type *type)
{
	const struct prb_custom *custom = r->py->target->custom;
	prb_auto_str struct prb_str name = {};
	prb_auto_error struct prb_error *err = put_class(r, type, &name);

	return !err && !name.failed && custom->has_class(custom->context, prb_str_text(&name));
}

bool prb_repr_is_custom(struct prb_repr *r, struct prb_type *type)
{
	if (!r->py->target->custom)
		return false;
	if (!type->custom)
		type->custom = has_class(r, type) ? PRB_CUSTOM_YES : PRB_CUSTOM_NO;
	return type->custom == PRB_CUSTOM_YES;
}
