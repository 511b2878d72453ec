/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Classes whose __repr__ is a function in Python. We cannot run it, but the standard library's
 * functions are known: by the module and the qualified name of the function, or, for functions that
 * the library makes for each class, by the file of their code.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

static const struct {
	const char *module, *qualname; /* qualname ends in .__repr__ */
	prb_repr_handler *handler;
} functions[] = {
	{"PIL.Image", "Image", prb_repr_handle_image},
	{"annotationlib", "ForwardRef", prb_repr_handle_forward_ref},
	{"collections", "ChainMap", prb_repr_handle_chain_map},
	{"collections", "Counter", prb_repr_handle_counter},
	{"collections", "OrderedDict", prb_repr_handle_old_ordered_dict},
	{"collections", "UserDict", prb_repr_handle_user_data},
	{"collections", "UserList", prb_repr_handle_user_data},
	{"collections", "UserString", prb_repr_handle_user_data},
	{"collections.abc", "_CallableGenericAlias", prb_repr_handle_abc_callable},
	{"enum", "Enum", prb_repr_handle_enum},
	{"enum", "EnumMeta", prb_repr_handle_enum_class},
	{"enum", "EnumType", prb_repr_handle_enum_class},
	{"enum", "Flag", prb_repr_handle_flag},
	{"enum", "IntFlag", prb_repr_handle_flag},
	{"enum", "global_enum_repr", prb_repr_handle_global_enum},
	{"enum", "global_flag_repr", prb_repr_handle_global_enum},
	{"fractions", "Fraction", prb_repr_handle_fraction},
	{"ipaddress", "_BaseAddress", prb_repr_handle_ip_address},
	{"ipaddress", "_BaseNetwork", prb_repr_handle_ip_address},
	{"numpy.ma.core", "MaskedArray", prb_repr_handle_masked_array},
	{"numpy.ma.core", "MaskedConstant", prb_repr_handle_masked_array},
	{"numpy.ma", "MaskedArray", prb_repr_handle_masked_array},
	{"numpy.rec", "recarray", prb_repr_handle_ndarray},
	{"numpy._core.records", "recarray", prb_repr_handle_ndarray},
	{"numpy.core.records", "recarray", prb_repr_handle_ndarray},
	{"pandas.core.arrays.base", "ExtensionArray", prb_repr_handle_pandas_array},
	{"pandas.core.arrays.categorical", "Categorical", prb_repr_handle_pandas_array},
	{"pandas.core.frame", "DataFrame", prb_repr_handle_data_frame},
	{"pandas.core.indexes.base", "Index", prb_repr_handle_index},
	{"pandas.core.series", "Series", prb_repr_handle_series},
	{"pathlib", "PurePath", prb_repr_handle_path},
	{"pathlib._local", "PurePath", prb_repr_handle_path},
	{"polars.dataframe.frame", "DataFrame", prb_repr_handle_polars_frame},
	{"polars.series.series", "Series", prb_repr_handle_polars_series},
	{"sqlalchemy.engine.row", "Row", prb_repr_handle_row},
	{"sqlalchemy.engine.row", "RowMapping", prb_repr_handle_row_mapping},
	{"socket", "socket", prb_repr_handle_socket},
	{"re", "RegexFlag", prb_repr_handle_global_enum},
	{"threading", "BoundedSemaphore", prb_repr_handle_semaphore},
	{"threading", "Condition", prb_repr_handle_condition},
	{"threading", "Event", prb_repr_handle_event},
	{"threading", "Semaphore", prb_repr_handle_semaphore},
	{"threading", "Thread", prb_repr_handle_thread},
	{"torch._tensor", "Tensor", prb_repr_handle_tensor},
	{"torch.nn.parameter", "Parameter", prb_repr_handle_tensor},
	{"torch.tensor", "Tensor", prb_repr_handle_tensor},
	{"typing", "ForwardRef", prb_repr_handle_forward_ref},
	{"typing", "NewType", prb_repr_handle_new_type},
	{"typing", "ParamSpec", prb_repr_handle_type_variable},
	{"typing", "TypeVar", prb_repr_handle_type_variable},
	{"typing", "TypeVarTuple", prb_repr_handle_type_variable},
	{"typing", "_AnnotatedAlias", prb_repr_handle_annotated},
	{"typing", "_BaseGenericAlias", prb_repr_handle_typing_alias},
	{"typing", "_BoundVarianceMixin", prb_repr_handle_type_variable},
	{"typing", "_CallableGenericAlias", prb_repr_handle_typing_alias},
	{"typing", "_GenericAlias", prb_repr_handle_typing_alias},
	{"typing", "_SpecialGenericAlias", prb_repr_handle_typing_alias},
	{"typing", "_SpecialForm", prb_repr_handle_special_form},
	{"typing", "_TypeVarLike", prb_repr_handle_type_variable},
	{"typing", "_UnionGenericAlias", prb_repr_handle_typing_alias},
	{"typing", "_UnpackGenericAlias", prb_repr_handle_unpack},
	{"uuid", "UUID", prb_repr_handle_uuid},
};

