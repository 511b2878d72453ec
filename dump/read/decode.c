/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/decode.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/pool.h"
#include "python/frames/lines.h"
#include "python/repr/core/repr.h"

struct known_code {
	uint64_t address;
	const char *name, *qualname, *file; /* the pool's, like `module` */
	const char *module; /* __name__ of the globals of its first frame, or NULL */
	char *error;
	struct prb_py_variables variables; /* if locals are requested */
	char *variables_error;
	bool located; /* `location` belongs to `position`, the last one looked up */
	int64_t position;
	struct prb_py_location location;
};

/* Bounds the cache: a program may have any number of objects. */
enum { VALUES_KEPT = 65536 };

/*
 * Cache of values: many frames share objects, such as the `self` of methods that call each other.
 * Each object is read once.
 */
struct known_value {
	char *text;
	const char *type; /* the pool's */
};

struct prb_decoder {
	struct prb_python *py;
	struct prb_mem *mem;
	const struct prb_dump_options *options;
	struct prb_pool *pool;
	PRB_VEC(struct known_code) codes;
	struct prb_number_map numbers; /* of `list`, by address */
	struct prb_objects *objects;   /* NULL: variables are not requested */
	PRB_VEC(struct known_value) values;
	struct prb_number_map value_numbers; /* the same */
};

static struct prb_error *create_objects(struct prb_decoder *d)
{
	const struct prb_dump_options *o = d->options;
	struct prb_repr_options marked =
		o->values ? *o->values : (struct prb_repr_options){.max_objects = 1};

	marked.marked = true;
	return prb_objects_create(d->py, d->mem, &marked, &d->objects);
}

struct prb_error *prb_decoder_create(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_dump_options *options, struct prb_pool *pool,
				     struct prb_decoder **ret)
{
	struct prb_decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return prb_error_nomem();
	decoder->py = py;
	decoder->mem = mem;
	decoder->options = options;
	decoder->pool = pool;

	struct prb_error *err = options->locals ? create_objects(decoder) : NULL;
	if (err)
		prb_decoder_destroy(decoder);
	else
		*ret = decoder;
	return err;
}

void prb_decoder_destroy(struct prb_decoder *decoder)
{
	struct known_code *known;
	struct known_value *value;

	if (!decoder)
		return;
	prb_vec_each (known, &decoder->codes) {
		free(known->error);
		prb_py_variables_deinit(&known->variables);
		free(known->variables_error);
	}
	prb_vec_free(&decoder->codes);
	prb_number_map_deinit(&decoder->numbers);
	prb_vec_each (value, &decoder->values)
		free(value->text);
	prb_vec_free(&decoder->values);
	prb_number_map_deinit(&decoder->value_numbers);
	prb_objects_destroy(decoder->objects);
	free(decoder);
}

/* Keeps the error of a frame or code as its text; only out of memory goes further. */
static struct prb_error *keep_error(struct prb_error *err, char **ret)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	if (!*ret)
		*ret = strdup(err->message);
	prb_error_destroy(err);
	return *ret ? NULL : prb_error_nomem();
}

/* A name that cannot be read is NULL; only out of memory goes further. */
static struct prb_error *optional(struct prb_error *err)
{
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

/* Name of the frame's globals' module, or NULL. */
static struct prb_error *read_module(struct prb_decoder *d, const struct prb_py_frame *raw,
				     const char **ret)
{
	prb_auto_free char *name = NULL;
	uint64_t globals;
	struct prb_error *err = prb_python_globals(d->py, d->mem, raw, &globals);

	if (!err)
		err = prb_python_module_name(d->py, d->mem, globals, &name);
	PRB_TRY(optional(err));
	return prb_pool_share(d->pool, name, ret);
}

static struct prb_error *share_names(struct prb_decoder *d, const struct prb_py_code *code,
				     struct known_code *known)
{
	PRB_TRY(prb_pool_share(d->pool, code->name, &known->name));
	PRB_TRY(prb_pool_share(d->pool, code->qualname, &known->qualname));
	return prb_pool_share(d->pool, code->file, &known->file);
}

static struct prb_error *read_variables(struct prb_decoder *d, const struct prb_py_code *code,
					struct known_code *known)
{
	if (!d->objects)
		return NULL;
	return keep_error(
		prb_python_variables(d->py, d->mem, known->address, code, &known->variables),
		&known->variables_error);
}

/* Before 3.11 only a frame has the qualified name of its code. */
static struct prb_error *read_code(struct prb_decoder *d, const struct prb_py_frame *raw,
				   struct known_code *known)
{
	struct prb_py_code code;
	struct prb_error *err = prb_python_code(d->py, d->mem, known->address, &code);

	if (err)
		return keep_error(err, &known->error);
	if (!code.qualname)
		err = optional(prb_python_qualname(d->py, d->mem, raw, &code, &code.qualname));
	if (!err)
		err = share_names(d, &code, known);
	if (!err)
		err = read_variables(d, &code, known);
	prb_py_code_deinit(&code);
	PRB_TRY(err);
	return d->options->no_modules ? NULL : read_module(d, raw, &known->module);
}

static struct prb_error *look_up(struct prb_decoder *d, const struct prb_py_frame *raw,
				 struct known_code **ret)
{
	size_t number;

