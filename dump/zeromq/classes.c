/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/zeromq/classes.h"

#include <string.h>

#include "base/checked.h"

enum {
	MOST_CLASSES = 256,
	LARGEST_OBJECT = 1 << 16,
};

static const char NAMESPACE[] = "N3zmq";

void prb_classes_deinit(struct prb_classes *classes)
{
	prb_vec_free(&classes->list);
}

static bool read(struct prb_classes *classes, uint64_t address, void *buffer, size_t length)
{
	struct prb_error *err = prb_mem_peek(classes->mem, address, buffer, length);
	bool ok = !err;

	if (err && err->code == PRB_ERROR_NOMEM)
		classes->failed = true;
	prb_error_destroy(err);
	return ok;
}

/* In front of a vtable: how far the object is, and its type_info, which begins with its own vtable
 * and the name. */
static bool read_class(struct prb_classes *classes, struct prb_class *ret)
{
	struct {
		int64_t to_top;
		uint64_t info;
	} head;
	uint64_t info[2];
	size_t length = sizeof(ret->name) - 1;
	struct prb_error *err;

	if (!read(classes, ret->vtable - sizeof(head), &head, sizeof(head)) || head.to_top > 0 ||
	    head.to_top < -LARGEST_OBJECT || !read(classes, head.info, info, sizeof(info)))
		return false;
	err = prb_mem_read_text(classes->mem, info[1], ret->name, &length);
	if (err && err->code == PRB_ERROR_NOMEM)
		classes->failed = true;
	ret->name[err ? 0 : length] = 0;
	prb_error_destroy(err);
	ret->to_top = head.to_top;
	return !strncmp(ret->name, NAMESPACE, strlen(NAMESPACE));
}

const struct prb_class *prb_class_of_vtable(struct prb_classes *classes, uint64_t vtable)
{
	struct prb_class *class;

	if (!vtable || vtable % sizeof(uint64_t))
		return NULL;
	prb_vec_each (class, &classes->list)
		if (class->vtable == vtable)
			return *class->name ? class : NULL;
	if (classes->list.count >= MOST_CLASSES)
		return NULL;
	class = prb_vec_push(&classes->list);
	if (!class) {
		classes->failed = true;
		return NULL;
	}
	class->vtable = vtable;
	if (!read_class(classes, class))
		*class->name = 0;
	return *class->name ? class : NULL;
}

const struct prb_class *prb_class_of(struct prb_classes *classes, uint64_t part, uint64_t *object)
{
	const struct prb_class *class;
	uint64_t vtable;

	if (!part || part % sizeof(uint64_t) || !read(classes, part, &vtable, sizeof(vtable)))
		return NULL;
	class = prb_class_of_vtable(classes, vtable);
	if (class)
		*object = part + (uint64_t) class->to_top;
	return class;
}
