/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The type of spans. Its instances begin with an object's header, whose size Python reports. */
#include <stdbool.h>
#include <string.h>

#include "agent/inside/libc.h"
#include "agent/rings/events.h"

#define py (&prba_python)

/* Of Python's typeslots.h, the same in all versions. */
enum { TP_CALL = 50, TP_DEALLOC = 52, TP_DOC = 56, TP_INIT = 60, TP_METHODS = 64, TP_NEW = 65 };
enum { VARARGS = 1, NOARGS = 4, TPFLAGS_DEFAULT = 1 << 18 /* of versions before 3.10 */ };

struct span {
	object *name, *attributes; /* attributes: a dictionary or NULL */
	object *outer;		   /* the context variable's value before; NULL: not entered */
	int64_t id, parent;	   /* as in prba_recorder_chosen() */
	int64_t began;
	bool recorded;
};

static long head; /* bytes of an object's header */
static int64_t next_id;

PRBA_EXPORT void probing_recorder_forked(void)
{
	__atomic_store_n(&next_id, (int64_t)syscall(SYS_getpid) << 32, __ATOMIC_RELAXED);
}

static struct span *span_of(object *self)
{
	return (struct span *)((char *)self + head);
}

static int init(object *self, object *arguments, object *attributes)
{
	struct span *span = span_of(self);
	object *name = py->PyTuple_Size(arguments) == 1 ? py->PyTuple_GetItem(arguments, 0) : NULL;
	object *type = name ? py->PyObject_Type(name) : NULL;

	py->Py_DecRef(type);
	if (!name || type != py->PyUnicode_Type || span->name) {
		py->PyErr_SetString(*py->PyExc_TypeError,
				    "span() takes a name and attributes by name");
		return -1;
	}
	py->Py_IncRef(name);
	span->name = name;
	if (attributes && py->PyDict_Size(attributes))
		span->attributes = py->PyDict_Copy(attributes);
	return py->PyErr_Occurred() ? -1 : 0;
}

static void dealloc(object *self)
{
	struct span *span = span_of(self);
	object *type = py->PyObject_Type(self);

	py->Py_DecRef(span->name);
	py->Py_DecRef(span->attributes);
	py->Py_DecRef(span->outer);
	py->PyObject_Free(self);
	py->Py_DecRef(type);
	py->Py_DecRef(type); /* that of the instance */
}

static bool set_inner(object *value)
{
	object *token = py->PyContextVar_Set(prba_recorder.inner, value);

	py->Py_DecRef(token);
	return token;
}

/** Attributes as JSON, in @p buffer or in *held; *length is 0 for none. */
static const char *to_json(object *attributes, char buffer[PRBA_JSON_SIZE], object **held,
			   uint32_t *length)
{
	int written = attributes ? prba_recorder_json(attributes, buffer) : 0;
	intptr_t size = 0;
	const char *text;

	*length = written > 0 ? (uint32_t)written : 0;
	if (written >= 0)
		return written ? buffer : NULL;
	*held = py->PyObject_CallFunctionObjArgs(prba_recorder.to_json, attributes, NULL);
	text = *held ? py->PyUnicode_AsUTF8AndSize(*held, &size) : NULL;
	py->PyErr_Clear();
	*length = (uint32_t)size;
	return text;
}

static object *enter(object *self, object *unused)
{
	struct span *span = span_of(self);
	char buffer[PRBA_JSON_SIZE];
	object *held = NULL, *id;
	struct prba_record_row row = {.kind = PRBA_BEGIN, .name = span->name, .duration = -1};
	bool set;

	(void)unused;
	if (span->outer) {
		py->PyErr_SetString(*py->PyExc_RuntimeError, "the span was entered before");
		return NULL;
	}
	if (py->PyContextVar_Get(prba_recorder.inner, NULL, &span->outer) || !span->outer)
		return NULL;
	span->parent = span->outer == py->_Py_NoneStruct ? 0 : py->PyLong_AsLong(span->outer);
	span->recorded = prba_recorder_chosen(span->parent);
	span->id = span->recorded ? __atomic_add_fetch(&next_id, 1, __ATOMIC_RELAXED) : -1;
	id = py->PyLong_FromLongLong(span->id);
	set = id && set_inner(id);
	py->Py_DecRef(id);
	if (!set)
		return NULL;
	if (span->recorded) {
		row.span = span->id;
		row.parent = span->parent;
		row.attributes = to_json(span->attributes, buffer, &held, &row.attributes_length);
		prba_recorder_write(&row);
		py->Py_DecRef(held);
	}
	span->began = prba_clock_ns(CLOCK_MONOTONIC);
	py->Py_IncRef(self);
	return self;
}

