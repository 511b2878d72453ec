/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors, their gradients, and whose the storages are that they share. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "python/repr/arrays/tensor.h"
#include "values/census/private.h"

static void note(struct prb_census *c, uint32_t index, const struct prb_tensor *tensor,
		 bool gradient)
{
	struct prb_census_tensor *t = prb_vec_push(&c->tensors);

	if (!t) {
		prb_census_try(c, prb_error_nomem());
		return;
	}
	*t = (struct prb_census_tensor){
		.object = index,
		.gradient = gradient,
		.dtype = tensor->dtype,
		.device = tensor->device,
		.device_index = tensor->device_index,
		.requires_grad = gradient ? 0 : tensor->requires_grad,
		.dimensions = tensor->dimensions,
		.bytes = tensor->bytes,
		.storage = tensor->storage,
		.storage_bytes = tensor->storage_bytes,
	};
	memcpy(t->shape, tensor->shape,
	       PRB_MIN(tensor->dimensions, PRB_ARRAY_SIZE(t->shape)) * sizeof(*t->shape));
}

void prb_census_note_tensor(struct prb_census *c, uint32_t index)
{
	struct prb_tensor tensor, gradient;
	bool cpu;

	if (!prb_census_try(c,
			    prb_tensor_read(c->py, c->mem, c->nodes.items[index].address, &tensor)))
		return;
	cpu = tensor.device && strcmp(tensor.device, "cpu") == 0;
	/* While it is made or freed, it is something else. */
	if (cpu && !prb_census_is_backed(c, tensor.data, tensor.storage_bytes))
		return;
	note(c, index, &tensor, false);
	/* A gradient has the shape of its tensor; what else is there is something else. */
	if (!c->alone && tensor.grad &&
	    prb_census_try(c, prb_tensor_grad(c->mem, &tensor, &gradient)) && gradient.storage &&
	    gradient.dimensions == tensor.dimensions &&
	    !memcmp(gradient.shape, tensor.shape, tensor.dimensions * sizeof(*tensor.shape)))
		note(c, index, &gradient, true);
}

/* By storage; within one storage in the order in which they were found, gradients first. */
static int compare(const void *a, const void *b)
{
	const struct prb_census_tensor *one = a, *other = b;

	if (one->storage != other->storage)
		return one->storage < other->storage ? -1 : 1;
	if (one->gradient != other->gradient)
		return one->gradient ? -1 : 1;
	return one->object < other->object ? -1 : one->object > other->object;
}

static bool same_shape(const struct prb_census_tensor *one, const struct prb_census_tensor *other)
{
	size_t dimensions = PRB_MIN(one->dimensions, PRB_ARRAY_SIZE(one->shape));

	return one->dimensions == other->dimensions &&
	       !memcmp(one->shape, other->shape, dimensions * sizeof(*one->shape));
}

void prb_census_share_storages(struct prb_census *c)
{
	struct prb_census_tensor *t = c->tensors.items;
	size_t kept = 0, first = 0;

	if (c->tensors.count)
		qsort(t, c->tensors.count, sizeof(*t), compare);
	for (size_t i = 0; i < c->tensors.count; i++) {
		bool again = kept && t[i].storage && t[i].storage == t[kept - 1].storage;

		if (!again)
			first = kept;
		/* The object that a gradient may have is that gradient: newer torch keeps it. */
		if (again && (t[i].gradient || (t[first].gradient && same_shape(&t[first], &t[i]))))
			continue;
		t[kept] = t[i];
		t[kept].first = !again;
		if (!again && t[i].device && strcmp(t[i].device, "cpu") == 0)
			prb_census_own(c, t[i].object, t[i].storage_bytes);
		kept++;
	}
	c->tensors.count = kept;
}

const struct prb_census_tensor *prb_census_tensors(const struct prb_census *c, size_t *count)
{
	*count = c->tensors.count;
	return c->tensors.items;
}
