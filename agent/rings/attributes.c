/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/rings/events.h"

#define py (&prba_python)

struct out {
	char *at, *end;
};

static bool put(struct out *out, const char *text, size_t length)
{
	if (length > (size_t)(out->end - out->at))
		return false;
	memcpy(out->at, text, length);
	out->at += length;
	return true;
}

/** Plain ASCII without anything to be escaped, in quotes. */
static bool put_text(struct out *out, object *value)
{
	intptr_t length;
	const char *text = py->PyUnicode_AsUTF8AndSize(value, &length);

	if (!text) {
		py->PyErr_Clear(); /* a lone surrogate */
		return false;
	}
	for (intptr_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			return false;
	return put(out, "\"", 1) && put(out, text, (size_t)length) && put(out, "\"", 1);
}

static bool put_integer(struct out *out, object *value)
{
	char text[24];
	int overflow;
	long long number = py->PyLong_AsLongLongAndOverflow(value, &overflow);

	return !overflow && put(out, text, (size_t)snprintf(text, sizeof(text), "%lld", number));
}

/** As repr() has it. */
static bool put_real(struct out *out, object *value)
{
	enum { ADD_DOT_0 = 2 };
	double number = py->PyFloat_AsDouble(value);
	char *text;
	bool good;

	if (!(fabs(number) <= 1e300))
		return false;
	text = py->PyOS_double_to_string(number, 'r', 0, ADD_DOT_0, NULL);
	good = text && put(out, text, strlen(text));
	py->PyMem_Free(text);
	return good;
}

static bool put_value(struct out *out, object *value)
{
	object *type;

	if (value == py->_Py_NoneStruct)
		return put(out, "null", 4);
	type = py->PyObject_Type(value);
	py->Py_DecRef(type); /* the value holds it */
	if (type == py->PyUnicode_Type)
		return put_text(out, value);
	if (type == py->PyLong_Type)
		return put_integer(out, value);
	if (type == py->PyFloat_Type)
		return put_real(out, value);
	if (type == py->PyBool_Type)
		return value == py->_Py_TrueStruct ? put(out, "true", 4) : put(out, "false", 5);
	return false;
}

int prba_recorder_json(object *attributes, char ret[PRBA_JSON_SIZE])
{
	struct out out = {ret, ret + PRBA_JSON_SIZE - 1};
	intptr_t position = 0;
	object *key, *value;

	put(&out, "{", 1);
	while (py->PyDict_Next(attributes, &position, &key, &value)) {
		if (out.at > ret + 1 && !put(&out, ", ", 2))
			return -1;
		if (!put_text(&out, key) || !put(&out, ": ", 2) || !put_value(&out, value))
			return -1;
	}
	return put(&out, "}", 1) ? (int)(out.at - ret) : -1;
}