/** {"error": "KeyError"} of the exception's type. */
static void put_error(object *type, char buffer[PRBA_JSON_SIZE], struct prba_record_row *row)
{
	object *name = py->PyObject_GetAttrString(type, "__name__");
	object *attributes = name ? py->PyDict_New() : NULL;
	int length = -1;

	if (attributes && !py->PyDict_SetItemString(attributes, "error", name))
		length = prba_recorder_json(attributes, buffer);
	row->attributes = length > 0 ? buffer : NULL;
	row->attributes_length = length > 0 ? (uint32_t)length : 0;
	py->Py_DecRef(attributes);
	py->Py_DecRef(name);
	py->PyErr_Clear();
}

static object *leave(object *self, object *arguments)
{
	struct span *span = span_of(self);
	int64_t now = prba_clock_ns(CLOCK_MONOTONIC);
	object *type = py->PyTuple_Size(arguments) ? py->PyTuple_GetItem(arguments, 0) : NULL;
	char buffer[PRBA_JSON_SIZE];
	struct prba_record_row row = {.kind = PRBA_END, .name = span->name};

	if (!span->outer) {
		py->PyErr_SetString(*py->PyExc_RuntimeError, "the span was not entered");
		return NULL;
	}
	if (!set_inner(span->outer))
		return NULL;
	if (span->recorded) {
		row.span = span->id;
		row.parent = span->parent;
		row.duration = (double)(now - span->began) / 1e6;
		if (type && type != py->_Py_NoneStruct)
			put_error(type, buffer, &row);
		prba_recorder_write(&row);
	}
	return py->PyBool_FromLong(0);
}

/** As a decorator: Python's own. */
static object *call(object *self, object *arguments, object *keywords)
{
	struct span *span = span_of(self);
	object *none = py->_Py_NoneStruct;
	object *function =
		py->PyTuple_Size(arguments) == 1 ? py->PyTuple_GetItem(arguments, 0) : NULL;

	if (!function || (keywords && py->PyDict_Size(keywords))) {
		py->PyErr_SetString(*py->PyExc_TypeError, "a span decorates one function");
		return NULL;
	}
	return py->PyObject_CallFunctionObjArgs(prba_recorder.decorate, span->name,
						span->attributes ? span->attributes : none,
						function, NULL);
}

object *prba_recorder_span_type(void)
{
	static char doc[] = "span(name, **attributes)\n--\n\nA piece of work: two rows in "
			    "python.trace_event, when it "
			    "begins and when it ends.";
	static struct prba_method methods[] = {
		{"__enter__", enter, NOARGS, NULL},
		{"__exit__", leave, VARARGS, NULL},
		{NULL, NULL, 0, NULL},
	};
	static struct prba_slot slots[] = {
		{TP_INIT, (void *)init},
		{TP_DEALLOC, (void *)dealloc},
		{TP_CALL, (void *)call},
		{TP_DOC, doc},
		{TP_METHODS, methods},
		{TP_NEW, NULL},
		{0, NULL},
	};
	static struct prba_type_spec spec = {"probing.span", 0, 0, TPFLAGS_DEFAULT, slots};
	object *base = py->PyObject_Type(py->_Py_NoneStruct), *size;

	/* None has nothing but the header. */
	size = base ? py->PyObject_GetAttrString(base, "__basicsize__") : NULL;
	head = size ? py->PyLong_AsLong(size) : 0;
	py->Py_DecRef(size);
	py->Py_DecRef(base);
	if (head <= 0)
		return NULL;
	head = (head + 7) & ~7l;
	spec.size = (int)(head + (long)sizeof(struct span));
	for (struct prba_slot *slot = slots; slot->slot; slot++)
		if (slot->slot == TP_NEW)
			*(void **)&slot->function = (void *)py->PyType_GenericNew;
	probing_recorder_forked();
	return py->PyType_FromSpec(&spec);
}
