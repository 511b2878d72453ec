/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/repr/arrays/tensor.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	HEAD_WORDS = 16,  /* of a TensorImpl, among which is the pointer back */
	INLINE_SIZES = 5, /* that lie in the TensorImpl itself, followed by as many strides */
	REST = 1 + 2 * INLINE_SIZES, /* words from the sizes to the storage offset */
	STORAGE_WORDS = 8,
	LOWEST_ADDRESS = 4096,
	CPU = 0,
};

/*
 * Words of an AutogradMeta, which begins with its vtable and a name (std::string, 4 words). Without
 * a gradient META_GRAD leads to a tensor without a type. A mutex lies before META_REQUIRES, which
 * is that of 1.13; 2.6 has one word more in front of it, and 2.15 two words less than that, one of
 * them before META_ACCUMULATOR. The word of a TensorImpl that leads back says which of them it is.
 */
enum {
	META_GRAD = 5,
	META_FUNCTION,
	META_ACCUMULATOR = 8,
	META_REQUIRES = 12 + sizeof(pthread_mutex_t) / 8,
	META_WORDS = META_REQUIRES + 2,
	HEAD_2_15 = 6,
	HEAD_2_6,
};

static const uint64_t storage_max = UINT64_C(1) << 44;

static const struct {
	const char *name;
	uint8_t bytes;
} dtypes[] = {
	{"uint8", 1},
	{"int8", 1},
	{"int16", 2},
	{"int32", 4},
	{"int64", 8},
	{"float16", 2},
	{"float32", 4},
	{"float64", 8},
	{"complex32", 4},
	{"complex64", 8},
	{"complex128", 16},
	{"bool", 1},
	{"qint8", 1},
	{"quint8", 1},
	{"qint32", 4},
	{"bfloat16", 2},
	{"quint4x2", 0},
	{"quint2x4", 0},
	{"bits1x8", 1},
	{"bits2x4", 1},
	{"bits4x2", 1},
	{"bits8", 1},
	{"bits16", 2},
	{"float8_e5m2", 1},
	{"float8_e4m3fn", 1},
	{"float8_e5m2fnuz", 1},
	{"float8_e4m3fnuz", 1},
	{"uint16", 2},
	{"uint32", 4},
	{"uint64", 8},
	{"uint1", 1},
	{"uint2", 1},
	{"uint3", 1},
	{"uint4", 1},
	{"uint5", 1},
	{"uint6", 1},
	{"uint7", 1},
	{"int1", 1},
	{"int2", 1},
	{"int3", 1},
	{"int4", 1},
	{"int5", 1},
	{"int6", 1},
	{"int7", 1},
	{"float8_e8m0fnu", 1},
	{"float4_e2m1fn_x2", 1},
	{"bcomplex32", 4}, /* from torch 2.14 on */
};

static const char *const devices[] = {
	"cpu",	  "cuda",  "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla",
	"vulkan", "metal", "xpu",    "mps",    "meta",	 "hpu",	  "ve",	 "lazy", "ipu",	 "mtia",
};

const char *prb_tensor_dtype_name(unsigned number)
{
	return number < PRB_ARRAY_SIZE(dtypes) ? dtypes[number].name : NULL;
}

const char *prb_tensor_device_name(unsigned number)
{
	return number < PRB_ARRAY_SIZE(devices) ? devices[number] : NULL;
}

static struct prb_error *bad(uint64_t address, const char *what)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "object at %#llx: %s",
				(unsigned long long)address, what);
}

static struct prb_error *read_words(struct prb_mem *mem, uint64_t address, size_t count,
				    uint64_t *ret)
{
	if (!address || address % sizeof(uint64_t))
		return bad(address, "not a tensor");
	return prb_mem_read(mem, address, ret, count * sizeof(*ret));
}

/*
 * An optional device is kind, index and a flag of 1, or in old versions the flag first. An index
 * of 1 makes both the same; an old one of that kind and another index has no 1 in the third place.
 */
static struct prb_error *read_device(uint64_t bytes, uint64_t impl, struct prb_tensor *ret)
{
	bool flag_first = (bytes >> 16 & 0xff) != 1;
	uint8_t set = (flag_first ? bytes : bytes >> 16) & 0xff;
	uint8_t kind = (uint8_t)(flag_first ? bytes >> 8 : bytes);

