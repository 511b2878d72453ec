/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "inference/classes.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/str.h"
#include "python/repr/core/repr_private.h"

enum { TYPES_MAX = 1 << 16, NAME_MAX_LENGTH = 200 };

struct prb_classes {
	struct prb_repr repr;
	struct prb_str name; /* what repr writes to */
	const char *const *names;
	size_t count;
	struct prb_number_map known; /* masks, by the address of the type */
	size_t known_count;
};

struct prb_error *prb_classes_create(struct prb_python *py, struct prb_mem *mem,
				     const char *const *names, size_t count,
				     struct prb_classes **ret)
{
	struct prb_classes *classes = calloc(1, sizeof(*classes));

	if (!classes)
		return prb_error_nomem();
	prb_repr_init(&classes->repr, py, mem, NULL, &classes->name);
	classes->names = names;
	classes->count = count < PRB_CLASSES_MAX ? count : PRB_CLASSES_MAX;
	*ret = classes;
	return NULL;
}

void prb_classes_destroy(struct prb_classes *classes)
{
	if (!classes)
		return;
	prb_repr_deinit(&classes->repr);
	prb_str_deinit(&classes->name);
	prb_number_map_deinit(&classes->known);
	free(classes);
}

/** What cannot be read has no class. */
static struct prb_error *tolerate(struct prb_error *err)
{
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *put_name(struct prb_classes *c, const struct prb_type *type)
{
	prb_str_truncate(&c->name, 0);
	prb_repr_again(&c->repr, NULL, &c->name);
	PRB_TRY(prb_repr_put_module(&c->repr, type));
	return prb_repr_put_qualname(&c->repr, type);
}

static struct prb_error *add_class(struct prb_classes *c, uint64_t address, uint32_t *mask)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type(&c->repr, address, &type));
	PRB_TRY(put_name(c, type));
	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(prb_str_text(&c->name), c->names[i]))
			*mask |= UINT32_C(1) << i;
	return NULL;
}

static struct prb_error *find_mask(struct prb_classes *c, uint64_t address, uint32_t *mask)
{
	uint64_t mro[PRB_MRO_MAX];
	struct prb_type *type;
	size_t count;

	PRB_TRY(prb_repr_type(&c->repr, address, &type));
	if (!(type->flags & PRB_PY_HEAP_TYPE))
		return NULL; /* a class in Python is one */
	PRB_TRY(prb_repr_mro(&c->repr, type, mro, &count));
	for (size_t i = 0; i < count; i++)
		PRB_TRY(tolerate(add_class(c, mro[i], mask)));
	return NULL;
}

struct prb_error *prb_classes_of_type(struct prb_classes *classes, uint64_t type, uint32_t *ret)
{
	size_t known;
	uint32_t mask = 0;

	*ret = 0;
	if (prb_number_map_get(&classes->known, type, &known)) {
		*ret = (uint32_t)known;
		return NULL;
	}
	PRB_TRY(tolerate(find_mask(classes, type, &mask)));
	*ret = mask;
	if (classes->known_count++ >= TYPES_MAX)
		return NULL;
	return prb_number_map_put(&classes->known, type, mask) ? NULL : prb_error_nomem();
}

struct prb_error *prb_classes_of(struct prb_classes *classes, uint64_t object, uint32_t *ret)
{
	const struct prb_layout *l = classes->repr.layout;
	uint64_t type;
	bool failed = false;

	*ret = 0;
	if (!object || object % sizeof(void *))
		return NULL;
	PRB_TRY(prb_error_tolerate(
		prb_repr_word(&classes->repr, object + (uint64_t)l->object_type, &type), &failed));
	return failed ? NULL : prb_classes_of_type(classes, type, ret);
}

struct prb_error *prb_classes_put_name(struct prb_classes *classes, uint64_t object,
				       struct prb_str *out)
{
	struct prb_type *type;
	bool failed = false;

	PRB_TRY(prb_error_tolerate(prb_repr_type_of(&classes->repr, object, &type), &failed));
	if (!failed)
		PRB_TRY(prb_error_tolerate(put_name(classes, type), &failed));
	if (!failed && classes->name.length <= NAME_MAX_LENGTH)
		prb_str_puts(out, prb_str_text(&classes->name));
	return NULL;
}
