/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rings/events.h"

#include <stdbool.h>
#include <string.h>

#include "agent/inside/config.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/rings/write.h"

enum { NAMES = 4096 /* with a remembered place among the ring's strings */ };
static const int64_t SECOND = 1000000000;
#define py (&prba_python)

struct prba_recorder prba_recorder;
static object *places; /* a dictionary: name to place */
static intptr_t ring;  /* 0: not opened yet; -1: nothing is recorded */
static int64_t kinds[PRBA_RECORDS];
static int64_t step = INT64_MIN;
static _Atomic int64_t next_sample;
static _Atomic uint64_t dice = 88172645463325252ull;

void prba_recorder_set_step(int64_t number)
{
	__atomic_store_n(&step, number, __ATOMIC_RELAXED);
}

int64_t prba_recorder_step(void)
{
	return __atomic_load_n(&step, __ATOMIC_RELAXED);
}

/** Children of fork() have their parent's ring, whose rows have their writer's pid. */
static bool open_ring(void)
{
	static const char *const words[PRBA_RECORDS] = {"event", "span_begin", "span_end"};
	object *handle;

	if (ring)
		return ring > 0;
	handle = py->PyObject_CallFunctionObjArgs(prba_recorder.open, NULL);
	if (!handle) {
		py->PyErr_Clear();
		return false;
	}
	ring = py->PyLong_AsLong(handle);
	py->Py_DecRef(handle);
	for (unsigned i = 0; ring > 0 && i < PRBA_RECORDS; i++)
		kinds[i] = probing_ring_intern(ring, words[i], strlen(words[i]));
	return ring > 0;
}

/** The number of a name among the ring's strings; 0: there is no room for it. */
static int64_t place_of(object *name)
{
	object *known = py->PyDict_GetItem(places, name);
	intptr_t length;
	const char *text;
	int64_t place;

	if (known)
		return py->PyLong_AsLong(known);
	if (py->PyDict_Size(places) >= NAMES)
		return 0;
	text = py->PyUnicode_AsUTF8AndSize(name, &length);
	place = text ? probing_ring_intern(ring, text, (size_t)length) : 0;
	known = place > 0 ? py->PyLong_FromLongLong(place) : NULL;
	if (known)
		py->PyDict_SetItem(places, name, known);
	py->Py_DecRef(known);
	py->PyErr_Clear();
	return known ? place : 0;
}

static struct probing_cell integer(int64_t value, int64_t none)
{
	return (struct probing_cell){
		value == none ? PROBING_NULL : PROBING_INTEGER, 0, {.integer = value}};
}