	ret->device_index = (int8_t)(flag_first ? bytes >> 16 : bytes >> 8);
	if (kind >= PRB_ARRAY_SIZE(devices))
		return bad(impl, "a tensor of unknown type");
	if (set == 1)
		ret->device = devices[kind];
	return NULL;
}

/*
 * True for the dispatch keys of a tensor whose elements lie in its storage as they are. These keys
 * are the device's (bit 0: CPU), Dense, ADInplaceOrView, AutogradFunctionality two bits after it,
 * and the device's Autocast, if it has one; in inference mode the first two and Autocast, which is
 * far behind. Conjugated, negated and wrapped tensors have more keys, and old versions of torch (up
 * to 1.11) others.
 */
static bool are_dense_keys(uint64_t keys)
{
	enum { PLAIN = 5, INFERENCE = 3, DENSE_MIN = 8, DENSE_MAX = 18, AUTOCAST_BEHIND = 20 };
	unsigned bits[PLAIN] = {}, count = 0;

	for (unsigned i = 0; i < 64; i++) {
		if (!(keys >> i & 1))
			continue;
		if (count == PLAIN)
			return false;
		bits[count++] = i;
	}
	if (bits[1] < DENSE_MIN || bits[1] > DENSE_MAX)
		return false;
	if (count >= PLAIN - 1)
		return bits[3] == bits[2] + 2;
	return count == INFERENCE && bits[2] >= bits[1] + AUTOCAST_BEHIND;
}

/* Nested tensors keep sizes of 0 here, as nothing else does that has elements. */
static bool keeps_no_sizes(const struct prb_tensor *tensor, uint64_t keys)
{
	bool kept = !tensor->dimensions || are_dense_keys(keys);

	for (uint64_t i = 0; i < tensor->dimensions; i++)
		kept |= tensor->shape[i] != 0;
	return !kept;
}

/* What follows the pointer back: sizes, strides, storage offset, elements, type, device, dispatch
 * keys.
 */
static struct prb_error *read_sizes(struct prb_mem *mem, uint64_t impl, struct prb_tensor *ret)
{
	uint64_t at = impl + (ret->head + 1) * 8, place = at + 8, rest[4], count = 1,
		 behind = INLINE_SIZES;
	unsigned dtype;

	PRB_TRY(read_words(mem, at, 1, &ret->dimensions));
	if (ret->dimensions > PRB_TENSOR_DIMENSIONS)
		return bad(impl, "a tensor of too many dimensions");
	if (ret->dimensions > INLINE_SIZES) {
		PRB_TRY(read_words(mem, place, 1, &place));
		behind = ret->dimensions;
	}
	PRB_TRY(read_words(mem, place, ret->dimensions, ret->shape));
	PRB_TRY(read_words(mem, place + behind * 8, ret->dimensions, ret->strides));
	PRB_TRY(read_words(mem, at + REST * 8, PRB_ARRAY_SIZE(rest), rest));
	for (uint64_t i = 0; i < ret->dimensions; i++)
		if (!prb_mul(count, ret->shape[i], &count))
			return bad(impl, "a tensor of impossible size");
	dtype = rest[2] & 0xffff;
	if (count != rest[1] || dtype >= PRB_ARRAY_SIZE(dtypes) || keeps_no_sizes(ret, rest[3]))
		return bad(impl,
			   "a tensor whose sizes do not fit its elements, or of unknown type");
	ret->offset = rest[0];
	ret->plain = are_dense_keys(rest[3]) && rest[3] & 1;
	ret->elements = count;
	ret->dtype = dtypes[dtype].name;
	ret->item_bytes = dtypes[dtype].bytes;
	if (!prb_mul(count, ret->item_bytes, &ret->bytes))
		return bad(impl, "a tensor of impossible size");
	return read_device(rest[2] >> 16, impl, ret);
}

/*
 * A StorageImpl is its vtable, one or two words of reference counts, the data's address, the
 * function that frees it, that function's context, the device and the number of bytes. The second
 * count of an old one is no address; the size of a new one may look like the device of an old one.
 */
