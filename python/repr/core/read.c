/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bounded reading of the plain data that objects are made of. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr_private.h"
#include "target/mem/view.h"

/* No object has more items than the address space has room for. */
static const uint64_t size_max = UINT64_C(1) << 48;

struct prb_error *prb_repr_word(struct prb_repr *r, uint64_t address, uint64_t *ret)
{
	return prb_mem_read_u64(r->mem, address, ret);
}

struct prb_error *prb_repr_words(struct prb_repr *r, uint64_t address, size_t count, uint64_t *ret)
{
	return count ? prb_mem_read(r->mem, address, ret, count * sizeof(*ret)) : NULL;
}

struct prb_error *prb_repr_member(struct prb_repr *r, uint64_t object, unsigned index,
				  uint64_t *ret)
{
	return prb_repr_word(r, object + (uint64_t)r->layout->object_size + index * 8, ret);
}

struct prb_error *prb_repr_size(struct prb_repr *r, uint64_t object, uint64_t *ret)
{
	PRB_TRY(prb_repr_word(r, object + (uint64_t)r->layout->var_size, ret));
	if (*ret > size_max)
		return prb_repr_bad(object, "impossible size");
	return NULL;
}

struct prb_error *prb_repr_walk(struct prb_repr *r, uint64_t entries)
{
	/* Garbage can claim tables as large as memory; a walk through one must end. */
	enum { WALK_MAX = 1 << 24 };

	r->walked += entries;
	if (r->walked > WALK_MAX)
		return prb_error_create(PRB_ERROR_BAD_DATA, "tables too large to walk");
	return NULL;
}

struct prb_error *prb_repr_cstr(struct prb_repr *r, uint64_t address, char *ret, size_t size)
{
	for (size_t done = 0; done < size - 1;) {
		size_t length = size - 1 - done;

		PRB_TRY(prb_mem_read_text(r->mem, address + done, ret + done, &length));
		if (!ret[done + length - 1])
			return NULL;
		done += length;
	}
	ret[size - 1] = '\0';
	return NULL;
}

struct prb_error *prb_repr_tuple(struct prb_repr *r, uint64_t object, uint64_t *ret, size_t max,
				 uint64_t *count)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_nameless_type_of(r, object, &type));
	if (!(type->flags & PRB_PY_TUPLE))
		return prb_repr_bad(object, "not a tuple");
	PRB_TRY(prb_repr_size(r, object, count));
	return prb_repr_words(r, object + (uint64_t)r->layout->tuple_items, PRB_MIN(*count, max),
			      ret);
}
