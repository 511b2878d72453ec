/* SPDX-License-Identifier: GPL-3.0-or-later */
/* repr() of an object: finding the type whose repr applies, limits, and the default form. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"
#include "target/custom.h"

enum {
	DEPTH = 4,
	ITEMS = 20,
	TEXT = 200,
	TOTAL = 2000,
	OBJECTS = 1,
	ATTRIBUTES = 12,
	TYPES_KEPT = 1024, /* from one object to the next */
};

struct prb_objects {
	struct prb_repr repr;
	struct prb_repr_options options;
};

static const struct prb_repr_options defaults = {.max_objects = OBJECTS};

static struct prb_repr_options limits(const struct prb_repr_options *options)
{
	if (!options)
		options = &defaults;
	return (struct prb_repr_options){
		.max_depth = options->max_depth ? options->max_depth : DEPTH,
		.max_items = options->max_items ? options->max_items : ITEMS,
		.max_text = options->max_text ? options->max_text : TEXT,
		.max_total = options->max_total ? options->max_total : TOTAL,
		.max_objects = options->max_objects,
		.objects_alone = options->objects_alone,
		.max_attributes = options->max_attributes ? options->max_attributes : ATTRIBUTES,
		.long_attributes = options->long_attributes,
		.whole = options->whole,
		.marked = options->marked,
		.secrets = options->secrets,
	};
}

void prb_repr_init(struct prb_repr *r, struct prb_python *py, struct prb_mem *mem,
		   const struct prb_repr_options *options, struct prb_str *out)
{
	*r = (struct prb_repr){
		.py = py,
		.mem = mem,
		.layout = &py->layout,
		.traits = prb_object_traits_find(py->layout.version),
	};
	prb_repr_again(r, options, out);
}

void prb_repr_again(struct prb_repr *r, const struct prb_repr_options *options, struct prb_str *out)
{
	r->max = limits(options);
	r->out = out;
	r->start = out ? out->length : 0;
	r->walked = 0;
	r->torn = false;
	r->level = r->depth = 0;
	if (r->types.count > TYPES_KEPT)
		prb_repr_deinit(r);
}

void prb_repr_deinit(struct prb_repr *r)
{
	struct prb_type **type;

	prb_vec_each (type, &r->types)
		free(*type);
	prb_vec_free(&r->types);
	memset(r->recent, 0, sizeof(r->recent));
}

/* Some room is kept for closing what is open and for counting what is left out. */
size_t prb_repr_room(const struct prb_repr *r)
{
	enum { RESERVE = 64 };
	size_t used = r->out->length - r->start;
	size_t usable = r->max.max_total - PRB_MIN(r->max.max_total / 4, (unsigned)RESERVE);

	return used < usable ? usable - used : 0;
}

bool prb_repr_enter(struct prb_repr *r, uint64_t object, const char *again)
{
	for (unsigned i = 0; i < r->depth; i++)
		if (r->nest[i] == object) {
			if (again)
				prb_str_puts(r->out, again);
			return false;
		}
	if (r->depth >= PRB_REPR_NEST) {
		prb_str_puts(r->out, "…");
		return false;
	}
	r->instances &= ~(UINT64_C(1) << r->depth);
	r->nest[r->depth++] = object;
	return true;
}

void prb_repr_leave(struct prb_repr *r)
{
	r->depth--;
}

bool prb_items_next(struct prb_items *items)
{
	struct prb_repr *r = items->r;

	if (items->done >= items->total)
		return false;
	if (items->done)
		prb_str_puts(r->out, ", ");
	if (items->done >= r->max.max_items || r->depth > r->max.max_depth || !prb_repr_room(r)) {
		prb_str_printf(r->out, "…+%llu", (unsigned long long)(items->total - items->done));
		return false;
	}
	items->done++;
	return true;
}

