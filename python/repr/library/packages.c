/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Objects of packages that are small: rows of SQLAlchemy, images of Pillow, random generators of
 * numpy. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/arrays/pandas.h"
#include "python/repr/core/handlers.h"

static bool is_tuple(const struct prb_type *type)
{
	return prb_type_is(type, "tuple");
}

/* A row is a tuple with names, which a compiled class keeps where it does not say. */
static struct prb_error *put_row(struct prb_repr *r, uint64_t object,
				 struct prb_type *type __attribute__((unused)))
{
	uint64_t data;
	struct prb_error *err = prb_repr_attribute(r, object, "_data", &data);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = prb_repr_find_word(r, object, is_tuple, &data);
	PRB_TRY(err);
	if (!prb_repr_is(r, data, "tuple"))
		return prb_repr_bad(object, "a row without its values");
	return prb_repr_object(r, data);
}

struct prb_error *prb_repr_handle_row(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_row);
}

static struct prb_error *either(struct prb_repr *r, uint64_t object, const char *name,
				const char *before, uint64_t *ret)
{
	struct prb_error *err = prb_repr_instance_get(r, object, name, ret);

	return prb_error_catch(&err, PRB_ERROR_NOT_FOUND)
		       ? prb_repr_instance_get(r, object, before, ret)
		       : err;
}

static struct prb_error *put_image(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t mode, size, sides[2], count;
	int64_t width, height;

	PRB_TRY(either(r, object, "_mode", "mode", &mode));
	PRB_TRY(prb_repr_instance_get(r, object, "_size", &size));
	PRB_TRY(prb_repr_tuple(r, size, sides, 2, &count));
	if (count != 2)
		return prb_repr_bad(object, "an image without a size");
	PRB_TRY(prb_repr_int(r, sides[0], &width));
	PRB_TRY(prb_repr_int(r, sides[1], &height));
	prb_str_putc(r->out, '<');
	PRB_TRY(prb_repr_put_module(r, type));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_puts(r->out, " image mode=");
	PRB_TRY(prb_repr_put_text(r, mode));
	prb_str_printf(r->out, " size=%lldx%lld at 0x%llX>", (long long)width, (long long)height,
		       (unsigned long long)object);
	return NULL;
}

struct prb_error *prb_repr_handle_image(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_image);
}

static bool is_bit_generator(const struct prb_type *type)
{
	static const char prefix[] = "numpy.random._";

	return !strncmp(type->name, prefix, strlen(prefix)) && type->flags & PRB_PY_READY &&
	       !strstr(type->name, "_generator.");
}

/* With the class of what gives it bits. */
static struct prb_error *put_generator(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_type *its;
	uint64_t source;

	PRB_TRY(prb_repr_find_word(r, object, is_bit_generator, &source));
	PRB_TRY(prb_repr_type_of(r, source, &its));
	prb_str_printf(r->out, "%s(%s) at 0x%llX", prb_type_short_name(type),
		       prb_type_short_name(its), (unsigned long long)object);
	return NULL;
}

struct prb_error *prb_repr_handle_random_generator(struct prb_repr *r, uint64_t object,
						   struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_generator);
}
