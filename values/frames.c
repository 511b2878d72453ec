/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The frame of a generator, a coroutine or a frame object, its variables, and what it awaits. From
 * 3.11 on a generator's frame is no object unless it was requested, so the frame is read directly.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/builtin/coroutine.h"
#include "values/expression_private.h"

/* Attributes of generators, coroutines and asynchronous generators, without "gi_", "cr_", "ag_". */
static bool is_of_generator(const struct prb_type *type, const char *name, const char *attribute)
{
	const char *prefix = prb_type_is(type, "generator")   ? "gi_"
			     : prb_type_is(type, "coroutine") ? "cr_"
							      : "ag_";

	return !strncmp(name, prefix, 3) && !strcmp(name + 3, attribute);
}

static void give(struct prb_search *s, const char *type, const char *text)
{
	s->object = 0;
	s->view = PRB_SEARCH_OBJECT;
	s->type = type;
	prb_str_puts(&s->value, text);
}

static void give_object(struct prb_search *s, uint64_t object)
{
	if (!object)
		return give(s, "NoneType", "None");
	s->object = object;
	s->view = PRB_SEARCH_OBJECT;
}

static struct prb_error *of_generator(struct prb_search *s, const struct prb_type *type,
				      const char *name, bool *ret)
{
	bool frame = is_of_generator(type, name, "frame");
	bool running = is_of_generator(type, name, "running");
	bool code = is_of_generator(type, name, "code");
	struct prb_coroutine coroutine = {.object = s->object};
	uint64_t awaited;

	if (s->r->layout->behaviour->chain == PRB_CHAIN_PYFRAME && (frame || code))
		return NULL;
	if (!frame && !running && !code && !is_of_generator(type, name, "await") &&
	    !is_of_generator(type, name, "yieldfrom"))
		return NULL;

	struct prb_error *err = prb_coroutine_read(s->r, &coroutine, &awaited);
	bool finished = !err && coroutine.state == PRB_COROUTINE_FINISHED;

	/* Up to 3.10 the frame is an object, and these are fields. */
	if (prb_error_catch(&err, PRB_ERROR_UNSUPPORTED) || (code && finished))
		return NULL;
	PRB_TRY(err);
	*ret = true;
	if (code)
		give_object(s, coroutine.frame.code);
	else if (running)
		give(s, "bool", coroutine.state == PRB_COROUTINE_RUNNING ? "True" : "False");
	else if (!frame)
		give_object(s, awaited);
	else if (finished)
		give(s, "NoneType", "None");
	else
		s->view = PRB_SEARCH_FRAME;
	return NULL;
}

static struct prb_error *find_frame(struct prb_search *s, struct prb_py_frame *ret)
{
	bool found;

	PRB_TRY(prb_repr_frame_of(s->r, s->object, ret, &found));
	return found ? NULL : prb_repr_bad(s->object, "a frame that has ended");
}

static struct prb_error *of_frame(struct prb_search *s, const char *name, bool *ret)
{
	prb_auto_str struct prb_str number = {};
	struct prb_py_location at;
	struct prb_py_frame frame;
	uint64_t globals;

	*ret = true;
	if (!strcmp(name, "f_locals")) {
		s->view = PRB_SEARCH_VARIABLES;
		return NULL;
	}
	PRB_TRY(find_frame(s, &frame));
	if (!strcmp(name, "f_code")) {
		give_object(s, frame.code);
	} else if (!strcmp(name, "f_globals")) {
		PRB_TRY(prb_python_globals(s->r->py, s->r->mem, &frame, &globals));
		give_object(s, globals);
	} else if (!strcmp(name, "f_lineno")) {
		PRB_TRY(prb_python_location(s->r->py, s->r->mem, &frame, &at));
		prb_str_printf(&number, "%d", at.line);
		give(s, at.line > 0 ? "int" : "NoneType",
		     at.line > 0 ? prb_str_text(&number) : "None");
	} else {
		*ret = false;
	}
	return NULL;
}

