/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Variables and what they hold, read from outside. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/dump.h"
#include "dump/inspect.h"
#include "dwarf/elf/module.h"
#include "gateway/dap/private.h"
#include "python/repr/core/attributes.h"
#include "python/repr/core/items.h"

enum { KEY = 80, MAX_CHILDREN = 1000, ITEMS = 100, TEXT = 2000, TOTAL = 20000, SHORT = 500 };

/** Reads objects of this stop. */
struct prb_dap_objects {
	struct prb_view *view;
	struct prb_modules *modules;
	struct prb_pythons pythons;
};

void prb_dap_forget_objects(struct prb_dap *d)
{
	struct prb_dap_objects *o = d->objects;

	d->objects = NULL;
	if (!o)
		return;
	prb_pythons_deinit(&o->pythons);
	prb_view_destroy(o->view);
	prb_modules_destroy(o->modules);
	free(o);
}

static struct prb_error *open_objects(struct prb_dap *d)
{
	if (d->objects)
		return NULL;
	d->objects = calloc(1, sizeof(*d->objects));
	if (!d->objects)
		return prb_error_nomem();
	PRB_TRY(prb_target_check_memory(d->target));
	PRB_TRY(prb_view_create(d->target->mem, &d->objects->view));
	return prb_pythons_open(d->target, d->objects->view, false, &d->objects->modules,
				&d->objects->pythons);
}

/** Types whose values have nothing further in. */
static bool is_leaf(const char *type)
{
	static const char *const leaves[] = {"int",   "float",	  "complex", "bool",	 "str",
					     "bytes", "NoneType", "range",   "ellipsis", "type"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(leaves); i++)
		if (!strcmp(type, leaves[i]))
			return true;
	return !*type;
}

int prb_dap_refer_to(struct prb_dap *d, int frame, uint64_t address, const char *type,
		     const char *expression)
{
	struct prb_dap_scope *scope = address && !is_leaf(type) ? prb_vec_push(&d->scopes) : NULL;

	if (!scope)
		return 0;
	*scope = (struct prb_dap_scope){.kind = PRB_DAP_OBJECT,
					.frame = frame,
					.address = address,
					.expression = expression ? strdup(expression) : NULL,
					.keys = !strcmp(type, "list") || !strcmp(type, "tuple")
							? PRB_DAP_BY_NUMBER
						: !strcmp(type, "dict") ? PRB_DAP_BY_KEY
									: PRB_DAP_NO_KEYS};
	return (int)d->scopes.count;
}

bool prb_dap_is_identifier(const char *name)
{
	static const char *const keywords[] = {
		"False",  "None",   "True",    "and",	   "as",       "assert", "async",
		"await",  "break",  "class",   "continue", "def",      "del",	 "elif",
		"else",	  "except", "finally", "for",	   "from",     "global", "if",
		"import", "in",	    "is",      "lambda",   "nonlocal", "not",	 "or",
		"pass",	  "raise",  "return",  "try",	   "while",    "with",	 "yield"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(keywords); i++)
		if (!strcmp(name, keywords[i]))
			return false;
	for (size_t i = 0; name[i]; i++)
		if (!isalpha((unsigned char)name[i]) && name[i] != '_' &&
		    !(i && isdigit((unsigned char)name[i])))
			return false;
	return *name;
}

/** @p expression: by which the client's users may ask for it again, or NULL. */
static json_t *variable(struct prb_dap *d, int frame, const char *name, const char *value,
			const char *type, uint64_t address, const char *expression)
{
	json_t *put = json_pack("{s:o, s:o, s:o, s:i}", "name", prb_dap_string(name), "value",
				prb_dap_string(value), "type", prb_dap_string(type ? type : ""),
				"variablesReference",
				prb_dap_refer_to(d, frame, address, type ? type : "", expression));

	if (put && expression)
		json_object_set_new(put, "evaluateName", prb_dap_string(expression));
	return put;
}

