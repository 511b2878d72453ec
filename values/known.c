/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attributes computed by code of Python and of libraries whose result is known: fields of C code,
 * and containers that keep their items in an attribute.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"
#include "values/expression_private.h"

/* Fields of C types that are objects. */
struct field {
	const char *owner, *name; /* tp_name of the class with the descriptor */
	int32_t (*place)(const struct prb_repr *r);
};

static int32_t code_place(const struct prb_repr *r)
{
	return r->layout->function_code;
}

static int32_t name_place(const struct prb_repr *r)
{
	return r->layout->function_name;
}

static int32_t qualname_place(const struct prb_repr *r)
{
	return r->layout->function_qualname;
}

/* An exception: its dict, its arguments, since 3.11 its notes, and what is behind them. */
static int32_t exception_word(const struct prb_repr *r, int32_t word)
{
	return r->layout->object_size + 8 * (word + (word > 1 && r->traits->exception_notes));
}

static int32_t args_place(const struct prb_repr *r)
{
	return exception_word(r, 1);
}

static int32_t traceback_place(const struct prb_repr *r)
{
	return exception_word(r, 2);
}

static int32_t context_place(const struct prb_repr *r)
{
	return exception_word(r, 3);
}

static int32_t cause_place(const struct prb_repr *r)
{
	return exception_word(r, 4);
}

static int32_t coro_place(const struct prb_repr *r)
{
	return prb_repr_future_field(r, "_coro");
}

static int32_t waiter_place(const struct prb_repr *r)
{
	return prb_repr_future_field(r, "_fut_waiter");
}

static int32_t loop_place(const struct prb_repr *r)
{
	return prb_repr_future_field(r, "_loop");
}

static int32_t next_traceback_place(const struct prb_repr *r)
{
	return r->layout->object_size;
}

static const struct field fields[] = {
	{"_asyncio.Future", "_loop", loop_place},
	{"_asyncio.Task", "_coro", coro_place},
	{"_asyncio.Task", "_fut_waiter", waiter_place},
	{"_asyncio.Task", "_loop", loop_place},
	{"traceback", "tb_next", next_traceback_place},
	{"function", "__code__", code_place},
	{"function", "__name__", name_place},
	{"function", "__qualname__", qualname_place},
	{"BaseException", "args", args_place},
	{"BaseException", "__traceback__", traceback_place},
	{"BaseException", "__context__", context_place},
	{"BaseException", "__cause__", cause_place},
};

static void give_text(struct prb_search *s, const char *type, const char *text)
{
	s->object = 0;
	s->type = type;
	prb_str_puts(&s->value, text);
}

static struct prb_error *find_field(struct prb_search *s, const struct prb_type *owner,
				    const char *name, bool *ret)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(fields); i++) {
		int32_t place = fields[i].place(s->r);

		if (!prb_type_is(owner, fields[i].owner) || strcmp(name, fields[i].name) != 0 ||
		    place < 0)
			continue;
		*ret = true;
		PRB_TRY(prb_repr_word(s->r, s->object + (uint64_t)place, &s->object));
		if (!s->object)
			give_text(s, "NoneType", "None");
		return NULL;
	}
	return NULL;
}

/* Attributes that the handlers of arrays and tensors read anyway. */
static struct prb_error *find_part(struct prb_search *s, const struct prb_type *owner,
				   const char *name, bool *ret)
{
	static const struct {
		const char *owner;
		prb_repr_part *part;
	} parts[] = {
		{"numpy.ndarray", prb_repr_ndarray_part},
		{"torch._C._TensorBase", prb_repr_tensor_part},
		{"torch._C.TensorBase", prb_repr_tensor_part},
	};
	prb_auto_str struct prb_str text = {};
	struct prb_str *out = s->r->out;
	struct prb_error *err = NULL;
	struct prb_type *type;
	bool is_of_c;

	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	is_of_c = prb_repr_c_kind(s->r, type) != PRB_C_NONE;
	for (size_t i = 0; i <= PRB_ARRAY_SIZE(parts); i++) {
		prb_repr_part *part = i < PRB_ARRAY_SIZE(parts) ? parts[i].part : prb_repr_c_part;

		if (part == prb_repr_c_part ? !is_of_c : strcmp(owner->name, parts[i].owner) != 0)
			continue;
		s->r->out = &text;
		err = part(s->r, s->object, name, &s->type);
		s->r->out = out;
		if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			return NULL;
		PRB_TRY(err);
		*ret = true;
		give_text(s, s->type, prb_str_text(&text));
		return text.failed ? prb_error_nomem() : NULL;
	}
	return NULL;
}