struct prb_error *prb_search_of_frame(struct prb_search *s, const char *name, bool *ret)
{
	struct prb_type *type;

	*ret = false;
	PRB_TRY(prb_repr_type_of(s->r, s->object, &type));
	if (s->view == PRB_SEARCH_FRAME || prb_type_is(type, "frame")) {
		PRB_TRY(s->view == PRB_SEARCH_VARIABLES ? prb_search_end_view(s, true) : NULL);
		PRB_TRY(of_frame(s, name, ret));
		return *ret ? NULL : prb_search_end_view(s, true);
	}
	PRB_TRY(prb_search_end_view(s, true));
	return prb_coroutine_is(type) ? of_generator(s, type, name, ret) : NULL;
}

struct prb_error *prb_search_variable(struct prb_search *s, const char *name)
{
	const struct prb_py_local *local;
	struct prb_py_locals locals;
	struct prb_py_frame frame;
	uint64_t found = 0;

	PRB_TRY(find_frame(s, &frame));
	PRB_TRY(prb_python_locals(s->r->py, s->r->mem, &frame, &locals));
	prb_vec_each (local, &locals.list)
		if (!strcmp(local->name, name))
			found = local->object;
	prb_py_locals_deinit(&locals);
	if (!found)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%.*s has no such key", s->looked_into,
					s->from);
	give_object(s, found);
	return NULL;
}

static struct prb_error *put_variables(struct prb_search *s, const struct prb_py_locals *locals)
{
	struct prb_items items = {.r = s->r};
	const struct prb_py_local *local;

	prb_vec_each (local, &locals->list)
		items.total += local->object != 0;
	prb_search_begin_text(s, "dict");
	prb_str_putc(s->r->out, '{');
	prb_vec_each (local, &locals->list) {
		prb_auto_str struct prb_str name = {};

		if (!local->object)
			continue;
		if (!prb_items_next(&items))
			break;
		prb_str_puts(&name, local->name);
		PRB_TRY(prb_repr_quote_raw(s->r, &name));
		prb_str_puts(s->r->out, ": ");
		PRB_TRY(prb_repr_object(s->r, local->object));
	}
	prb_str_putc(s->r->out, '}');
	prb_repr_cut(s->r);
	return NULL;
}

struct prb_error *prb_search_end_view(struct prb_search *s, bool more)
{
	struct prb_py_locals locals;
	struct prb_py_frame frame;
	enum prb_search_view view = s->view;

	if (view == PRB_SEARCH_OBJECT)
		return NULL;
	if (view == PRB_SEARCH_ARRAY && more)
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"%.*s is a part of an array, of which only items by their "
					"number can be looked up",
					s->looked_into, s->from);
	if (view == PRB_SEARCH_ARRAY) {
		s->view = PRB_SEARCH_OBJECT;
		prb_search_begin_text(s, "ndarray");
		return prb_ndarray_put(s->r, &s->array);
	}
	if (more)
		return prb_error_create(
			PRB_ERROR_NOT_FOUND, "%.*s is a %s, of which only %s can be looked up",
			s->looked_into, s->from,
			view == PRB_SEARCH_FRAME ? "frame" : "dict of variables",
			view == PRB_SEARCH_FRAME ? "f_locals, f_globals, f_code and f_lineno"
						 : "a variable by its name");
	PRB_TRY(find_frame(s, &frame));
	s->view = PRB_SEARCH_OBJECT;
	if (view == PRB_SEARCH_FRAME) {
		prb_search_begin_text(s, "frame");
		return prb_repr_put_frame(s->r, &frame, "frame", frame.address);
	}
	PRB_TRY(prb_python_locals(s->r->py, s->r->mem, &frame, &locals));

	struct prb_error *err = put_variables(s, &locals);
	prb_py_locals_deinit(&locals);
	return err;
}
