/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/decode.h"

#include <string.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/pool.h"
#include "dwarf/cpython/lines.h"
#include "dwarf/cpython/object.h"

struct known_code {
	uint64_t address;
	const char *name, *qualname, *file; /* the pool's, like `module` */
	const char *module; /* __name__ of the globals it was first met with, or NULL */
	char *error;
	bool located; /* `location` is that of `position`, where it was met last */
	int64_t position;
	struct prb_py_location location;
};

struct prb_decoder {
	struct prb_python *py;
	struct prb_mem *mem;
	const struct prb_dump_options *options;
	struct prb_pool *pool;
	PRB_VEC(struct known_code) codes;
	uint32_t *table; /* index + 1 into codes; open addressing */
	size_t table_size;
};

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
	*ret = decoder;
	return NULL;
}

void prb_decoder_destroy(struct prb_decoder *decoder)
{
	struct known_code *known;

	if (!decoder)
		return;
	prb_vec_each (known, &decoder->codes)
		free(known->error);
	prb_vec_free(&decoder->codes);
	free(decoder->table);
	free(decoder);
}

static size_t slot_of(const struct prb_decoder *d, uint64_t address)
{
	size_t slot = (size_t)(address * 0x9e3779b97f4a7c15u >> 24) & (d->table_size - 1);

	while (d->table[slot] && d->codes.items[d->table[slot] - 1].address != address)
		slot = (slot + 1) & (d->table_size - 1);
	return slot;
}

static bool grow_table(struct prb_decoder *d)
{
	if (d->codes.count * 2 < d->table_size)
		return true;

	uint32_t *old = d->table;
	size_t old_size = d->table_size;
	d->table_size = old_size ? old_size * 2 : 128;
	d->table = calloc(d->table_size, sizeof(*d->table));
	if (!d->table) {
		d->table = old;
		d->table_size = old_size;
		return false;
	}
	for (size_t i = 0; i < d->codes.count; i++)
		d->table[slot_of(d, d->codes.items[i].address)] = (uint32_t)i + 1;
	free(old);
	return true;
}

/* A name that cannot be found out is none; what concerns ourselves is an error. */
static struct prb_error *optional(struct prb_error *err)
{
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

/* An error becomes that of a frame or code; only what concerns ourselves goes further. */
static struct prb_error *keep_error(struct prb_error *err, char **ret)
{
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	if (!*ret)
		*ret = strdup(err->message);
	prb_error_destroy(err);
	return *ret ? NULL : prb_error_nomem();
}

/* The name of the module whose globals the frame has, or NULL. */
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

/* Before 3.11 only a frame can tell the qualified name of its code. */
static struct prb_error *read_names(struct prb_decoder *d, const struct prb_py_frame *raw,
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
	prb_py_code_deinit(&code);
	PRB_TRY(err);
	return read_module(d, raw, &known->module);
}

static struct prb_error *look_up(struct prb_decoder *d, const struct prb_py_frame *raw,
				 struct known_code **ret)
{
	if (!grow_table(d))
		return prb_error_nomem();

	size_t slot = slot_of(d, raw->code);
	if (!d->table[slot]) {
		struct known_code *known = prb_vec_push(&d->codes);

		if (!known)
			return prb_error_nomem();
		known->address = raw->code;
		d->table[slot] = (uint32_t)d->codes.count;
		PRB_TRY(read_names(d, raw, known));
	}
	*ret = &d->codes.items[d->table[slot] - 1];
	return NULL;
}

static struct prb_error *add_local(struct prb_decoder *d, const struct prb_py_local *local,
				   struct prb_dump_frame *frame)
{
	struct prb_dump_local *slot = prb_vec_push(&frame->locals);
	prb_auto_str struct prb_str value = {}, type = {};

	if (!slot)
		return prb_error_nomem();
	slot->kind = local->kind;
	PRB_TRY(prb_pool_share(d->pool, local->name, &slot->name));
	if (!local->object)
		return NULL;
	PRB_TRY(keep_error(prb_object_repr(d->py, d->mem, local->object, NULL, &value),
			   &frame->error));
	PRB_TRY(keep_error(prb_object_type_name(d->py, d->mem, local->object, &type),
			   &frame->error));
	slot->value = prb_str_take(&value);
	if (!slot->value || type.failed)
		return prb_error_nomem();
	return prb_pool_share(d->pool, prb_str_text(&type), &slot->type);
}

static struct prb_error *decode_locals(struct prb_decoder *d, const struct prb_py_frame *raw,
				       struct prb_dump_frame *frame)
{
	struct prb_py_locals locals;
	struct prb_py_local *local;
	struct prb_error *err = prb_python_locals(d->py, d->mem, raw, &locals);

	if (err)
		return keep_error(err, &frame->error);
	prb_vec_each (local, &locals.list) {
		err = add_local(d, local, frame);
		if (err)
			break;
	}
	prb_py_locals_deinit(&locals);
	return err;
}

/* Recursion and threads that do the same stand at the same position. */
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
	PRB_TRY(keep_error(decode_position(d, raw, known, frame), &frame->error));
	return d->options->locals ? decode_locals(d, raw, frame) : NULL;
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

void prb_dump_frame_deinit(struct prb_dump_frame *frame)
{
	struct prb_dump_local *local;

	prb_vec_each (local, &frame->locals)
		free(local->value);
	prb_vec_free(&frame->locals);
	free(frame->source);
	free(frame->error);
}

void prb_dump_frames_clear(struct prb_dump_thread *thread)
{
	struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		prb_dump_frame_deinit(frame);
	prb_vec_free(&thread->frames);
}