/* Of frames and series of pandas and polars. */
static struct prb_error *find_of_frames(struct prb_search *s, const struct prb_type *owner,
					const char *name, bool *ret)
{
	static const struct {
		const char *name;
		struct prb_error *(*part)(struct prb_repr *r, uint64_t object, const char *name,
					  uint64_t *part, const char **type);
	} packages[] = {{"pandas", prb_repr_pandas_part}, {"polars", prb_repr_polars_part}};
	prb_auto_str struct prb_str text = {};
	struct prb_str *out = s->r->out;
	struct prb_error *err;
	uint64_t object = 0;

	if (!(owner->flags & PRB_PY_HEAP_TYPE))
		return NULL;
	s->r->out = &text;
	err = prb_repr_put_module(s->r, owner);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(packages) && !err; i++) {
		if (strncmp(prb_str_text(&text), packages[i].name, strlen(packages[i].name)) != 0)
			continue;
		prb_str_truncate(&text, 0);
		err = packages[i].part(s->r, s->object, name, &object, &s->type);
		*ret = !err;
		break;
	}
	s->r->out = out;
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND) || prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		return NULL;
	PRB_TRY(err);
	if (object)
		s->object = object;
	else if (*ret)
		give_text(s, s->type, prb_str_text(&text));
	return text.failed ? prb_error_nomem() : NULL;
}

/* The names of a class, and what it is made of. */
static struct prb_error *find_of_class(struct prb_search *s, const char *name, bool *ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_str *out = s->r->out;
	struct prb_error *err;
	struct prb_type *self;
	uint64_t dict;
	bool is_name = !strcmp(name, "__name__");

	PRB_TRY(prb_repr_type(s->r, s->object, &self));
	PRB_TRY(prb_repr_class_dict(s->r, self, &dict));
	*ret = true;
	if (!strcmp(name, "__mro__") && self->mro) {
		s->object = self->mro;
		return NULL;
	}
	if (!strcmp(name, "__dict__") && dict) {
		s->object = dict;
		return NULL;
	}
	*ret = is_name || !strcmp(name, "__qualname__");
	if (!*ret) {
		err = dict && (!strcmp(name, "__doc__") || !strcmp(name, "__module__"))
			      ? prb_repr_dict_get(s->r, dict, name, &s->object)
			      : prb_error_create(PRB_ERROR_NOT_FOUND, "it is not known");
		*ret = !err;
		prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
		return err;
	}
	s->r->out = &text;
	err = is_name ? prb_repr_put_name(s->r, self) : prb_repr_put_qualname(s->r, self);
	if (!err) {
		s->r->out = &s->value;
		err = prb_repr_quote_raw(s->r, &text);
	}
	s->r->out = out;
	s->object = 0;
	s->type = "str";
	return err;
}

struct prb_error *prb_known_field(struct prb_search *s, const struct prb_type *type,
				  const struct prb_type *owner, const char *name, bool *ret)
{
	*ret = false;
	if (type->flags & PRB_PY_TYPE)
		return find_of_class(s, name, ret);
	if (!strcmp(name, "__dict__")) {
		*ret = true;
		return prb_search_vars(s);
	}
	PRB_TRY(find_field(s, owner, name, ret));
	if (!*ret)
		PRB_TRY(find_part(s, owner, name, ret));
	return *ret ? NULL : find_of_frames(s, owner, name, ret);
}

/* Whether it is the function of that module with that qualified name. */
static struct prb_error *is_function(struct prb_search *s, uint64_t function, const char *module,
				     const char *qualname, bool *ret)
{
	uint64_t text;

	*ret = false;
	if (!prb_repr_is(s->r, function, "function"))
		return NULL;
	PRB_TRY(prb_repr_word(s->r, function + (uint64_t)s->r->layout->function_module, &text));
	if (!text)
		return NULL;
	PRB_TRY(prb_repr_text_is(s->r, text, module, ret));
	if (!*ret)
		return NULL;
	PRB_TRY(prb_repr_word(s->r, function + (uint64_t)s->r->layout->function_qualname, &text));
	return prb_repr_text_is(s->r, text, qualname, ret);
}

/* The attribute that the object keeps in its __dict__. *ret is false if there is none. */
static struct prb_error *take_own(struct prb_search *s, const char *name, bool *ret)
{
	struct prb_error *err = prb_repr_instance_get(s->r, s->object, name, &s->object);

	*ret = !err;
	prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
	return err;
}

/* Name and value of a member of an Enum. */
static struct prb_error *find_of_enum(struct prb_search *s, const struct prb_type *owner,
				      const char *name, bool *ret)
{
	prb_auto_str struct prb_str module = {};
	struct prb_str *out = s->r->out;
	bool value = !strcmp(name, "value");
	struct prb_error *err;

	if (strcmp(owner->name, "Enum") != 0 || (!value && strcmp(name, "name") != 0))
		return NULL;
	s->r->out = &module;
	err = prb_repr_put_module(s->r, owner);
	s->r->out = out;
	PRB_TRY(err);
	return strcmp(prb_str_text(&module), "enum.") == 0
		       ? take_own(s, value ? "_value_" : "_name_", ret)
		       : NULL;
}

