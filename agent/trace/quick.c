/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/trace/quick.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/inside/functions.h"
#include "agent/inside/libc.h"
#include "agent/trace/breaks.h"

enum {
	METH_VARARGS = 1,
	METH_FASTCALL = 128,
	CODES = 64,    /* that are watched at once */
	POINTS = 8,    /* that count */
	FINE_BITS = 4, /* as FINE in calls.py: places of a doubling */
	PLACES = 65 << FINE_BITS,
	SETS = 2048, /* of calls in progress, by frame */
	WAYS = 8,
	TRIES = 1000, /* for a lock that is held for nanoseconds */
};

static const struct prba_python_table *const py = &prba_python;

static struct {
	_Atomic(object *) code; /* alive as long as it is here: its point has it */
	int point;
	int64_t least;
} watched[CODES];
static atomic_int watches;

/* The last number of a point is of calls that could not be measured, the one before the longest. */
static _Atomic int64_t counts[POINTS][PLACES + 2];

static struct call {
	uintptr_t frame; /* 0: free */
	int64_t began;
} calls[SETS][WAYS];
static atomic_flag lock = ATOMIC_FLAG_INIT;

void prba_quick_forked(void)
{
	atomic_flag_clear(&lock);
}

/* In a free-threaded build another thread may hold the lock. After fork() in such a moment, nobody
 * would release it in the child: prba_quick_forked() does. */
