/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/locals.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "python/repr/core/repr.h"

/* A program may have as many objects as it likes; those met first are shared most. */
enum { VALUES_KEPT = 65536 };

static const struct prb_repr_options usual = {.max_objects = 1};

struct known_value {
	char *text;
	const char *type; /* the pool's */
};

struct prb_local_decoder {
	struct prb_python *py;
	struct prb_mem *mem;
	struct prb_pool *pool;
	bool no_values;
	struct prb_objects *objects;
	PRB_VEC(struct known_value) values;
	struct prb_number_map numbers; /* of them, by addresses */
};

struct prb_error *prb_local_decoder_create(struct prb_python *py, struct prb_mem *mem,
					   const struct prb_dump_options *options,
					   struct prb_pool *pool, struct prb_local_decoder **ret)
{
	struct prb_local_decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return prb_error_nomem();
	*decoder = (struct prb_local_decoder){
		.py = py, .mem = mem, .pool = pool, .no_values = options->no_values};

	struct prb_repr_options marked = options->values ? *options->values : usual;

	marked.marked = true;

	struct prb_error *err = prb_objects_create(py, mem, &marked, &decoder->objects);
	if (err)
		prb_local_decoder_destroy(decoder);
	else
		*ret = decoder;
	return err;
}

void prb_local_decoder_destroy(struct prb_local_decoder *decoder)
{
	struct known_value *value;

	if (!decoder)
		return;
	prb_vec_each (value, &decoder->values)
		free(value->text);
	prb_vec_free(&decoder->values);
	prb_number_map_deinit(&decoder->numbers);
	prb_objects_destroy(decoder->objects);
	free(decoder);
}

struct prb_error *prb_decode_keep_error(struct prb_error *err, char **ret)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	if (!*ret)
		*ret = strdup(err->message);
	prb_error_destroy(err);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *remember(struct prb_local_decoder *d, uint64_t object,
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
	return known->text && prb_number_map_put(&d->numbers, object, d->values.count - 1)
		       ? NULL
		       : prb_error_nomem();
}

static struct prb_error *read_value(struct prb_local_decoder *d, uint64_t object,
				    struct prb_dump_local *local, char **error)
{
	prb_auto_str struct prb_str value = {}, type = {};
	prb_auto_free char *mine = NULL;

	PRB_TRY(prb_decode_keep_error(prb_objects_repr(d->objects, object, &value), &mine));
	PRB_TRY(prb_decode_keep_error(prb_objects_type_name(d->objects, object, &type), &mine));
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

/* What cannot be read has no class; without the text, nothing else would say so. */
static struct prb_error *read_number(struct prb_local_decoder *d, struct prb_dump_local *local,
				     char **error)
{
	struct prb_object_number number;
	struct prb_error *err = prb_objects_number(d->objects, local->address, &number);

	if (err)
		return prb_decode_keep_error(err, error);
	local->type_address = number.type;
	local->number = number.kind;
	if (number.kind == PRB_NUMBER_REAL)
		local->real = number.real;
	else
		local->integer = number.integer;
	return NULL;
}

static struct prb_error *add_local(struct prb_local_decoder *d, const struct prb_py_local *local,
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
	if (d->no_values)
		return NULL;
	if (!prb_number_map_get(&d->numbers, local->object, &number))
		return read_value(d, local->object, slot, &frame->error);
	slot->type = d->values.items[number].type;
	return prb_str_copy(d->values.items[number].text, &slot->value);
}

struct prb_error *prb_local_decode(struct prb_local_decoder *d, const struct prb_py_frame *raw,
				   const struct prb_py_variables *variables,
				   struct prb_dump_frame *frame)
{
	const struct prb_py_local *local;
	struct prb_py_locals locals;
	struct prb_error *err = prb_python_values(d->py, d->mem, raw, variables, &locals);

	if (err)
		return prb_decode_keep_error(err, &frame->error);
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