static struct prb_error *put_locals(struct prb_dap *d, int index, json_t *list)
{
	const struct prb_dap_frame *of = &d->frames.items[index];
	const struct prb_dump_options options = {
		.tid = of->tid, .locals = true, .no_waits = true, .no_command = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;
	const struct prb_dump_local *local;
	unsigned depth = 0;

	PRB_TRY(prb_dump_create(d->target, &options, &dump));
	prb_vec_each (thread, &dump->threads) {
		prb_vec_each (frame, &thread->frames) {
			if (thread->tid != of->tid || frame->kind != PRB_FRAME_PYTHON ||
			    depth++ != of->depth)
				continue;
			prb_vec_each (local, &frame->locals)
				if (local->value && json_array_size(list) < MAX_CHILDREN)
					json_array_append_new(
						list, variable(d, index, local->name, local->value,
							       local->type, local->address,
							       prb_dap_is_identifier(local->name)
								       ? local->name
								       : NULL));
		}
	}
	return NULL;
}

/** What is being listed of an object. */
struct listing {
	struct prb_dap *d;
	struct prb_python *py;
	struct prb_mem *mem;
	json_t *list;
	json_int_t at, start, count; /* which of the children, counted from 0 */
	const char *expression;	     /* for the object, or NULL */
	int frame;		     /* of the expression */
	enum prb_dap_keys keys;
	bool cut, names;
};

/** Whether the text of a key is one in Python: a number, or all of a text. */
static bool is_constant(const char *text)
{
	size_t length = strlen(text), last = length ? length - 1 : 0;

	return length && length < KEY && !strstr(text, "…") &&
	       (!text[strspn(text, "-0123456789")] ||
		((*text == '\'' || *text == '"') && last && text[last] == *text));
}

/** The expression for an item or attribute; NULL: none is known. @p whole: the name is all of the
 * key. */
static char *expression_of(const struct listing *l, const char *name, bool item, bool whole)
{
	const char *base = l->expression;
	bool subscript = l->keys == PRB_DAP_BY_NUMBER || (l->keys == PRB_DAP_BY_KEY && whole);

	if (!base || (item ? !subscript : !prb_dap_is_identifier(name)))
		return NULL;
	return prb_format(item ? "%s[%s]" : "%s.%s", base, name);
}

char *prb_dap_expression_of(const struct prb_dap_scope *scope, const char *name)
{
	const struct listing l = {.expression = scope->expression, .keys = scope->keys};

	if (scope->kind != PRB_DAP_OBJECT)
		return prb_dap_is_identifier(name) ? strdup(name) : NULL;
	return expression_of(&l, name, scope->keys != PRB_DAP_NO_KEYS && is_constant(name), true);
}

static void put_child(struct listing *l, const char *name, uint64_t object, const char *text,
		      const char *expression)
{
	static const struct prb_repr_options options = {
		.max_objects = 1, .objects_alone = true, .max_total = SHORT};
	prb_auto_str struct prb_str value = {}, type = {};

	if (object) {
		prb_error_destroy(prb_object_repr(l->py, l->mem, object, &options, &value));
		prb_error_destroy(prb_object_type_name(l->py, l->mem, object, &type));
	}
	json_array_append_new(l->list, variable(l->d, l->frame, name,
						object ? prb_str_text(&value)
						: text ? text
						       : "?",
						prb_str_text(&type), object, expression));
}

/** False: no more is wanted. */
static bool is_wanted(struct listing *l, bool *ret)
{
	json_int_t at = l->at++;

	*ret = at >= l->start;
	l->cut = at - l->start >= l->count;
	return !l->cut;
}

static bool on_item(void *context, uint64_t key, uint64_t value)
{
	struct listing *l = context;
	prb_auto_str struct prb_str name = {};
	prb_auto_free char *expression = NULL;
	bool wanted;

	if (!is_wanted(l, &wanted))
		return false;
	if (!wanted)
		return true;
	/* Names of a namespace are shown as such. */
	if (key && l->names)
		prb_error_destroy(prb_object_str(l->py, l->mem, key, SHORT / 2, &name));
	if (key && !name.length)
		prb_error_destroy(prb_object_repr(
			l->py, l->mem, key,
			&(const struct prb_repr_options){.max_total = SHORT / 2}, &name));
	if (!key)
		prb_str_printf(&name, "%lld", (long long)l->at - 1);
	expression = expression_of(l, prb_str_text(&name), true, is_constant(prb_str_text(&name)));
	put_child(l, prb_str_text(&name), value, NULL, expression);
	return true;
}

static bool on_attribute(void *context, const struct prb_attribute *a)
{
	struct listing *l = context;
	bool wanted;

	if (!is_wanted(l, &wanted))
		return false;
	if (wanted) {
		prb_auto_free char *expression = expression_of(l, a->name, false, true);

		put_child(l, a->name, a->object, a->text, expression);
	}
	return true;
}

/** In whichever Python takes it for an object: its items, then its attributes. @p names: it is a
 * namespace. */
static struct prb_error *put_object(struct prb_dap *d, const struct prb_dap_scope *of, bool names,
				    json_int_t start, json_int_t count, json_t *list)
{
	struct prb_error *err = NULL;
	struct prb_python **py;

	PRB_TRY(open_objects(d));
	prb_vec_each (py, &d->objects->pythons.list) {
		struct listing l = {.d = d,
				    .py = *py,
				    .mem = prb_view_mem(d->objects->view),
				    .list = list,
				    .expression = of->expression,
				    .frame = of->frame,
				    .keys = of->keys,
				    .names = names,
				    .start = start,
				    .count = count};

		/* Most objects have no items. */
		prb_error_destroy(
			prb_object_items(*py, l.mem, of->address, false, on_item, &l, NULL));
		prb_error_destroy(err);
		err = l.cut ? NULL
			    : prb_object_attributes(*py, l.mem, of->address,
						    PRB_ATTRIBUTE_DICT | PRB_ATTRIBUTE_SLOT,
						    on_attribute, &l, NULL);
		if (l.cut && count == MAX_CHILDREN)
			json_array_append_new(
				list, variable(d, -1, "…", "more is left out", "", 0, NULL));
		if (!err || json_array_size(list))
			break;
	}
	/* What was listed before is right. */
	if (err && json_array_size(list) && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		err = NULL;
	}
	return err;
}

struct prb_error *prb_dap_inspect(struct prb_dap *d, const struct prb_dap_frame *frame,
				  const char *expression, struct prb_inspected *ret)
{
	const struct prb_inspect_place place = {.tid = frame ? frame->tid : 0,
						.depth = frame ? frame->depth : 0,
						/* The global scope. */
						.function = frame ? NULL : "<module>"};
	const struct prb_repr_options options = {.max_objects = 1,
						 .objects_alone = true,
						 .max_attributes = ITEMS,
						 .max_items = ITEMS,
						 .max_text = TEXT,
						 .max_total = TOTAL};

	return prb_inspect(d->target, &place, expression, &options, ret);
}

/** The namespace of the frame's module, as an object. */
static struct prb_error *put_globals(struct prb_dap *d, const struct prb_dap_frame *frame,
				     json_int_t start, json_int_t count, json_t *list)
{
	struct prb_inspected found = {};
	struct prb_error *err;
	prb_auto_free char *expression = NULL;
	struct prb_dap_scope object = {.kind = PRB_DAP_OBJECT, .frame = -1};

	if (!frame->module || strpbrk(frame->module, "'\\\n"))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the module of the frame is unknown");
	expression = prb_format("sys.modules['%s'].__dict__", frame->module);
	if (!expression)
		return prb_error_nomem();
	err = prb_dap_inspect(d, frame, expression, &found);
	object.address = found.address;
	prb_inspected_deinit(&found);
	PRB_TRY(err);
	return put_object(d, &object, true, start, count, list);
}

struct prb_error *prb_dap_variables(struct prb_dap *d, const struct prb_dap_request *r)
{
	json_int_t number = prb_dap_number(r, "variablesReference");
	json_int_t start = prb_dap_number(r, "start"), count = prb_dap_number(r, "count");
	struct prb_dap_scope scope;
	struct prb_error *err;
	json_t *list;

	if (number < 1 || number > (json_int_t)d->scopes.count)
		return prb_error_create(PRB_ERROR_USAGE, "that belongs to a stop that has ended");
	scope = d->scopes.items[number - 1]; /* the list may move */
	start = start > 0 ? start : 0;
	count = count > 0 && count < MAX_CHILDREN ? count : MAX_CHILDREN;
	list = json_array();
	if (scope.kind == PRB_DAP_LOCALS)
		err = put_locals(d, scope.frame, list);
	else if (scope.kind == PRB_DAP_GLOBALS)
		err = put_globals(d, &d->frames.items[scope.frame], start, count, list);
	else
		err = put_object(d, &scope, false, start, count, list);
	if (err) {
		json_decref(list);
		return err;
	}
	return prb_dap_answer(d, r, json_pack("{s:o}", "variables", list));
}
