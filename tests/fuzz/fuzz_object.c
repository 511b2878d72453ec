/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as objects. The input chooses a version and is repeated over the whole address space,
 * so that each pointer is valid. It is read as an object of its own type, and by the handler of a
 * chosen type.
 */
#include <limits.h>

#include "tests/fuzz/input.h"

#include "python/repr/core/items.h"
#include "python/repr/core/handlers.h"
#include "python/repr/arrays/pandas.h"
#include "values/expression.h"

enum { HEADER = 4 };

static const struct {
	uint16_t version;
	bool free_threaded;
} builds[] = {{0x0304, false}, {0x0305, false}, {0x0306, false}, {0x0309, false},
	      {0x030a, false}, {0x030b, false}, {0x030c, false}, {0x030d, false},
	      {0x030d, true},  {0x030e, false}, {0x030f, false}};

static prb_repr_handler *const handlers[] = {
	prb_repr_handle_list,	    prb_repr_handle_tuple,	  prb_repr_handle_set,
	prb_repr_handle_deque,	    prb_repr_handle_range,	  prb_repr_handle_dict,
	prb_repr_handle_dict_items, prb_repr_handle_defaultdict,  prb_repr_handle_ordered_dict,
	prb_repr_handle_namespace,  prb_repr_handle_str,	  prb_repr_handle_bytes,
	prb_repr_handle_bytearray,  prb_repr_handle_int,	  prb_repr_handle_float,
	prb_repr_handle_complex,    prb_repr_handle_function,	  prb_repr_handle_builtin,
	prb_repr_handle_method,	    prb_repr_handle_partial,	  prb_repr_handle_code,
	prb_repr_handle_cell,	    prb_repr_handle_generator,	  prb_repr_handle_type,
	prb_repr_handle_module,	    prb_repr_handle_exception,	  prb_repr_handle_weakref,
	prb_repr_handle_pattern,    prb_repr_handle_structseq,	  prb_repr_handle_array,
	prb_repr_handle_union,	    prb_repr_handle_thread,	  prb_repr_handle_datetime,
	prb_repr_handle_timedelta,  prb_repr_handle_timezone,	  prb_repr_handle_decimal,
	prb_repr_handle_namedtuple, prb_repr_handle_dataclass,	  prb_repr_handle_enum,
	prb_repr_handle_flag,	    prb_repr_handle_global_enum,  prb_repr_handle_enum_class,
	prb_repr_handle_counter,    prb_repr_handle_path,	  prb_repr_handle_uuid,
	prb_repr_handle_ndarray,    prb_repr_handle_numpy_scalar, prb_repr_handle_old_ordered_dict,
	prb_repr_handle_tensor,	    prb_repr_handle_dtype,	  prb_repr_handle_data_frame,
	prb_repr_handle_series,	    prb_repr_handle_index,	  prb_repr_handle_file,
	prb_repr_handle_socket,	    prb_repr_handle_match,	  prb_repr_handle_frame,
	prb_repr_handle_torch_size, prb_repr_handle_typing_alias,
};

static const struct prb_repr_options limits = {
	.max_depth = 4,
	.max_items = 8,
	.max_text = 64,
	.max_total = 400,
};

static bool visit(void *context, uint64_t key, uint64_t value)
{
	(void)key;
	(void)value;
	return ++*(unsigned *)context < 100;
}

static bool visit_attribute(void *context, const struct prb_attribute *attribute)
{
	if (!attribute->name || (!attribute->object && !attribute->text))
		abort();
	return ++*(unsigned *)context < 100;
}

/* Evaluates fixed expressions, and one made of the input. */
static void by_expression(struct prb_python *py, struct prb_mem *mem, uint64_t object,
			  const struct input *in)
{
	static const char *const texts[] = {"x.y[0]['k']", "len(x)",	       "vars(x)",
					    "dir(x)",	   "type(x).__name__", "x.args[-1].shape"};
	struct prb_py_scope scope = {.interp = object};
	struct prb_py_value value;
	char text[64] = {};

	memcpy(text, in->data, PRB_MIN(in->size, sizeof(text) - 1));
	for (size_t i = 0; i <= PRB_ARRAY_SIZE(texts); i++) {
		const char *expression = i < PRB_ARRAY_SIZE(texts) ? texts[i] : text;
		struct prb_error *err =
			prb_python_find(py, mem, &scope, expression, &limits, &value);

		if (!err && !value.object && !value.type)
			abort();
		if (!err)
			prb_str_deinit(&value.text);
		prb_error_destroy(err);
	}
}