/* Text of a str at an offset of an object, "" if there is none. */
static struct prb_error *text_at(struct prb_repr *r, uint64_t object, int32_t offset, size_t max,
				 struct prb_str *ret)
{
	uint64_t text;

	PRB_TRY(prb_repr_word(r, object + (uint64_t)offset, &text));

	struct prb_error *err = prb_repr_text(r, text, max, ret);

	prb_error_catch(&err, PRB_ERROR_BAD_DATA);
	return err;
}

/* True if the code of a function comes from that file of the standard library. */
static struct prb_error *code_is_from(struct prb_repr *r, uint64_t function, const char *file,
				      bool *ret)
{
	enum { PATH_MAX_CHARACTERS = 4096 };
	prb_auto_str struct prb_str path = {};
	uint64_t code;

	PRB_TRY(prb_repr_word(r, function + (uint64_t)r->layout->function_code, &code));
	PRB_TRY(text_at(r, code, r->layout->code_filename, PATH_MAX_CHARACTERS, &path));

	size_t length = strlen(file);

	*ret = path.length >= length &&
	       strcmp(prb_str_text(&path) + path.length - length, file) == 0;
	return NULL;
}

/* The functions that dataclasses makes come from its own code, wrapped against recursion. */
static struct prb_error *is_dataclass(struct prb_repr *r, const struct prb_type *owner,
				      uint64_t function, bool *ret)
{
	static const char *const files[] = {"/dataclasses.py", "/reprlib.py"};
	uint64_t fields;
	struct prb_error *err = prb_repr_dict_get(r, owner->dict, "__dataclass_fields__", &fields);

	*ret = false;
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(files) && !*ret; i++)
		PRB_TRY(code_is_from(r, function, files[i], ret));
	return NULL;
}

/* Up to 3.6 each namedtuple is a module of its own made from a template. */
static struct prb_error *is_namedtuple(struct prb_repr *r, const struct prb_type *owner,
				       const char *module, bool *ret)
{
	uint64_t fields;

	*ret = false;
	if (!(owner->flags & PRB_PY_TUPLE) ||
	    (strcmp(module, "collections") != 0 && strncmp(module, "namedtuple_", 11) != 0))
		return NULL;

	struct prb_error *err = prb_repr_dict_get(r, owner->dict, "_fields", &fields);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	*ret = !err;
	return err;
}

static prb_repr_handler *find_function(const char *module, char *qualname)
{
	char *dot = strstr(qualname, ".__repr__");

	if (dot)
		*dot = '\0';
	for (size_t i = 0; i < PRB_ARRAY_SIZE(functions); i++)
		if (strcmp(functions[i].module, module) == 0 &&
		    strcmp(functions[i].qualname, qualname) == 0)
			return functions[i].handler;
	return NULL;
}

/*
 * The function wrapped by reprlib.recursive_repr() is in the closure of the wrapper, which had no
 * qualified name of its own in old versions. Gives the function itself if it is no wrapper.
 */
static struct prb_error *unwrap(struct prb_repr *r, uint64_t *function)
{
	enum { CLOSURE_MAX = 8 };
	uint64_t closure, cells[CLOSURE_MAX], count, content;
	bool wrapper;

	PRB_TRY(code_is_from(r, *function, "/reprlib.py", &wrapper));
	if (!wrapper)
		return NULL;
	PRB_TRY(prb_repr_word(r, *function + (uint64_t)r->layout->function_closure, &closure));
	if (!closure)
		return NULL;
	PRB_TRY(prb_repr_tuple(r, closure, cells, CLOSURE_MAX, &count));
	for (uint64_t i = 0; i < PRB_MIN(count, (uint64_t)CLOSURE_MAX); i++) {
		PRB_TRY(prb_repr_member(r, cells[i], 0, &content));
		if (prb_repr_is(r, content, "function")) {
			*function = content;
			return NULL;
		}
	}
	return NULL;
}

struct prb_error *prb_repr_python_handler(struct prb_repr *r, const struct prb_type *owner,
					  uint64_t function, prb_repr_handler **ret)
{
	enum { NAME_MAX_CHARACTERS = 100 };
	prb_auto_str struct prb_str module = {};
	prb_auto_str struct prb_str qualname = {};
	uint64_t inner = function;
	bool yes;

	*ret = NULL;
	PRB_TRY(unwrap(r, &inner));
	PRB_TRY(text_at(r, inner, r->layout->function_module, NAME_MAX_CHARACTERS, &module));
	PRB_TRY(text_at(r, inner, r->layout->function_qualname, NAME_MAX_CHARACTERS, &qualname));
	if (module.data && qualname.data)
		*ret = find_function(module.data, qualname.data);
	if (*ret)
		return NULL;
	PRB_TRY(is_namedtuple(r, owner, prb_str_text(&module), &yes));
	if (yes) {
		*ret = prb_repr_handle_namedtuple;
		return NULL;
	}
	PRB_TRY(is_dataclass(r, owner, function, &yes));
	if (yes)
		*ret = prb_repr_handle_dataclass;
	return NULL;
}