	if (!prb_number_map_get(&d->numbers, raw->code, &number)) {
		struct known_code *known = prb_vec_push(&d->codes);

		number = d->codes.count - 1;
		if (!known || !prb_number_map_put(&d->numbers, raw->code, number))
			return prb_error_nomem();
		known->address = raw->code;
		PRB_TRY(read_code(d, raw, known));
	}
	*ret = &d->codes.items[number];
	return NULL;
}

/* Caches the last location: recursion and similar threads are at the same position. */
static struct prb_error *locate(struct prb_decoder *d, const struct prb_py_frame *raw,
				int64_t position, struct known_code *known)
{
	if (known->located && known->position == position)
		return NULL;
	known->located = false;
	PRB_TRY(prb_python_location(d->py, d->mem, raw, &known->location));
	known->position = position;
	known->located = true;
	return NULL;
}

static struct prb_error *decode_position(struct prb_decoder *d, const struct prb_py_frame *raw,
					 struct known_code *known, struct prb_dump_frame *frame)
{
	int64_t position;

	PRB_TRY(prb_python_position(d->py, d->mem, raw, &position));
	PRB_TRY(locate(d, raw, position, known));
	frame->ip = position < 0 ? 0 : (uint64_t)position;
	frame->line = known->location.line;
	frame->end_line = known->location.end_line;
	frame->col = known->location.col;
	frame->end_col = known->location.end_col;
	return NULL;
}

static struct prb_error *remember(struct prb_decoder *d, uint64_t object,
				  const struct prb_dump_local *local)
{
	struct known_value *known;

	if (d->values.count >= VALUES_KEPT)
		return NULL;
	known = prb_vec_push(&d->values);
	if (!known)
		return prb_error_nomem();
	known->type = local->type;
	known->text = strdup(local->value);
	return known->text && prb_number_map_put(&d->value_numbers, object, d->values.count - 1)
		       ? NULL
		       : prb_error_nomem();
}

static struct prb_error *read_value(struct prb_decoder *d, uint64_t object,
				    struct prb_dump_local *local, char **error)
{
	prb_auto_str struct prb_str value = {}, type = {};
	prb_auto_free char *mine = NULL;

	PRB_TRY(keep_error(prb_objects_repr(d->objects, object, &value), &mine));
	PRB_TRY(keep_error(prb_objects_type_name(d->objects, object, &type), &mine));
	local->value = prb_str_take(&value);
	if (!local->value || type.failed)
		return prb_error_nomem();
	PRB_TRY(prb_pool_share(d->pool, prb_str_text(&type), &local->type));
	if (!mine)
		return remember(d, object, local);
	if (!*error)
		*error = prb_steal(&mine);
	return NULL;
}

/* An unreadable value has no class; without the text nothing would show that. */
static struct prb_error *read_number(struct prb_decoder *d, struct prb_dump_local *local,
				     char **error)
{
	struct prb_object_number number;
	struct prb_error *err = prb_objects_number(d->objects, local->address, &number);

	if (err)
		return keep_error(err, error);
	local->type_address = number.type;
	local->number = number.kind;
	if (number.kind == PRB_NUMBER_REAL)
		local->real = number.real;
	else
		local->integer = number.integer;
	return NULL;
}

static struct prb_error *add_local(struct prb_decoder *d, const struct prb_py_local *local,
				   struct prb_dump_frame *frame)
{
	struct prb_dump_local *slot = prb_vec_push(&frame->locals);
	size_t number;

	if (!slot)
		return prb_error_nomem();
	slot->kind = local->kind;
	slot->address = local->object;
	PRB_TRY(prb_pool_share(d->pool, local->name, &slot->name));
	if (!local->object)
		return NULL;
	PRB_TRY(read_number(d, slot, &frame->error));
	if (d->options->no_values)
		return NULL;
	if (!prb_number_map_get(&d->value_numbers, local->object, &number))
		return read_value(d, local->object, slot, &frame->error);
	slot->type = d->values.items[number].type;
	return prb_str_copy(d->values.items[number].text, &slot->value);
}

static struct prb_error *decode_locals(struct prb_decoder *d, const struct prb_py_frame *raw,
				       const struct prb_py_variables *variables,
				       struct prb_dump_frame *frame)
{
	const struct prb_py_local *local;
	struct prb_py_locals locals;
	struct prb_error *err = prb_python_values(d->py, d->mem, raw, variables, &locals);

	if (err)
		return keep_error(err, &frame->error);
	if (!prb_vec_reserve(&frame->locals, locals.list.count))
		err = prb_error_nomem();
	prb_vec_each (local, &locals.list) {
		if (err)
			break;
		err = add_local(d, local, frame);
	}
	prb_py_locals_deinit(&locals);
	return err;
}

static struct prb_error *decode_frame(struct prb_decoder *d, const struct prb_py_frame *raw,
				      struct prb_dump_frame *frame)
{
	struct known_code *known;

	frame->kind = PRB_FRAME_PYTHON;
	frame->line = frame->end_line = frame->col = frame->end_col = -1;
	PRB_TRY(look_up(d, raw, &known));
	if (known->error)
		return prb_str_copy(known->error, &frame->error);
	frame->func = known->name;
	frame->qualname = known->qualname;
	frame->file = known->file;
	frame->module = known->module;
	frame->code = raw->code;
	PRB_TRY(keep_error(decode_position(d, raw, known, frame), &frame->error));
	if (!d->objects)
		return NULL;
	if (known->variables_error)
		return frame->error ? NULL : prb_str_copy(known->variables_error, &frame->error);
	return decode_locals(d, raw, &known->variables, frame);
}

struct prb_error *prb_decode_frames(struct prb_decoder *decoder, const struct prb_py_frames *frames,
				    struct prb_dump_thread *thread)
{
	const struct prb_py_frame *raw;
	unsigned limit = decoder->options->max_frames;

	prb_vec_each (raw, &frames->list) {
		if (raw->hidden)
			continue;
		if (limit && thread->frames.count >= limit)
			break;

		struct prb_dump_frame *frame = prb_vec_push(&thread->frames);
		if (!frame)
			return prb_error_nomem();
		PRB_TRY(decode_frame(decoder, raw, frame));
	}
	return NULL;
}
