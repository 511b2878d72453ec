/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * torch tensors: tensor([0.5, 1.0], shape=(2,), dtype=float32, device='cpu'). Values in the memory
 * of another device are not shown, and the text says so. An unreadable tensor is shown as an
 * ordinary object.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "python/repr/core/handlers.h"
#include "python/repr/arrays/elements.h"
#include "python/repr/arrays/tensor.h"
#include "python/repr/arrays/tensor_values.h"

static struct prb_error *read_tensor(struct prb_repr *r, uint64_t object, struct prb_tensor *ret)
{
	return prb_tensor_read(r->py, r->mem, object, ret);
}

struct prb_error *prb_repr_handle_torch_size(struct prb_repr *r, uint64_t object,
					     struct prb_type *type __attribute__((unused)))
{
	uint64_t count;

	PRB_TRY(prb_repr_size(r, object, &count));
	if (!prb_repr_enter(r, object, "(...)"))
		return NULL;
	prb_str_puts(r->out, "torch.Size([");
	PRB_TRY(prb_repr_array(r, object + (uint64_t)r->layout->tuple_items, count));
	prb_str_puts(r->out, "])");
	prb_repr_leave(r);
	return NULL;
}

static void put_shape(struct prb_repr *r, const struct prb_tensor *tensor)
{
	for (uint64_t i = 0; i < tensor->dimensions; i++)
		prb_str_printf(r->out, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
}

static struct prb_error *put_device(struct prb_repr *r, const char *device, int8_t index)
{
	if (!device)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it has no device");
	prb_str_printf(r->out, "device(type='%s'", device);
	if (index >= 0)
		prb_str_printf(r->out, ", index=%d", index);
	prb_str_putc(r->out, ')');
	return NULL;
}

/* One byte, of a dtype the number and of a device the kind, and for a device one more, its index.
 */
static struct prb_error *read_bytes(struct prb_repr *r, uint64_t object, uint64_t *ret)
{
	return prb_repr_word(r, object + (uint64_t)r->layout->object_size, ret);
}

struct prb_error *prb_repr_handle_torch_dtype(struct prb_repr *r, uint64_t object,
					      struct prb_type *type)
{
	uint64_t bytes;

	PRB_TRY(read_bytes(r, object, &bytes));
	if (!prb_tensor_dtype_name(bytes & 0xff))
		return prb_repr_handle_default(r, object, type);
	prb_str_printf(r->out, "torch.%s", prb_tensor_dtype_name(bytes & 0xff));
	return NULL;
}

struct prb_error *prb_repr_handle_torch_device(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	uint64_t bytes;

	PRB_TRY(read_bytes(r, object, &bytes));
	if (!prb_tensor_device_name(bytes & 0xff))
		return prb_repr_handle_default(r, object, type);
	return put_device(r, prb_tensor_device_name(bytes & 0xff), (int8_t)(bytes >> 8));
}

struct prb_error *prb_repr_tensor_part(struct prb_repr *r, uint64_t object, const char *name,
				       const char **type)
{
	struct prb_tensor tensor = {};

	PRB_TRY(read_tensor(r, object, &tensor));
	if (!strcmp(name, "shape")) {
		*type = "Size";
		prb_str_puts(r->out, "torch.Size([");
		put_shape(r, &tensor);
		prb_str_puts(r->out, "])");
		return NULL;
	}
	if (!strcmp(name, "dtype")) {
		*type = "dtype";
		prb_str_printf(r->out, "torch.%s", tensor.dtype);
		return NULL;
	}
	if (!strcmp(name, "ndim")) {
		*type = "int";
		prb_str_printf(r->out, "%llu", (unsigned long long)tensor.dimensions);
		return NULL;
	}
	*type = "device";
	return !strcmp(name, "device") ? put_device(r, tensor.device, tensor.device_index)
				       : prb_error_create(PRB_ERROR_NOT_FOUND, "not known");
}

/* The last part of a C++ class's name as compilers write it: N5torch8autograd3FooE has "Foo". */
static bool last_name(const char *text, char *ret, size_t size)
{
	static const char begin[] = "N5torch8autograd";
	const char *at = text + 1;

	if (strncmp(text, begin, strlen(begin)) != 0)
		return false;
	while (*at >= '1' && *at <= '9') {
		char *name;
		unsigned long length = strtoul(at, &name, 10);

		if (length >= size || strnlen(name, length) < length)
			return false;
		memcpy(ret, name, length);
		ret[length] = '\0';
		at = name + length;
	}
	for (const char *c = ret; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return false;
	return *at == 'E' || *at == 'I';
}

/* What computes a tensor's gradient, by the type information that its table of functions has. */
static bool find_function(struct prb_repr *r, uint64_t node, char *ret, size_t size)
{
	char name[256];
	uint64_t table, information, text;
	struct prb_error *err = prb_repr_word(r, node, &table);

	if (!err)
		err = prb_repr_word(r, table - 8, &information);
	if (!err)
		err = prb_repr_word(r, information + 8, &text);
	if (!err)
		err = prb_repr_cstr(r, text, name, sizeof(name));

	bool known = !err && last_name(name, ret, size);

	prb_error_destroy(err);
	return known;
}

static void put_gradient(struct prb_repr *r, const struct prb_tensor *tensor)
{
	char name[128] = "";

	if (tensor->function && find_function(r, tensor->function, name, sizeof(name)))
		prb_str_printf(r->out, ", grad_fn=<%s>", name);
	else if (tensor->requires_grad == 1)
		prb_str_puts(r->out, ", requires_grad=True");
}

static void put_place(struct prb_repr *r, const struct prb_tensor *tensor)
{
	prb_str_puts(r->out, tensor->device);
	if (tensor->device_index >= 0)
		prb_str_printf(r->out, ":%d", tensor->device_index);
}

static struct prb_error *put_values(struct prb_repr *r, const struct prb_tensor *tensor)
{
	bool shown;

	PRB_TRY(prb_tensor_put_values(r, tensor, &shown));
	if (!shown && tensor->device && strcmp(tensor->device, "cpu") != 0 &&
	    strcmp(tensor->device, "meta") != 0) {
		prb_str_puts(r->out, "<on ");
		put_place(r, tensor);
		prb_str_puts(r->out, ": only eval reads it>");
		shown = true;
	}
	if (shown)
		prb_str_puts(r->out, ", ");
	return NULL;
}

struct prb_error *prb_repr_handle_tensor(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_tensor tensor = {};
	struct prb_error *err = read_tensor(r, object, &tensor);

	if (prb_error_catch(&err, PRB_ERROR_BAD_DATA) || prb_error_catch(&err, PRB_ERROR_FAULT))
		return prb_repr_handle_default(r, object, type);
	PRB_TRY(err);
	if (strcmp(type->name, "Tensor") == 0)
		prb_str_puts(r->out, "tensor");
	else
		PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(put_values(r, &tensor));
	prb_str_puts(r->out, "shape=(");
	put_shape(r, &tensor);
	prb_str_printf(r->out, "%s), dtype=%s", tensor.dimensions == 1 ? "," : "", tensor.dtype);
	if (tensor.device) {
		prb_str_puts(r->out, ", device='");
		put_place(r, &tensor);
		prb_str_putc(r->out, '\'');
	}
	PRB_TRY(prb_tensor_put_counts(r, &tensor));
	put_gradient(r, &tensor);
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_open_tensor(struct prb_repr *r, uint64_t object,
				       struct prb_elements *ret)
{
	struct prb_tensor tensor = {};

	PRB_TRY(read_tensor(r, object, &tensor));
	return prb_repr_tensor_elements(&tensor, ret);
}

struct prb_error *prb_repr_tensor_number(struct prb_repr *r, uint64_t object,
					 struct prb_object_number *ret)
{
	struct prb_tensor tensor = {};
	struct prb_error *err = read_tensor(r, object, &tensor);

	if (!err)
		err = prb_tensor_number(r, &tensor, ret);
	/* Its text says what cannot be read. */
	if (prb_error_catch(&err, PRB_ERROR_BAD_DATA) || prb_error_catch(&err, PRB_ERROR_FAULT))
		return NULL;
	return err;
}