/** Memory is sampled with events, so that nothing wakes an idle process. */
static void sample(int64_t now)
{
	int64_t due = __atomic_load_n((int64_t *)&next_sample, __ATOMIC_RELAXED);
	object *result, *number;

	if (now < due || !__atomic_compare_exchange_n((int64_t *)&next_sample, &due, now + SECOND,
						      false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	number = py->PyLong_FromLongLong(__atomic_load_n(&step, __ATOMIC_RELAXED));
	result = number ? py->PyObject_CallFunctionObjArgs(prba_recorder.sample, number, NULL)
			: NULL;
	py->Py_DecRef(number);
	py->Py_DecRef(result);
	py->PyErr_Clear();
}

bool prba_recorder_write(const struct prba_record_row *row)
{
	int64_t now = prba_clock_ns(CLOCK_REALTIME), place;
	struct probing_cell cells[7];
	intptr_t length = 0;
	const char *text = NULL;
	bool written;

	if (!open_ring())
		return false;
	place = place_of(row->name);
	if (!place)
		text = py->PyUnicode_AsUTF8AndSize(row->name, &length);
	cells[0] = (struct probing_cell){PROBING_INTERNED, 0, {.integer = kinds[row->kind]}};
	cells[1] = place ? (struct probing_cell){PROBING_INTERNED, 0, {.integer = place}}
			 : (struct probing_cell){text ? PROBING_TEXT : PROBING_NULL,
						 (uint32_t)length,
						 {.text = text}};
	cells[2] = integer(row->span, 0);
	cells[3] = integer(row->parent, 0);
	cells[4] = integer(prba_recorder_step(), INT64_MIN);
	cells[5] = (struct probing_cell){
		row->duration < 0 ? PROBING_NULL : PROBING_REAL, 0, {.real = row->duration}};
	cells[6] = (struct probing_cell){row->attributes ? PROBING_TEXT : PROBING_NULL,
					 row->attributes_length,
					 {.text = row->attributes}};
	written = !probing_ring_append(ring, now, cells);
	sample(now);
	return written;
}

bool prba_recorder_chosen(int64_t parent)
{
	double rate = prba_config_number(PRB_CONFIG_SAMPLE_RATE);
	uint64_t x;

	if (parent)
		return parent > 0;
	if (rate >= 1)
		return true;
	/* Marsaglia's xorshift; threads that throw at once may throw the same. */
	x = __atomic_load_n((uint64_t *)&dice, __ATOMIC_RELAXED);
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	__atomic_store_n((uint64_t *)&dice, x, __ATOMIC_RELAXED);
	return (double)(x >> 11) < rate * (double)(1ull << 53);
}

int64_t prba_recorder_parent(void)
{
	object *value = NULL;
	int64_t result = 0;

	if (py->PyContextVar_Get(prba_recorder.inner, NULL, &value)) {
		py->PyErr_Clear();
		return 0;
	}
	if (value && value != py->_Py_NoneStruct)
		result = py->PyLong_AsLong(value);
	py->Py_DecRef(value);
	return result;
}

static bool is_text(object *value)
{
	object *type = py->PyObject_Type(value);

	py->Py_DecRef(type);
	return type == py->PyUnicode_Type;
}

/** event(name, **attributes). What is not simple is left to Python's. */
static object *record_event(object *self, object *arguments, object *attributes)
{
	char json[PRBA_JSON_SIZE];
	struct prba_record_row row = {.kind = PRBA_EVENT, .duration = -1};
	int length = 0;
	bool written;

	(void)self;
	row.name = py->PyTuple_Size(arguments) == 1 ? py->PyTuple_GetItem(arguments, 0) : NULL;
	if (attributes && py->PyDict_Size(attributes))
		length = prba_recorder_json(attributes, json);
	if (!row.name || !is_text(row.name) || length < 0)
		return py->PyObject_Call(prba_recorder.event, arguments, attributes);
	row.parent = prba_recorder_parent();
	row.attributes = length ? json : NULL;
	row.attributes_length = (uint32_t)length;
	written = prba_recorder_chosen(row.parent) && prba_recorder_write(&row);
	return py->PyBool_FromLong(written);
}

static bool take(object *helpers, const char *name, object **ret)
{
	*ret = py->PyDict_GetItemString(helpers, name);
	py->Py_IncRef(*ret);
	return *ret;
}

/** True if this Python has all that is used here. */
static bool is_able(void)
{
	return py->PyContextVar_Get && py->PyContextVar_Set && py->PyType_FromSpec &&
	       py->PyUnicode_AsUTF8AndSize && py->PyOS_double_to_string && py->PyObject_Free &&
	       py->PyObject_Type && py->PyType_GenericNew && py->PyDict_Copy && py->PyDict_Next &&
	       py->PyMem_Free && py->PyObject_Call && py->PyTuple_Size && py->PyDict_Size &&
	       py->PyDict_SetItem && py->PyLong_FromLongLong && py->PyFloat_AsDouble &&
	       py->PyLong_AsLongLongAndOverflow && py->PyErr_SetString && py->Py_IncRef &&
	       py->_Py_NoneStruct && py->_Py_TrueStruct && py->PyBool_Type && py->PyLong_Type &&
	       py->PyFloat_Type && py->PyUnicode_Type;
}

PRBA_EXPORT object *probing_recorder(object *helpers)
{
	enum { VARARGS = 1, KEYWORDS = 2 };
	static struct prba_method method = {"event", NULL, VARARGS | KEYWORDS,
					    "event(name, **attributes)"};
	static bool taken;
	object *event, *span, *result;

	if (taken || !prba_python_find() || !is_able())
		return py->PyBool_FromLong(0);
	taken = true;
	*(void **)&method.function = (void *)record_event;
	if (!take(helpers, "inner", &prba_recorder.inner) ||
	    !take(helpers, "open", &prba_recorder.open) ||
	    !take(helpers, "sample", &prba_recorder.sample) ||
	    !take(helpers, "event", &prba_recorder.event) ||
	    !take(helpers, "decorate", &prba_recorder.decorate) ||
	    !take(helpers, "to_json", &prba_recorder.to_json))
		return py->PyBool_FromLong(0);
	places = py->PyDict_New();
	event = py->PyCFunction_NewEx(&method, NULL, NULL);
	span = prba_recorder_span_type();
	result = py->PyDict_New();
	if (!places || !event || !span || !result)
		return NULL;
	py->PyDict_SetItemString(result, "event", event);
	py->PyDict_SetItemString(result, "span", span);
	return result;
}