/* The most basic class of the MRO that has the same tp_repr: it defines it. */
static struct prb_error *find_repr_owner(struct prb_repr *r, const struct prb_type *type,
					 struct prb_type **ret)
{
	uint64_t mro[PRB_MRO_MAX];
	size_t count;

	PRB_TRY(prb_repr_mro(r, type, mro, &count));
	for (size_t i = count; i-- > 0;) {
		PRB_TRY(prb_repr_nameless_type(r, mro[i], ret));
		if ((*ret)->repr == type->repr)
			return prb_repr_type(r, mro[i], ret);
	}
	return prb_repr_bad(type->address, "a type without itself in its MRO");
}

static struct prb_error *find_handler(struct prb_repr *r, struct prb_type *type)
{
	prb_repr_handler *handler;
	struct prb_type *owner;
	uint64_t function;

	type->handler = prb_repr_handle_default;
	if (!type->mro) /* it was never made ready */
		return NULL;
	PRB_TRY(find_repr_owner(r, type, &owner));
	if (owner->flags & PRB_PY_HEAP_TYPE) {
		struct prb_error *err = prb_repr_lookup(r, type, "__repr__", &function, &owner);

		if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			return NULL;
		PRB_TRY(err);
		if (prb_repr_is(r, function, "function")) {
			PRB_TRY(prb_repr_python_handler(r, owner, function, &handler));
			if (handler)
				type->handler = handler;
			return NULL;
		}
	}
	handler = prb_repr_c_handler(owner->name);
	if (!handler && owner->flags & PRB_PY_TUPLE)
		handler = prb_repr_handle_structseq;
	if (handler)
		type->handler = handler;
	return NULL;
}

static struct prb_error *resolve(struct prb_repr *r, struct prb_type *type)
{
	struct prb_type *base = NULL;
	prb_repr_handler *own;

	PRB_TRY(find_handler(r, type));
	if (type->handler != prb_repr_handle_default || type->flags & PRB_PY_TYPE)
		return NULL;
	own = prb_repr_silent_handler(type);
	if (!own && type->base)
		PRB_TRY(prb_repr_type(r, type->base, &base));
	if (base)
		own = prb_repr_silent_handler(base);
	if (own)
		type->handler = own;
	/* Whatever their own text would be: these have values that are no attributes. */
	else if (prb_repr_c_kind(r, type) != PRB_C_NONE)
		type->handler = prb_repr_handle_c_value;
	return NULL;
}

static struct prb_error *print(struct prb_repr *r, uint64_t object)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	if (prb_repr_hides_all(r, type))
		return prb_repr_put_hidden(r, object, type);
	if (!type->handler)
		PRB_TRY(resolve(r, type));

	prb_repr_handler *handler = type->handler;

	if (r->max.whole && prb_repr_is_derived(r, type))
		handler = prb_repr_handle_default;
	if (!r->max.marked || !prb_repr_is_custom(r, type))
		return handler(r, object, type);
	prb_custom_begin(r->out, object, type->address);

	struct prb_error *err = handler(r, object, type);
	prb_custom_end(r->out);
	return err;
}

struct prb_error *prb_repr_object(struct prb_repr *r, uint64_t object)
{
	size_t start = r->out->length;
	unsigned depth = r->depth;

	if (!object) {
		prb_str_puts(r->out, "<NULL>");
		return NULL;
	}
	if (r->level >= PRB_REPR_NEST) {
		prb_str_puts(r->out, "…");
		return NULL;
	}
	r->level++;

	struct prb_error *err = print(r, object);

	r->level--;
	r->depth = depth;
	if (prb_error_catch(&err, PRB_ERROR_FAULT) || prb_error_catch(&err, PRB_ERROR_BAD_DATA) ||
	    prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) {
		prb_str_truncate(r->out, start);
		prb_str_printf(r->out, "<unreadable at %#llx>", (unsigned long long)object);
	}
	return err;
}

