/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The functions that agent/sites/sites.py calls: begin and end sampling, and write the client's
 * recipe.
 */
#include "agent/sites/sites.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/client/connection.h"
#include "agent/inside/finalization.h"
#include "agent/inside/libc.h"
#include "agent/rings/write.h"
#include "agent/sites/private.h"

enum { METH_VARARGS = 1, LOOK_US = 20000, RING_BYTES = 4 << 20 };

static const struct prba_python_table *const py = &prba_python;
static bool was_on;

static object *text(const char *s)
{
	return py->PyUnicode_DecodeUTF8(s, (intptr_t)strlen(s), "replace");
}

static uint64_t number(object *tuple, intptr_t index)
{
	object *item = py->PyTuple_GetItem(tuple, index);

	return item ? (uint64_t)(uintptr_t)py->PyLong_AsVoidPtr(item) : 0;
}

/** True if walking the calling thread finds these code objects, and no others. */
static bool walk_is_right(object *codes)
{
	static struct prba_sites_stack stack;
	const void *thread = prba_sites_thread();
	intptr_t count = py->PyTuple_Size(codes);

	if (!thread || !prba_sites_walk(thread, true, &stack) || stack.count != count)
		return false;
	for (intptr_t i = 0; i < count; i++)
		if (number(codes, i) != stack.words[2 * i])
			return false;
	return !py->PyErr_Occurred();
}

/**
 * begin(recipe, codes): recipe as enum prb_sites_recipe; codes: the addresses of the code objects
 * of this thread's frames, innermost first. The address of the buffer, or why not as a str.
 */
static object *begin(object *self, object *arguments)
{
	object *recipe = py->PyTuple_GetItem(arguments, 0);
	object *codes = py->PyTuple_GetItem(arguments, 1);
	const char *why;
	intptr_t count;
	uint64_t native;

	(void)self;
	if (!recipe || !codes)
		return NULL;
	if (prba_sites_header())
		return text("another client samples allocations");
	count = py->PyTuple_Size ? py->PyTuple_Size(recipe) : 0;
	if (count != PRB_SITES_NATIVE_RECIPE && count != PRB_SITES_OLD_RECIPE &&
	    count != PRB_SITES_RECIPE)
		return text("the client is of another version");
	for (intptr_t i = 0; i < PRB_SITES_RECIPE; i++)
		prba_sites_recipe[i] = i < count ? number(recipe, i) : 0;
	if (py->PyErr_Occurred())
		return NULL;
	native = prba_sites_recipe[PRB_SITES_NATIVE];
	prba_sites_recipe[PRB_SITES_NATIVE] = 0;
	if (!walk_is_right(codes))
		return text("this thread's own frames are not found where the client says");
	prba_sites_recipe[PRB_SITES_NATIVE] = native;
	if (prba_sites_open(prba_sites_recipe[PRB_SITES_MEAN]))
		return text("there is no memory for the samples");
	was_on = true;
	why = prba_sites_install(prba_sites_recipe[PRB_SITES_MEAN]);
	if (!why)
		return py->PyLong_FromVoidPtr(prba_sites_header());
	prba_sites_close();
	return text(why);
}

/** wait(job, milliseconds): until the time is over, the client interrupts, or has left. */
static object *await(object *self, object *arguments)
{
	struct prba_connection *c = (struct prba_connection *)(uintptr_t)number(arguments, 0);
	int64_t until = prba_now_ms() + (int64_t)number(arguments, 1);
	_Atomic uint32_t word = 0;
	unsigned before;
	void *state;

	(void)self;
	if (!c || py->PyErr_Occurred())
		return NULL;
	before = atomic_load(&c->job.interruptions);
	state = py->PyEval_SaveThread();
	while (prba_now_ms() < until && !atomic_load(&c->gone) &&
	       atomic_load(&c->job.interruptions) == before && !prba_finalization_is_ending())
		prba_wait_for(&word, 0, LOOK_US);
	py->PyEval_RestoreThread(state);
	return py->PyBool_FromLong(1);
}

/** end(): no more samples from now on; those there are stay. False: the allocators stay, too. */
static object *end(object *self, object *arguments)
{
	struct prb_sites_header *header = prba_sites_header();
	bool removed = prba_sites_remove();

	prba_sites_tell_count();
	(void)self, (void)arguments;
	if (header && !header->ended)
		__atomic_store_n(&header->ended, prba_clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
	return py->PyBool_FromLong(removed);
}

void prba_sites_stop(void)
{
	if (was_on)
		prba_sites_remove();
	prba_sites_close();
}

/** stop(): the same, and what is held is released. */
static object *stop(object *self, object *arguments)
{
	(void)self, (void)arguments;
	prba_sites_stop();
	return py->PyBool_FromLong(1);
}

/* function, file, line, bytes, allocations, bytes and allocations that are alive, stack */
enum { FUNCTION, FILE_NAME, LINE, BYTES, COUNT, ALIVE_BYTES, ALIVE, STACK, COLUMNS };

static const char columns[] = "function_name text, file text, lineno integer, "
			      "allocated_bytes integer [B], allocations integer, "
			      "alive_bytes integer [B], alive integer, stack text";

static struct probing_cell cell_of(unsigned column, object *value)
{
	struct probing_cell cell = {.kind = PROBING_NULL};
	intptr_t length = 0;
	char *data;

	if (!value || value == py->_Py_NoneStruct)
		return cell;
	if (column == FUNCTION || column == FILE_NAME || column == STACK) {
		if (!py->PyBytes_AsStringAndSize(value, &data, &length))
			cell = (struct probing_cell){
				.kind = PROBING_TEXT, .length = (uint32_t)length, .text = data};
	} else {
		cell.integer = (int64_t)(intptr_t)py->PyLong_AsVoidPtr(value);
		cell.kind = PROBING_INTEGER;
	}
	return cell;
}

/** row(function, …, stack): a row of memory_allocations; 0 or an errno value. */
static object *row(object *self, object *arguments)
{
	intptr_t ring = probing_ring_create("main.memory_allocations", columns, RING_BYTES);
	struct probing_cell cells[COLUMNS];
	int rc;

	(void)self;
	for (unsigned i = 0; i < COLUMNS; i++)
		cells[i] = cell_of(i, py->PyTuple_GetItem(arguments, i));
	if (py->PyErr_Occurred())
		return NULL;
	rc = ring < 0 ? (int)ring : probing_ring_append(ring, 0, cells);
	return py->PyLong_FromVoidPtr((void *)(intptr_t)-rc);
}

bool prba_sites_was_on(void)
{
	return was_on;
}

void prba_sites_forked(void)
{
	prba_sites_drop();
	if (prba_sites_stays())
		prba_sites_silence();
}

struct prba_method prba_sites_methods[PRBA_SITES_METHODS] = {
	{"sites_begin", begin, METH_VARARGS, NULL}, {"sites_wait", await, METH_VARARGS, NULL},
	{"sites_end", end, METH_VARARGS, NULL},	    {"sites_stop", stop, METH_VARARGS, NULL},
	{"sites_row", row, METH_VARARGS, NULL},
};