static void read_storage(struct prb_mem *mem, uint64_t storage, struct prb_tensor *ret)
{
	uint64_t words[STORAGE_WORDS], needed = ret->elements ? ret->offset + 1 : 0;
	prb_auto_error struct prb_error *err = read_words(mem, storage, STORAGE_WORDS, words);

	if (err || !ret->device || !prb_mul(needed, ret->item_bytes, &needed))
		return;
	for (unsigned data = 2; data <= 3; data++) {
		unsigned kind = words[data + 3] & 0xff;

		if (kind >= PRB_ARRAY_SIZE(devices) || strcmp(devices[kind], ret->device) != 0 ||
		    words[data + 4] < needed || words[data + 4] > storage_max ||
		    (!words[data] && words[data + 4]) ||
		    (words[data] && words[data] < LOWEST_ADDRESS))
			continue;
		ret->storage = storage;
		ret->data = words[data];
		ret->storage_bytes = words[data + 4];
		return;
	}
}

static void read_autograd(struct prb_mem *mem, uint64_t meta, struct prb_tensor *ret)
{
	uint64_t words[META_WORDS];

	ret->requires_grad = meta ? -1 : 0;
	if (!meta)
		return;

	prb_auto_error struct prb_error *err = read_words(mem, meta, META_WORDS, words);

	/* The name's text lies in the string itself: it has none, or a short one. */
	if (err || words[1] != meta + 3 * 8)
		return;
	ret->grad = words[META_GRAD];
	ret->function = words[META_FUNCTION];
	unsigned accumulator = META_ACCUMULATOR - (ret->head <= HEAD_2_15),
		 requires = META_REQUIRES + (ret->head == HEAD_2_6) - (ret->head <= HEAD_2_15);

	if (ret->function || words[accumulator] || (words[requires] & 0xff) == 1)
		ret->requires_grad = 1;
}

/* The storage's and the meta data's addresses lie before the pointer back, in this distance; a word
 * less in new versions. */
static void read_parts(struct prb_mem *mem, uint64_t impl, struct prb_tensor *ret)
{
	enum { STORAGE_BEFORE = 5, PARTS = 2 };
	uint64_t words[PARTS] = {};

	for (unsigned before = STORAGE_BEFORE; before > STORAGE_BEFORE - 2; before--) {
		if (ret->head < before)
			continue;

		prb_auto_error struct prb_error *err =
			read_words(mem, impl + (ret->head - before) * 8, PARTS, words);

		if (!err)
			read_storage(mem, words[0], ret);
		if (ret->storage) {
			read_autograd(mem, words[1], ret);
			return;
		}
	}
}

static struct prb_error *read_at(struct prb_mem *mem, uint64_t impl, unsigned head,
				 struct prb_tensor *ret)
{
	*ret = (struct prb_tensor){.head = head, .device_index = -1, .requires_grad = -1};
	PRB_TRY(read_sizes(mem, impl, ret));
	read_parts(mem, impl, ret);
	return NULL;
}

static struct prb_error *read_impl(struct prb_mem *mem, uint64_t object, uint64_t impl,
				   struct prb_tensor *ret)
{
	uint64_t words[HEAD_WORDS];

	PRB_TRY(read_words(mem, impl, HEAD_WORDS, words));
	for (unsigned i = 0; i < HEAD_WORDS; i++)
		if (words[i] == object)
			return read_at(mem, impl, i, ret);
	return bad(object, "a tensor without a pointer back");
}

/* The object has a flag for borrowed tensors and the pointer, or the pointer alone. */
struct prb_error *prb_tensor_read(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				  struct prb_tensor *ret)
{
	struct prb_error *err = NULL;
	uint64_t words[2];

	PRB_TRY(read_words(mem, object + (uint64_t)py->layout.object_size, 2, words));
	for (unsigned i = 2; i-- > 0;) {
		err = read_impl(mem, object, words[i], ret);
		if (!prb_error_catch(&err, PRB_ERROR_BAD_DATA) &&
		    !prb_error_catch(&err, PRB_ERROR_FAULT))
			return err;
	}
	return bad(object, "not a tensor that we can read");
}

struct prb_error *prb_tensor_grad(struct prb_mem *mem, const struct prb_tensor *of,
				  struct prb_tensor *ret)
{
	if (!of->grad)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it has no gradient");
	return read_at(mem, of->grad, of->head, ret);
}