static bool take_lock(void)
{
	for (int i = 0; i < TRIES; i++)
		if (!atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
			return true;
	return false;
}

static void release_lock(void)
{
	atomic_flag_clear_explicit(&lock, memory_order_release);
}

static struct call *set_of(uintptr_t frame)
{
	return calls[(uint64_t)frame * 0x9e3779b97f4a7c15u >> 53];
}

/* Takes the place of the oldest where there is no room: a generator that never ended. */
static bool begin(uintptr_t frame, int64_t now)
{
	struct call *set = set_of(frame), *best = &set[0];
	bool replaces;

	if (!take_lock())
		return false;
	for (int i = 0; i < WAYS && best->frame != frame; i++)
		if (set[i].frame == frame ||
		    (best->frame && (!set[i].frame || set[i].began < best->began)))
			best = &set[i];
	replaces = best->frame && best->frame != frame;
	*best = (struct call){frame, now};
	release_lock();
	return !replaces;
}

/* When it began; 0 if that is unknown. */
static int64_t end(uintptr_t frame)
{
	struct call *set = set_of(frame);
	int64_t began = 0;

	if (!take_lock())
		return 0;
	for (int i = 0; i < WAYS; i++)
		if (set[i].frame == frame) {
			began = set[i].began;
			set[i].frame = 0;
			break;
		}
	release_lock();
	return began;
}

static int find(const object *code)
{
	int count = atomic_load_explicit(&watches, memory_order_acquire);

	for (int i = 0; i < count; i++)
		if (atomic_load_explicit(&watched[i].code, memory_order_relaxed) == code)
			return i;
	return -1;
}

/* Counts the call whose frame that is; nanoseconds if it took at least what is kept, else 0. */
static int64_t count(int number, uintptr_t frame)
{
	_Atomic int64_t *own = counts[watched[number].point];
	int64_t began = end(frame), took, longest;
	int bits;

	if (!began)
		return 0;
	took = prba_clock_ns(CLOCK_MONOTONIC) - began;
	took = took < 1 << FINE_BITS ? 1 << FINE_BITS : took;
	bits = 64 - __builtin_clzll((uint64_t)took);
	atomic_fetch_add_explicit(&own[(bits << FINE_BITS) + (int)(took >> (bits - FINE_BITS - 1) &
								   ((1 << FINE_BITS) - 1))],
				  1, memory_order_relaxed);
	longest = atomic_load_explicit(&own[PLACES], memory_order_relaxed);
	if (took > longest)
		atomic_store_explicit(&own[PLACES], took, memory_order_relaxed);
	return took >= watched[number].least ? took : 0;
}

/* (code, offset). @self has what is called for code that is not watched. */
static object *started(object *self, object *const *arguments, intptr_t length)
{
	int number = length > 1 ? find(arguments[0]) : -1;
	object *other = py->PyTuple_GetItem(self, 0), *frame;

	if (number < 0)
		return length > 1 ? prba_breaks_call(other, arguments[0], arguments[1]) : NULL;
	prba_breaks_enter();
	frame = py->PyEval_GetFrame();
	if (frame && !begin((uintptr_t)frame, prba_clock_ns(CLOCK_MONOTONIC)))
		atomic_fetch_add(&counts[watched[number].point][PLACES + 1], 1);
	prba_breaks_exit();
	return py->PyBool_FromLong(0);
}

/* (code, offset, value). @self also has what is called with the time and the value of a slow one.
 */
static object *returned(object *self, object *const *arguments, intptr_t length)
{
	int number = length > 2 ? find(arguments[0]) : -1;
	object *frame, *took, *result;
	int64_t ns;

	if (number < 0)
		return length > 2 ? prba_breaks_call(py->PyTuple_GetItem(self, 0), arguments[0],
						     arguments[2])
				  : NULL;
	prba_breaks_enter();
	frame = py->PyEval_GetFrame();
	ns = frame ? count(number, (uintptr_t)frame) : 0;
	prba_breaks_exit();
	if (!ns)
		return py->PyBool_FromLong(0);
	took = py->PyLong_FromVoidPtr((void *)(intptr_t)ns);
	result = took ? prba_breaks_call(py->PyTuple_GetItem(self, 1), took, arguments[2]) : NULL;
	if (took)
		py->Py_DecRef(took);
	return result;
}

/** quick_guard(begins, function, function of slow ones): what the interpreter may call at the
 * begin or the end of calls. */
static object *quick_guard(object *self, object *arguments)
{
	typedef object *function(object *, object *);
	static struct prba_method methods[] = {
		{"returned", (function *)(void (*)(void))returned, METH_FASTCALL, NULL},
		{"started", (function *)(void (*)(void))started, METH_FASTCALL, NULL},
	};
	object *begins = py->PyTuple_GetItem(arguments, 0);
	object *both = begins ? py->PyTuple_GetItem(arguments, 1) : NULL;

	(void)self;
	return both ? prba_functions_make(&methods[py->PyLong_AsLong(begins) != 0], both) : NULL;
}

/** quick_watch(code, point, nanoseconds): False if there is no room. code None: none is any more.
 */
static object *quick_watch(object *self, object *arguments)
{
	object *code = py->PyTuple_GetItem(arguments, 0);
	object *point = code ? py->PyTuple_GetItem(arguments, 1) : NULL;
	object *least = point ? py->PyTuple_GetItem(arguments, 2) : NULL;
	int count = atomic_load(&watches);
	long number;

	(void)self;
	if (!least)
		return NULL;
	number = py->PyLong_AsLong(point);
	if (number < 0) {
		for (int i = 0; i < count; i++)
			atomic_store(&watched[i].code, NULL);
		atomic_store(&watches, 0);
		return py->PyBool_FromLong(1);
	}
	if (count >= CODES || number >= POINTS)
		return py->PyBool_FromLong(0);
	watched[count].point = (int)number;
	watched[count].least = (int64_t)(intptr_t)py->PyLong_AsVoidPtr(least);
	atomic_store(&watched[count].code, code);
	atomic_store_explicit(&watches, count + 1, memory_order_release);
	return py->PyBool_FromLong(1);
}

/** quick_end(code, frame): nanoseconds of a slow call that an exception ended, else 0. */
static object *quick_end(object *self, object *arguments)
{
	object *code = py->PyTuple_GetItem(arguments, 0);
	object *frame = code ? py->PyTuple_GetItem(arguments, 1) : NULL;
	int number = frame ? find(code) : -1;
	int64_t took = 0;

	(void)self;
	if (!frame)
		return NULL;
	if (number >= 0)
		took = count(number, (uintptr_t)py->PyLong_AsVoidPtr(frame));
	return py->PyLong_FromVoidPtr((void *)(intptr_t)took);
}

/** quick_counts(point, clear): bytes of 64-bit numbers: calls by place, the longest, and how many
 * could not be measured. */
static object *quick_counts(object *self, object *arguments)
{
	object *point = py->PyTuple_GetItem(arguments, 0);
	object *clear = point ? py->PyTuple_GetItem(arguments, 1) : NULL;
	long number = clear ? py->PyLong_AsLong(point) : -1;

	(void)self;
	if (number < 0 || number >= POINTS)
		return py->PyBytes_FromStringAndSize("", 0);
	if (py->PyLong_AsLong(clear))
		memset((void *)counts[number], 0, sizeof(counts[number]));
	return py->PyBytes_FromStringAndSize((const char *)counts[number], sizeof(counts[number]));
}

struct prba_method prba_quick_methods[PRBA_QUICK_METHODS] = {
	{"quick_watch", quick_watch, METH_VARARGS, NULL},
	{"quick_guard", quick_guard, METH_VARARGS, NULL},
	{"quick_end", quick_end, METH_VARARGS, NULL},
	{"quick_counts", quick_counts, METH_VARARGS, NULL},
};