static void by_handler(struct prb_python *py, struct prb_mem *mem, uint64_t object, unsigned choice)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_repr struct prb_repr r;
	struct prb_type *type;

	prb_repr_init(&r, py, mem, &limits, &text);

	struct prb_error *err = prb_repr_type_of(&r, object, &type);

	if (!err)
		err = handlers[choice % PRB_ARRAY_SIZE(handlers)](&r, object, type);
	prb_error_destroy(err);
}

/* A column of pandas: no input could imitate its classes. */
static void by_column(struct prb_python *py, struct prb_mem *mem, uint64_t object,
		      const uint8_t *choices)
{
	static const char kinds[] = "bifcOSUVMm";
	prb_auto_str struct prb_str text = {};
	prb_auto_repr struct prb_repr r;
	struct prb_frame_column column = {
		.kind = (enum prb_frame_column_kind)(choices[0] % 4),
		.count = choices[1],
		.dtype = {.number = choices[2] % 26,
			  .size = choices[3],
			  .order = choices[4] & 1 ? '>' : '<',
			  .kind = kinds[choices[5] % (sizeof(kinds) - 1)],
			  .unit = {(int8_t)choices[6], (int8_t)choices[7]}},
		.first = object,
		.stride = choices[8],
		.mask = choices[9] & 1 ? object : 0,
		.mask_stride = choices[9],
		.categories = choices[9] & 2 ? object : 0,
		.utc = choices[9] & 4,
		.step = (int8_t)choices[10],
		.levels = object,
		.codes = object,
	};

	prb_repr_init(&r, py, mem, &limits, &text);
	if (column.kind == PRB_FRAME_ARRAY && !prb_dtype_is_printable(&column.dtype))
		return;
	prb_error_destroy(prb_frame_column_put_all(&r, &column, 7));
	prb_error_destroy(prb_frame_column_open(&r, object, 0, &column));
	prb_error_destroy(prb_frame_column_open_index(&r, object, &column));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	prb_auto_str struct prb_str text = {};
	struct prb_python py = {};
	unsigned count = 0;
	uint64_t found;
	int64_t number;

	if (size < HEADER + 64)
		return 0;

	struct repeated_memory memory =
		repeat(&(struct input){data + HEADER, size - HEADER}, data[1] & 1);

	py.layout =
		*prb_layout_table(builds[data[0] % PRB_ARRAY_SIZE(builds)].version,
				  builds[data[0] % PRB_ARRAY_SIZE(builds)].free_threaded, false);
	py.layout.behaviour = prb_behaviour_find(py.layout.version);

	uint64_t object = (uint64_t)data[3] * 8;

	by_handler(&py, &memory.mem, object, data[2]);
	by_column(&py, &memory.mem, object, data + HEADER);

	struct prb_error *err = prb_object_repr(&py, &memory.mem, object, &limits, &text);

	if (err || text.length > limits.max_total + strlen("…"))
		abort();
	prb_error_destroy(prb_object_attribute(&py, &memory.mem, object, "x", &found));
	prb_error_destroy(prb_object_dict_each(&py, &memory.mem, object, visit, &count));
	prb_error_destroy(prb_object_dict_get(&py, &memory.mem, object, "x", &found));
	prb_error_destroy(prb_object_attributes(&py, &memory.mem, object, UINT_MAX, visit_attribute,
						&count, NULL));
	prb_error_destroy(prb_object_items(&py, &memory.mem, object, false, visit, &count, NULL));
	by_expression(&py, &memory.mem, object, &(struct input){data + HEADER, size - HEADER});
	prb_error_destroy(prb_object_int(&py, &memory.mem, object, &number));
	return 0;
}
