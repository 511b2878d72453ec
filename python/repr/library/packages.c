/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Objects of packages that are small: rows of SQLAlchemy, random generators of numpy. */
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
static struct prb_error *find_values(struct prb_repr *r, uint64_t object, uint64_t *ret)
{
	struct prb_error *err = prb_repr_attribute(r, object, "_data", ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = prb_repr_find_word(r, object, is_tuple, ret);
	PRB_TRY(err);
	return prb_repr_is(r, *ret, "tuple") ? NULL
					     : prb_repr_bad(object, "a row without its values");
}

static struct prb_error *put_row(struct prb_repr *r, uint64_t object,
				 struct prb_type *type __attribute__((unused)))
{
	uint64_t data;

	PRB_TRY(find_values(r, object, &data));
	return prb_repr_object(r, data);
}

static bool has_names(const struct prb_type *type)
{
	static const char end[] = "ResultMetaData";
	const char *name = prb_type_short_name(type);
	size_t length = strlen(name);

	return length >= strlen(end) && !strcmp(name + length - strlen(end), end);
}

/* The same as a mapping: the names are of the result that the row is of. */
static struct prb_error *put_row_mapping(struct prb_repr *r, uint64_t object,
					 struct prb_type *type __attribute__((unused)))
{
	struct prb_items items = {.r = r};
	uint64_t data, parent, names, at, count;
	struct prb_error *err = prb_repr_attribute(r, object, "_parent", &parent);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		err = prb_repr_find_word(r, object, has_names, &parent);
	PRB_TRY(err);
	PRB_TRY(find_values(r, object, &data));
	PRB_TRY(prb_repr_attribute(r, parent, "_keys", &names));
	PRB_TRY(prb_repr_list(r, names, &at, &count));
	PRB_TRY(prb_repr_size(r, data, &items.total));
	if (count != items.total)
		return prb_repr_bad(object, "a row whose names are not those of its values");
	prb_str_putc(r->out, '{');
	while (prb_items_next(&items)) {
		uint64_t pair[2], offset = (items.done - 1) * sizeof(*pair);

		PRB_TRY(prb_repr_word(r, at + offset, &pair[0]));
		PRB_TRY(prb_repr_word(r, data + (uint64_t)r->layout->tuple_items + offset,
				      &pair[1]));
		PRB_TRY(prb_repr_object(r, pair[0]));
		prb_str_puts(r->out, ": ");
		PRB_TRY(prb_repr_object(r, pair[1]));
	}
	prb_str_putc(r->out, '}');
	return NULL;
}

struct prb_error *prb_repr_handle_row_mapping(struct prb_repr *r, uint64_t object,
					      struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_row_mapping);
}

struct prb_error *prb_repr_handle_row(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_row);
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