struct prb_error *prb_known_descriptor(struct prb_search *s, uint64_t descriptor,
				       const struct prb_type *owner, const char *name, bool *ret)
{
	uint64_t method, key;
	struct prb_type *its;
	bool known = false;

	*ret = false;
	PRB_TRY(find_of_enum(s, owner, name, ret));
	if (*ret)
		return NULL;
	PRB_TRY(prb_repr_type_of(s->r, descriptor, &its));
	PRB_TRY(prb_search_class(s, its, "__get__", &method, NULL));
	if (method)
		PRB_TRY(is_function(s, method, "sqlalchemy.orm.attributes",
				    "InstrumentedAttribute.__get__", &known));
	if (!known)
		return NULL;
	/*
	 * A loaded attribute is in the __dict__ under its key; another one would be loaded by code.
	 */
	PRB_TRY(prb_repr_attribute(s->r, descriptor, "key", &key));
	PRB_TRY(prb_repr_text_is(s->r, key, name, &known));
	return known ? take_own(s, name, ret) : NULL;
}

struct prb_error *prb_known_column(struct prb_search *s, const char *name, bool *ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_str *out = s->r->out;
	size_t start = s->r->start;
	struct prb_error *err;
	struct prb_type *type;
	uint64_t method;
	bool known, polars = false;

	*ret = false;
	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	if (!(type->flags & PRB_PY_HEAP_TYPE))
		return NULL;
	err = prb_search_class(s, type, "__getitem__", &method, NULL);
	if (prb_error_catch(&err, PRB_ERROR_FAULT) || (!err && !method))
		return NULL;
	PRB_TRY(err);
	PRB_TRY(is_function(s, method, "pandas.core.frame", "DataFrame.__getitem__", &known));
	if (!known)
		PRB_TRY(is_function(s, method, "polars.dataframe.frame", "DataFrame.__getitem__",
				    &polars));
	if (!known && !polars)
		return NULL;
	s->r->out = &text;
	s->r->start = 0;
	err = polars ? prb_repr_polars_column(s->r, s->object, name)
		     : prb_repr_pandas_column(s->r, s->object, name);
	s->r->out = out;
	s->r->start = start;
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND) || prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		return NULL;
	PRB_TRY(err);
	*ret = true;
	give_text(s, "Series", prb_str_text(&text));
	return text.failed ? prb_error_nomem() : NULL;
}

/* Classes that keep some attributes in dicts of their own: torch's modules parameters, buffers and
 * other modules, pydantic's models what is private or not declared. */
static const struct keeper {
	const char *module, *function, *dicts[3];
} keepers[] = {
	{"torch.nn.modules.module", "Module.__getattr__", {"_parameters", "_buffers", "_modules"}},
	{"pydantic.main", "BaseModel.__getattr__", {"__pydantic_private__", "__pydantic_extra__"}},
};

static struct prb_error *find_kept(struct prb_search *s, const struct keeper *keeper,
				   const char *name, bool *ret)
{
	uint64_t object = s->object, dict;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(keeper->dicts) && keeper->dicts[i]; i++) {
		struct prb_error *err = prb_repr_attribute(s->r, object, keeper->dicts[i], &dict);

		/* One that has never been needed may be None. */
		if (!err && prb_repr_is(s->r, dict, "NoneType"))
			continue;
		if (!err)
			err = prb_repr_dict_get(s->r, dict, name, &s->object);
		if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			return err;
	}
	*ret = false;
	return NULL;
}

struct prb_error *prb_known_getattr(struct prb_search *s, uint64_t function, const char *name,
				    bool *ret)
{
	PRB_TRY(is_function(s, function, "pandas.core.generic", "NDFrame.__getattr__", ret));
	if (*ret)
		return prb_known_column(s, name, ret);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(keepers); i++) {
		const struct keeper *keeper = &keepers[i];

		PRB_TRY(is_function(s, function, keeper->module, keeper->function, ret));
		if (*ret)
			return find_kept(s, keeper, name, ret);
	}
	return NULL;
}

/* Containers in Python that take their items from an attribute. */
static const struct {
	const char *module, *class, *attribute;
} containers[] = {
	{"collections", "UserDict", "data"},
	{"collections", "UserList", "data"},
	{"torch.nn.modules.container", "ModuleDict", "_modules"},
	{"torch.nn.modules.container", "ModuleList", "_modules"},
	{"torch.nn.modules.container", "Sequential", "_modules"},
};

struct prb_error *prb_known_container(struct prb_search *s, uint64_t function, bool *ret)
{
	static const char *const methods[] = {"__getitem__", "__len__"};
	struct prb_type *type;

	/* A class of the program's may say something else of its tensors. */
	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	PRB_TRY(is_function(s, function, "torch._tensor", "Tensor.__len__", ret));
	if (*ret) {
		*ret = !strcmp(type->name, "Tensor") || !strcmp(type->name, "Parameter");
		return NULL;
	}
	for (size_t i = 0; i < 2 * PRB_ARRAY_SIZE(containers); i++) {
		prb_auto_str struct prb_str name = {};

		prb_str_printf(&name, "%s.%s", containers[i / 2].class, methods[i % 2]);
		PRB_TRY(is_function(s, function, containers[i / 2].module, prb_str_text(&name),
				    ret));
		if (*ret)
			return prb_repr_instance_get(s->r, s->object, containers[i / 2].attribute,
						     &s->object);
	}
	return NULL;
}