static struct prb_error *put_item(struct prb_repr *r, uint64_t object, struct prb_type *type,
				  uint64_t name, uint64_t item)
{
	enum { NAME_MAX_CHARACTERS = 200 };
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_repr_text(r, name, NAME_MAX_CHARACTERS, &text));
	prb_str_printf(r->out, "%s=", prb_str_text(&text));
	if (!prb_repr_hides(r, type, object, prb_str_text(&text)) || prb_repr_is_none(r, item))
		return prb_repr_object(r, item);
	prb_str_puts(r->out, PRB_REPR_HIDDEN);
	return NULL;
}

struct prb_error *prb_repr_handle_namedtuple(struct prb_repr *r, uint64_t object,
					     struct prb_type *type)
{
	struct prb_items items = {.r = r};
	uint64_t fields, count, item, name;

	PRB_TRY(prb_repr_lookup(r, type, "_fields", &fields, NULL));
	PRB_TRY(prb_repr_tuple(r, fields, NULL, 0, &count));
	PRB_TRY(prb_repr_size(r, object, &items.total));
	if (items.total > count)
		return prb_repr_bad(object, "a namedtuple with more items than fields");
	if (!prb_repr_enter(r, object, "(...)"))
		return NULL;
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	while (prb_items_next(&items)) {
		uint64_t place = (uint64_t)r->layout->tuple_items + (items.done - 1) * 8;

		PRB_TRY(prb_repr_word(r, fields + place, &name));
		PRB_TRY(prb_repr_word(r, object + place, &item));
		PRB_TRY(put_item(r, object, type, name, item));
	}
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

enum { FIELDS_MAX = 4096 };

/* Fields of a dataclass that its repr shows. */
struct fields {
	struct prb_repr *r;
	PRB_VEC(uint64_t) names;
	struct prb_error *err;
};

static void fields_guard(struct fields *fields)
{
	prb_vec_free(&fields->names);
}

static struct prb_error *is_shown(struct prb_repr *r, uint64_t field, bool *ret)
{
	uint64_t flag, kind, kind_name;
	int64_t value;

	PRB_TRY(prb_repr_attribute(r, field, "repr", &flag));
	PRB_TRY(prb_repr_attribute(r, field, "_field_type", &kind));
	PRB_TRY(prb_repr_attribute(r, kind, "name", &kind_name));
	PRB_TRY(prb_repr_int(r, flag, &value));
	PRB_TRY(prb_repr_text_is(r, kind_name, "_FIELD", ret));
	*ret &= value != 0;
	return NULL;
}

static bool collect_field(void *context, uint64_t key, uint64_t value)
{
	struct fields *fields = context;
	bool shown = false;

	fields->err = fields->names.count < FIELDS_MAX
			      ? is_shown(fields->r, value, &shown)
			      : prb_repr_bad(key, "more fields than a class can have");
	if (fields->err || !shown)
		return !fields->err;

	uint64_t *name = prb_vec_push(&fields->names);

	if (!name) {
		fields->err = prb_error_nomem();
		return false;
	}
	*name = key;
	return true;
}

static struct prb_error *put_field(struct prb_repr *r, uint64_t object, uint64_t name)
{
	enum { NAME_MAX_CHARACTERS = 200 };
	prb_auto_str struct prb_str text = {};
	uint64_t value;

	PRB_TRY(prb_repr_text(r, name, NAME_MAX_CHARACTERS, &text));
	prb_str_printf(r->out, "%s=", prb_str_text(&text));
	PRB_TRY(prb_repr_attribute(r, object, prb_str_text(&text), &value));
	return prb_repr_object(r, value);
}

struct prb_error *prb_repr_handle_dataclass(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	__attribute__((cleanup(fields_guard))) struct fields fields = {.r = r};
	struct prb_items items = {.r = r};
	uint64_t dict, function;
	struct prb_type *owner;

	PRB_TRY(prb_repr_lookup(r, type, "__repr__", &function, &owner));
	PRB_TRY(prb_repr_dict_get(r, owner->dict, "__dataclass_fields__", &dict));

	struct prb_error *err = prb_repr_dict_each(r, dict, collect_field, &fields);

	if (err) {
		prb_error_destroy(fields.err);
		return err;
	}
	PRB_TRY(fields.err);
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(prb_repr_put_qualname(r, type));
	prb_str_putc(r->out, '(');
	items.total = fields.names.count;
	while (prb_items_next(&items))
		PRB_TRY(put_field(r, object, fields.names.items[items.done - 1]));
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}