void prb_repr_cut(struct prb_repr *r)
{
	size_t end = r->start + r->max.max_total;

	if (r->out->failed || r->out->length <= end)
		return;
	while (end > r->start && (r->out->data[end] & 0xc0) == 0x80)
		end--;
	prb_str_truncate(r->out, end);
	prb_str_puts(r->out, "…");
}

static struct prb_error *put_repr(struct prb_repr *r, uint64_t object)
{
	PRB_TRY(prb_repr_object(r, object));
	prb_repr_cut(r);
	return r->out->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *put_type_name(struct prb_repr *r, uint64_t object)
{
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	PRB_TRY(prb_repr_put_name(r, type));
	return r->out->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_object_repr(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				  const struct prb_repr_options *options, struct prb_str *ret)
{
	prb_auto_repr struct prb_repr r;

	prb_repr_init(&r, py, mem, options, ret);
	return put_repr(&r, object);
}

struct prb_error *prb_object_type_name(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				       struct prb_str *ret)
{
	prb_auto_repr struct prb_repr r;

	prb_repr_init(&r, py, mem, NULL, ret);
	return put_type_name(&r, object);
}

struct prb_error *prb_objects_create(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_repr_options *options,
				     struct prb_objects **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return prb_error_nomem();
	(*ret)->options = options ? *options : defaults;
	prb_repr_init(&(*ret)->repr, py, mem, NULL, NULL);
	return NULL;
}

void prb_objects_destroy(struct prb_objects *objects)
{
	if (objects)
		prb_repr_deinit(&objects->repr);
	free(objects);
}

struct prb_error *prb_objects_repr(struct prb_objects *objects, uint64_t object,
				   struct prb_str *ret)
{
	prb_repr_again(&objects->repr, &objects->options, ret);
	return put_repr(&objects->repr, object);
}

struct prb_error *prb_objects_type_name(struct prb_objects *objects, uint64_t object,
					struct prb_str *ret)
{
	prb_repr_again(&objects->repr, NULL, ret);
	return put_type_name(&objects->repr, object);
}

static struct prb_error *read_number(struct prb_repr *r, uint64_t object,
				     const struct prb_type *type, struct prb_object_number *ret)
{
	struct prb_error *err = NULL;
	uint64_t bits;

	if (type->flags & PRB_PY_INT) {
		err = prb_repr_int(r, object, &ret->integer);
		if (!err)
			ret->kind = PRB_NUMBER_INTEGER;
	} else if (prb_type_is(type, "float")) {
		PRB_TRY(prb_repr_member(r, object, 0, &bits));
		memcpy(&ret->real, &bits, sizeof(bits));
		ret->kind = PRB_NUMBER_REAL;
	}
	/* One that does not fit. */
	prb_error_catch(&err, PRB_ERROR_BAD_DATA);
	return err;
}

struct prb_error *prb_objects_begin(struct prb_objects *objects, uint64_t object,
				    struct prb_repr **ret, struct prb_type **type)
{
	*ret = &objects->repr;
	prb_repr_again(*ret, NULL, NULL);
	PRB_TRY(prb_repr_type_of(*ret, object, type));
	return (*type)->handler ? NULL : resolve(*ret, *type);
}

struct prb_error *prb_objects_number(struct prb_objects *objects, uint64_t object,
				     struct prb_object_number *ret)
{
	struct prb_repr *r = &objects->repr;
	struct prb_type *type;

	*ret = (struct prb_object_number){};
	prb_repr_again(r, NULL, NULL);
	PRB_TRY(prb_repr_type_of(r, object, &type));
	ret->type = type->address;
	if (!(type->flags & PRB_PY_HEAP_TYPE))
		return read_number(r, object, type, ret);
	if (strcmp(type->name, "Tensor") != 0 && strcmp(type->name, "Parameter") != 0)
		return NULL;
	if (!type->handler)
		PRB_TRY(resolve(r, type));
	return type->handler == prb_repr_handle_tensor ? prb_repr_tensor_number(r, object, ret)
						       : NULL;
}
