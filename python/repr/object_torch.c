/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * torch tensors: tensor(shape=(2, 3), dtype=float32, device='cuda:0'). Their values may lie in the
 * memory of a device, so none are shown.
 *
 * A tensor object leads to a TensorImpl, which points back at it. The sizes follow that pointer in
 * all versions, and the count of elements, which must fit them, the type and the device follow the
 * sizes. What does not hold together so is shown as an ordinary object.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/object_handlers.h"

enum {
	HEAD_WORDS = 16,  /* of a TensorImpl, among which is the pointer back */
	INLINE_SIZES = 5, /* that lie in the TensorImpl itself, followed by as many strides */
	DIMENSIONS_MAX = 64,
};

static const char *const dtypes[] = {
	"uint8",	   "int8",
	"int16",	   "int32",
	"int64",	   "float16",
	"float32",	   "float64",
	"complex32",	   "complex64",
	"complex128",	   "bool",
	"qint8",	   "quint8",
	"qint32",	   "bfloat16",
	"quint4x2",	   "quint2x4",
	"bits1x8",	   "bits2x4",
	"bits4x2",	   "bits8",
	"bits16",	   "float8_e5m2",
	"float8_e4m3fn",   "float8_e5m2fnuz",
	"float8_e4m3fnuz", "uint16",
	"uint32",	   "uint64",
};

static const char *const devices[] = {
	"cpu",	  "cuda",  "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla",
	"vulkan", "metal", "xpu",    "mps",    "meta",	 "hpu",	  "ve",	 "lazy", "ipu",	 "mtia",
};

struct tensor {
	uint64_t dimensions, shape[DIMENSIONS_MAX];
	unsigned dtype;
	uint8_t device, device_set;
	int8_t device_index;
};

/* Where the sizes begin: right after the word that points back at the object. */
static struct prb_error *find_sizes(struct prb_repr *r, uint64_t impl, uint64_t object,
				    uint64_t *ret)
{
	uint64_t words[HEAD_WORDS];

	PRB_TRY(prb_repr_words(r, impl, HEAD_WORDS, words));
	for (unsigned i = 0; i < HEAD_WORDS; i++)
		if (words[i] == object) {
			*ret = impl + (i + 1) * 8;
			return NULL;
		}
	return prb_repr_bad(object, "a tensor without a pointer back");
}

/*
 * An optional device is kind, index and a flag of 1, or in old versions the flag first. An index
 * of 1 makes both the same; an old one of that kind and another index has no 1 in the third place.
 */
static void read_device(uint64_t bytes, struct tensor *ret)
{
	bool flag_first = (bytes >> 16 & 0xff) != 1;

	ret->device_set = (flag_first ? bytes : bytes >> 16) & 0xff;
	ret->device = (uint8_t)(flag_first ? bytes >> 8 : bytes);
	ret->device_index = (int8_t)(flag_first ? bytes >> 16 : bytes >> 8);
}

static struct prb_error *read_impl(struct prb_repr *r, uint64_t object, uint64_t impl,
				   struct tensor *ret)
{
	uint64_t at, place, rest[3], count = 1; /* storage offset, elements, type and device */

	PRB_TRY(find_sizes(r, impl, object, &at));
	PRB_TRY(prb_repr_word(r, at, &ret->dimensions));
	if (ret->dimensions > DIMENSIONS_MAX)
		return prb_repr_bad(object, "a tensor of too many dimensions");
	place = at + 8;
	if (ret->dimensions > INLINE_SIZES)
		PRB_TRY(prb_repr_word(r, place, &place));
	PRB_TRY(prb_repr_words(r, place, ret->dimensions, ret->shape));
	PRB_TRY(prb_repr_words(r, at + (1 + 2 * INLINE_SIZES) * 8, PRB_ARRAY_SIZE(rest), rest));
	for (uint64_t i = 0; i < ret->dimensions; i++)
		if (!prb_mul(count, ret->shape[i], &count))
			return prb_repr_bad(object, "a tensor of impossible size");
	if (count != rest[1])
		return prb_repr_bad(object, "a tensor whose sizes do not fit its elements");
	ret->dtype = rest[2] & 0xffff;
	read_device(rest[2] >> 16, ret);
	if (ret->dtype >= PRB_ARRAY_SIZE(dtypes) || ret->device >= PRB_ARRAY_SIZE(devices))
		return prb_repr_bad(object, "a tensor of unknown type");
	return NULL;
}

