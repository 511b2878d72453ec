/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frames, generators and coroutines, with the place in the source. */
#include <string.h>

#include "base/cleanup.h"
#include "python/repr/builtin/coroutine.h"
#include "python/repr/core/handlers.h"

static void code_guard(struct prb_py_code *code)
{
	prb_py_code_deinit(code);
}

#define auto_code __attribute__((cleanup(code_guard))) struct prb_py_code

/* Its file by its last part, as dumps show it. */
static struct prb_error *put_place(struct prb_repr *r, const struct prb_py_frame *frame)
{
	auto_code code = {};
	struct prb_py_location at;
	const char *slash;

	PRB_TRY(prb_python_code(r->py, r->mem, frame->code, &code));
	PRB_TRY(prb_python_location(r->py, r->mem, frame, &at));
	slash = code.file ? strrchr(code.file, '/') : NULL;
	prb_str_puts(r->out, slash ? slash + 1 : code.file ? code.file : "?");
	if (at.line > 0)
		prb_str_printf(r->out, ":%d", at.line);
	return NULL;
}

struct prb_error *prb_repr_put_suspension(struct prb_repr *r, uint64_t object)
{
	static const char *const states[] = {
		[PRB_COROUTINE_CREATED] = ", not started",
		[PRB_COROUTINE_AWAITING] = ", awaits at ",
		[PRB_COROUTINE_YIELDED] = ", suspended at ",
		[PRB_COROUTINE_RUNNING] = ", running at ",
		[PRB_COROUTINE_FINISHED] = ", finished",
	};
	struct prb_coroutine coroutine = {.object = object};
	uint64_t awaited;
	struct prb_error *err = prb_coroutine_read(r, &coroutine, &awaited);

	/* Where the layout is not known, its name and address are all there is. */
	if (prb_error_catch(&err, PRB_ERROR_UNSUPPORTED))
		return NULL;
	PRB_TRY(err);
	prb_str_puts(r->out, states[coroutine.state]);
	if (coroutine.state == PRB_COROUTINE_CREATED || coroutine.state == PRB_COROUTINE_FINISHED)
		return NULL;
	return put_place(r, &coroutine.frame);
}

/* Up to 3.10 the object is the frame; then it points to it, behind the frame that it came from. */
static struct prb_error *open_frame(struct prb_repr *r, uint64_t object, struct prb_py_frame *ret)
{
	uint64_t address = object;

	if (r->layout->behaviour->chain != PRB_CHAIN_PYFRAME)
		PRB_TRY(prb_repr_member(r, object, 1, &address));
	return prb_python_frame_at(r->py, r->mem, address, ret);
}

struct prb_error *prb_repr_frame_of(struct prb_repr *r, uint64_t object, struct prb_py_frame *ret,
				    bool *found)
{
	struct prb_coroutine coroutine = {.object = object};
	struct prb_type *type;
	uint64_t awaited;

	*found = false;
	PRB_TRY(prb_repr_type_of(r, object, &type));
	if (prb_type_is(type, "frame")) {
		PRB_TRY(open_frame(r, object, ret));
		*found = true;
		return NULL;
	}
	if (!prb_coroutine_is(type))
		return NULL;

	struct prb_error *err = prb_coroutine_read(r, &coroutine, &awaited);

	*found = !err && coroutine.state != PRB_COROUTINE_FINISHED;
	*ret = coroutine.frame;
	return prb_error_catch(&err, PRB_ERROR_UNSUPPORTED) ? NULL : err;
}

struct prb_error *prb_repr_put_frame(struct prb_repr *r, const struct prb_py_frame *frame,
				     const char *name, uint64_t object)
{
	auto_code code = {};
	struct prb_py_location at;
	uint64_t file;

	PRB_TRY(prb_python_code(r->py, r->mem, frame->code, &code));
	PRB_TRY(prb_python_location(r->py, r->mem, frame, &at));
	PRB_TRY(prb_repr_word(r, frame->code + (uint64_t)r->layout->code_filename, &file));
	prb_str_printf(r->out, "<%s at %#llx, file ", name, (unsigned long long)object);
	PRB_TRY(prb_repr_object(r, file));
	prb_str_printf(r->out, ", line %d, code %s>", at.line, code.name ? code.name : "?");
	return NULL;
}

struct prb_error *prb_repr_handle_frame(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	struct prb_py_frame frame;

	PRB_TRY(open_frame(r, object, &frame));
	PRB_TRY(prb_repr_put_frame(r, &frame, type->name, object));
	if (!r->max.whole || r->out->failed)
		return NULL;
	prb_str_truncate(r->out, r->out->length - 1);
	PRB_TRY(prb_repr_put_variables(r, object));
	prb_str_putc(r->out, '>');
	return NULL;
}