/* The object has a flag for borrowed tensors and the pointer, or the pointer alone. */
static struct prb_error *read_tensor(struct prb_repr *r, uint64_t object, struct tensor *ret)
{
	struct prb_error *err = NULL;
	uint64_t words[2];

	PRB_TRY(prb_repr_words(r, object + (uint64_t)r->layout->object_size, 2, words));
	for (unsigned i = 2; i-- > 0;) {
		err = read_impl(r, object, words[i], ret);
		if (!prb_error_catch(&err, PRB_ERROR_BAD_DATA) &&
		    !prb_error_catch(&err, PRB_ERROR_FAULT))
			return err;
	}
	return prb_repr_bad(object, "not a tensor that we can read");
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

static void put_shape(struct prb_repr *r, const struct tensor *tensor)
{
	for (uint64_t i = 0; i < tensor->dimensions; i++)
		prb_str_printf(r->out, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
}

static struct prb_error *put_device(struct prb_repr *r, const struct tensor *tensor)
{
	if (tensor->device_set != 1)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it has no device");
	prb_str_printf(r->out, "device(type='%s'", devices[tensor->device]);
	if (tensor->device_index >= 0)
		prb_str_printf(r->out, ", index=%d", tensor->device_index);
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
	if ((bytes & 0xff) >= PRB_ARRAY_SIZE(dtypes))
		return prb_repr_handle_default(r, object, type);
	prb_str_printf(r->out, "torch.%s", dtypes[bytes & 0xff]);
	return NULL;
}

struct prb_error *prb_repr_handle_torch_device(struct prb_repr *r, uint64_t object,
					       struct prb_type *type)
{
	uint64_t bytes;

	PRB_TRY(read_bytes(r, object, &bytes));
	if ((bytes & 0xff) >= PRB_ARRAY_SIZE(devices))
		return prb_repr_handle_default(r, object, type);
	return put_device(r, &(struct tensor){.device_set = 1,
					      .device = (uint8_t)bytes,
					      .device_index = (int8_t)(bytes >> 8)});
}

struct prb_error *prb_repr_tensor_part(struct prb_repr *r, uint64_t object, const char *name,
				       const char **type)
{
	struct tensor tensor = {};

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
		prb_str_printf(r->out, "torch.%s", dtypes[tensor.dtype]);
		return NULL;
	}
	if (!strcmp(name, "ndim")) {
		*type = "int";
		prb_str_printf(r->out, "%llu", (unsigned long long)tensor.dimensions);
		return NULL;
	}
	*type = "device";
	return !strcmp(name, "device") ? put_device(r, &tensor)
				       : prb_error_create(PRB_ERROR_NOT_FOUND, "not known");
}

struct prb_error *prb_repr_handle_tensor(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct tensor tensor = {};
	struct prb_error *err = read_tensor(r, object, &tensor);

	if (prb_error_catch(&err, PRB_ERROR_BAD_DATA) || prb_error_catch(&err, PRB_ERROR_FAULT))
		return prb_repr_handle_default(r, object, type);
	PRB_TRY(err);
	if (strcmp(type->name, "Tensor") == 0)
		prb_str_puts(r->out, "tensor");
	else
		PRB_TRY(prb_repr_put_name(r, type));
	prb_str_puts(r->out, "(shape=(");
	put_shape(r, &tensor);
	prb_str_printf(r->out, "%s), dtype=%s", tensor.dimensions == 1 ? "," : "",
		       dtypes[tensor.dtype]);
	if (tensor.device_set == 1) {
		prb_str_printf(r->out, ", device='%s", devices[tensor.device]);
		if (tensor.device_index >= 0)
			prb_str_printf(r->out, ":%d", tensor.device_index);
		prb_str_putc(r->out, '\'');
	}
	prb_str_putc(r->out, ')');
	return NULL;
}
