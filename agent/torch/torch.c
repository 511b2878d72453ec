/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps: where they end, and which are sampled. */
#include "agent/torch/torch.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/inside/config.h"
#include "agent/inside/finalization.h"
#include "agent/inside/libc.h"
#include "agent/rings/events.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

enum {
	METH_VARARGS = 1,
	STRANGE_STEPS = 3, /* steps in a row of another optimizer, after which that one counts */
	MILLION = 1000000,
};

struct prba_torch prba_torch;

static struct {
	const void *leader; /* the optimizer whose steps count; only compared */
	const void *inside; /* the optimizer whose step() runs now */
	int64_t began, own; /* when it did, and what of the step was ours then */
	int64_t closures;   /* what of the step was closures' */
	int64_t waited;	    /* what of the step was communication within optimizers */
	bool closes;	    /* step() got a closure */
	uint32_t mark;	    /* where the GPU was */
	int64_t strange;
	int64_t number;	     /* of the last step */
	uint32_t ppm;	     /* share of steps to sample */
	int64_t first;	     /* so many of the next steps are all sampled */
	int64_t left;	     /* half of the steps are sampled, until so many were */
	uint64_t finished;   /* sampled steps that have ended */
	uint32_t generation; /* of the last sampled step */
	bool told;	     /* probing.step() ends steps */
	bool discovered;     /* a step was sampled before */
} now;

#define step (&prba_torch.step)

bool prba_torch_is_on(void)
{
	return prba_torch.on && prba_torch.life == prba_finalization_number();
}

int64_t prba_torch_now(void)
{
	return prba_clock_ns(CLOCK_MONOTONIC);
}

void prba_torch_leave(int64_t entered)
{
	step->own += prba_torch_now() - entered;
}

object *prba_torch_none(void)
{
	py->Py_IncRef(py->_Py_NoneStruct);
	return py->_Py_NoneStruct;
}

object *prba_torch_call(object *function, object *first, object *second)
{
	object *result = py->PyObject_CallFunctionObjArgs(function, first, second, NULL);

	if (!result)
		py->PyErr_Clear();
	py->Py_DecRef(first);
	py->Py_DecRef(second);
	return result;
}

object *prba_torch_argument(object *arguments, intptr_t index)
{
	object *result =
		index < py->PyTuple_Size(arguments) ? py->PyTuple_GetItem(arguments, index) : NULL;

	if (!result)
		py->PyErr_Clear();
	return result;
}

int64_t prba_torch_integer(object *value)
{
	int64_t result = value ? py->PyLong_AsLong(value) : -1;

	if (py->PyErr_Occurred())
		py->PyErr_Clear();
	return result;
}

/** All ranks choose the same steps: by a hash of the number (Vigna's splitmix64). */
static bool is_chosen(int64_t number)
{
	uint64_t x = (uint64_t)number + 0x9e3779b97f4a7c15;

	if (now.first > 0)
		return now.first--;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	x ^= x >> 31;
	/* Not every other one: what the program does every tenth time would be in all or in none.
	 */
	return now.left > 0 ? x & 1 : x % MILLION < now.ppm;
}

static void begin_step(int64_t at)
{
	object *told;

	memset(step, 0, sizeof(*step));
	step->began = at;
	step->number = now.number + 1;
	step->data = step->loading = step->optimizer = -1;
	prba_torch_parts_begin(at);
	if (!is_chosen(step->number))
		return;
	if (!++now.generation)
		now.generation = 1;
	step->generation = now.generation;
	prba_torch_calls_begin();
	step->discovers = !now.discovered;
	told = prba_torch_call(prba_torch.helpers.begin, NULL, NULL);
	step->sampled = told && told != py->_Py_NoneStruct;
	py->Py_DecRef(prba_torch.memory);
	prba_torch.memory = step->sampled && told != py->_Py_TrueStruct ? told : NULL;
	if (!prba_torch.memory)
		py->Py_DecRef(told);
	if (!step->sampled)
		return;
	prba_torch_gpu_begin();
	step->mark = prba_torch_gpu_mark();
}

static struct prba_torch_span span_of(enum prba_torch_stage stage)
{
	return (struct prba_torch_span){.stage = stage,
					.seq = step->calls,
					.number = step->number,
					.local = prba_torch_rows_local()};
}

static void end_step(int64_t at)
{
	bool sampled = step->sampled;

	step->sampled = false;
	if (sampled) {
		const struct prba_torch_span span = span_of(PRBA_TORCH_STEP);

		prba_torch_gpu_end(step->mark, &span);
		py->Py_DecRef(prba_torch_call(prba_torch.helpers.end, NULL, NULL));
	}
	step->sampled = sampled;
	if (sampled && step->data >= 0 && step->loading < 0) {
		struct prba_torch_row row = {.stage = PRBA_TORCH_DATA,
					     .name = "data",
					     .seq = step->calls,
					     .parent = -1,
					     .began = step->began,
					     .duration = step->data};

		prba_torch_rows_put(&row);
	}
	prba_torch_rows_step(at);
	step->sampled = false;
	if (!sampled)
		return;
	/* The first one has named the modules; that is not what is wanted of it. */
	if (now.left > 0 && now.discovered)
		now.left--;
	now.finished += now.discovered;
	now.discovered = true;
}

/** A step has ended; @p number: it is known to be that one; < 0: it is the next. */
static void pass(int64_t at, int64_t number)
{
	bool known = step->began;

	if (known && number >= 0)
		step->number = number;
	if (known)
		end_step(at);
	prba_torch_gpu_read(prba_torch_rows_local());
	now.number = number >= 0 ? number : known ? step->number : 0;
	if (!now.told) {
		prba_torch_watch(now.number);
		prba_torch_log(at, now.number);
	}
	begin_step(at);
}

static void told(int64_t number)
{
	if (!prba_torch_is_on() || number < 0)
		return;
	int64_t at = prba_torch_now();

	now.told = true;
	pass(at, number);
	prba_torch_leave(at);
}

PRBA_EXPORT void probing_recorder_step(int64_t number)
{
	prba_recorder_set_step(number);
	told(number);
}

/**
 * Whether step() got a closure. torch's hook gets the arguments of step(), newer ones with the
 * optimizer first; our own wrapper does not.
 */
static bool has_closure(const void *optimizer, object *arguments)
{
	object *args = prba_torch_argument(arguments, 1),
	       *kwargs = prba_torch_argument(arguments, 2);
	intptr_t given = args ? py->PyTuple_Size(args) : 0, first;

	py->PyErr_Clear();
	first = given > 0 && py->PyTuple_GetItem(args, 0) == optimizer;
	if (given > first && py->PyTuple_GetItem(args, first) != py->_Py_NoneStruct)
		return true;
	if (!kwargs)
		return false;
	args = py->PyDict_GetItemString(kwargs, "closure");
	py->PyErr_Clear();
	return args && args != py->_Py_NoneStruct;
}

/** before(optimizer, …): torch calls it before an optimizer's step. */
static object *before(object *self, object *arguments)
{
	(void)self;
	if (prba_torch_is_on()) {
		now.inside = prba_torch_argument(arguments, 0);
		now.mark = step->sampled ? prba_torch_gpu_mark() : 0;
		now.began = prba_torch_now();
		now.own = step->own;
		now.closures = step->closures;
		now.waited = step->waits_in_optimizer;
		now.closes = has_closure(now.inside, arguments);
		prba_torch_closure_begin(now.began);
	}
	return prba_torch_none();
}

static void put_optimizer(object *optimizer, int64_t at, int64_t duration)
{
	const struct prba_torch_span span = span_of(PRBA_TORCH_OPTIMIZER);
	object *type = py->PyObject_Type(optimizer);
	object *name = type ? py->PyObject_GetAttrString(type, "__name__") : NULL;
	struct prba_torch_row row = {.stage = PRBA_TORCH_OPTIMIZER,
				     .name = name ? py->PyUnicode_AsUTF8AndSize(name, NULL) : NULL,
				     .seq = step->calls,
				     .parent = -1,
				     .micro = step->micro,
				     .began = at - duration, /* after its closure */
				     .duration = duration,
				     .own = step->own,
				     .memory = true,
				     .before = -1};

	prba_torch_gpu_end(now.mark, &span);
	now.mark = 0;
	if (!row.name)
		row.name = "optimizer";
	prba_torch_rows_put(&row);
	py->PyErr_Clear();
	py->Py_DecRef(name);
	py->Py_DecRef(type);
}

/**
 * True for the first optimizer that steps, or for one that makes several steps while the first
 * makes none.
 */
static bool is_leader(object *optimizer)
{
	if (now.leader && now.leader != optimizer && ++now.strange < STRANGE_STEPS)
		return false;
	if (now.leader != optimizer) {
		now.leader = optimizer;
		step->began = 0;
	}
	now.strange = 0;
	return true;
}

/** How many steps it has made, for the first of them that is seen; later ones are counted. */
static int64_t first_number(object *optimizer)
{
	object *told;
	int64_t number;

	if (step->began)
		return -1;
	py->Py_IncRef(optimizer);
	told = prba_torch_call(prba_torch.helpers.step_of, optimizer, NULL);
	number = told ? prba_torch_integer(told) : -1;
	py->Py_DecRef(told);
	return number;
}

/**
 * after(optimizer, …). Of steps within steps the innermost counts: one that raised is not followed
 * by this, so no depth can be counted.
 */
static object *after(object *self, object *arguments)
{
	object *optimizer = prba_torch_argument(arguments, 0);
	int64_t at, duration;

	(void)self;
	if (!prba_torch_is_on() || !optimizer || now.inside != optimizer)
		return prba_torch_none();
	at = prba_torch_now();
	now.inside = NULL;
	prba_torch_closure_end();
	/* A step may have begun in it, which has closures of its own. */
	if (step->closures < now.closures)
		now.closures = 0;
	duration = at - now.began - (step->own - now.own) - (step->closures - now.closures);
	/* What a closure did within it was not seen: how long it took itself is not known. */
	if (now.closes && !step->sampled && step->closures == now.closures)
		step->blind = true;
	step->optimizer = (step->optimizer < 0 ? 0 : step->optimizer) + duration -
			  (step->waits_in_optimizer - now.waited);
	if (step->sampled)
		put_optimizer(optimizer, at, duration);
	if (!now.told && is_leader(optimizer))
		pass(at, first_number(optimizer));
	/* All of it is of the step that begins here. */
	prba_torch_leave(at);
	return prba_torch_none();
}

/** begin(helpers, world_size): 0, or why there can be no rows, as a positive errno value. */
static object *begin(object *self, object *arguments)
{
	struct prba_torch_helpers *h = &prba_torch.helpers;
	object *helpers = py->PyTuple_GetItem(arguments, 0);
	static const char *const names[] = {"begin",  "end",	   "name",	"inputs", "outputs",
					    "at_end", "step_of",   "watch",	"known",  "device",
					    "stream", "gradients", "outermost", "check",  "log"};
	object **places[] = {&h->begin,	 &h->end,	&h->name,      &h->inputs, &h->outputs,
			     &h->at_end, &h->step_of,	&h->watch,     &h->known,  &h->device,
			     &h->stream, &h->gradients, &h->outermost, &h->check,  &h->log};
	object *found[sizeof(names) / sizeof(*names)];
	int error;

	(void)self;
	if (prba_torch_is_on())
		return py->PyLong_FromVoidPtr(NULL);
	if (!py->PyTuple_Size || !py->Py_IncRef || !py->PyObject_Type || !py->_Py_NoneStruct ||
	    !py->_Py_TrueStruct || !py->PyUnicode_AsUTF8AndSize)
		return py->PyLong_FromVoidPtr((void *)(intptr_t)ENOSYS);
	error = prba_torch_rows_open();
	if (error)
		return py->PyLong_FromVoidPtr((void *)(intptr_t)-error);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		found[i] = py->PyDict_GetItemString(helpers, names[i]);
		if (!found[i])
			return py->PyLong_FromVoidPtr((void *)(intptr_t)EINVAL);
	}
	/* Objects of an interpreter that has ended were freed with it. */
	memset(&now, 0, sizeof(now));
	memset(step, 0, sizeof(*step));
	prba_torch_parts_forget();
	prba_torch.rooted = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		py->Py_IncRef(found[i]);
		*places[i] = found[i];
	}
	prba_torch.world = prba_torch_integer(prba_torch_argument(arguments, 1));
	prba_torch.life = prba_finalization_number();
	prba_torch.memory = NULL;
	prba_torch.on = true;
	return py->PyLong_FromVoidPtr(NULL);
}

/** rate(ppm, left[, first]): the share of steps to sample, how many soon, and how many at once. */
static object *rate(object *self, object *arguments)
{
	(void)self;
	now.ppm = (uint32_t)prba_torch_integer(prba_torch_argument(arguments, 0));
	now.left = prba_torch_integer(prba_torch_argument(arguments, 1));
	if (py->PyTuple_Size(arguments) > 2)
		now.first = prba_torch_integer(prba_torch_argument(arguments, 2));
	return prba_torch_none();
}

/** configured(): the share that probing.torch.profiling says, in millionths. */
static object *configured(object *self, object *arguments)
{
	(void)self, (void)arguments;
	return py->PyLong_FromVoidPtr(
		(void *)(uintptr_t)(prba_config_number(PRB_CONFIG_TORCH_PROFILING) * MILLION));
}

/** nan(): whether losses and outputs are checked. */
static object *checks_nan(object *self, object *arguments)
{
	(void)self, (void)arguments;
	return py->PyBool_FromLong(prba_config_number(PRB_CONFIG_TORCH_NAN) > 0);
}

/** count(): steps that were sampled, and whose modules had names already. */
static object *count(object *self, object *arguments)
{
	(void)self, (void)arguments;
	return py->PyLong_FromVoidPtr((void *)(uintptr_t)now.finished);
}

/** stop(): the helpers are released. Hooks that are left do nothing. */
static object *stop(object *self, object *arguments)
{
	struct prba_torch_helpers h = prba_torch.helpers;
	object *held[] = {h.begin,     h.end,	h.name,	 h.inputs,	   h.outputs, h.at_end,
			  h.step_of,   h.watch, h.known, h.device,	   h.stream,  h.gradients,
			  h.outermost, h.check, h.log,	 prba_torch.memory};
	bool was = prba_torch_is_on();

	(void)self, (void)arguments;
	if (was && step->sampled)
		py->Py_DecRef(prba_torch_call(h.end, NULL, NULL));
	prba_torch_gpu_stop();
	prba_torch.on = false;
	now.first = 0;
	memset(step, 0, sizeof(*step));
	memset(&prba_torch.helpers, 0, sizeof(prba_torch.helpers));
	prba_torch.memory = NULL;
	for (size_t i = 0; was && i < sizeof(held) / sizeof(*held); i++)
		py->Py_DecRef(held[i]);
	return py->PyBool_FromLong(was);
}

void prba_torch_forked(void)
{
	prba_torch_gpu_forget();
	prba_torch.on = false;
}

struct prba_method prba_torch_methods[PRBA_TORCH_METHODS] = {
	{"torch_begin", begin, METH_VARARGS, NULL},
	{"torch_rate", rate, METH_VARARGS, NULL},
	{"torch_count", count, METH_VARARGS, NULL},
	{"torch_configured", configured, METH_VARARGS, NULL},
	{"torch_stop", stop, METH_VARARGS, NULL},
	{"torch_module", prba_torch_module, METH_VARARGS, NULL},
	{"torch_before", before, METH_VARARGS, NULL},
	{"torch_after", after, METH_VARARGS, NULL},
	{"torch_pre", prba_torch_pre, METH_VARARGS, NULL},
	{"torch_post", prba_torch_post, METH_VARARGS, NULL},
	{"torch_grad_begin", prba_torch_grad_begin, METH_VARARGS, NULL},
	{"torch_grad_end", prba_torch_grad_end, METH_VARARGS, NULL},
	{"torch_watched", prba_torch_watched, METH_VARARGS, NULL},
	{"torch_variable", prba_torch_variable, METH_VARARGS, NULL},
	{"torch_comm", prba_torch_comm, METH_VARARGS, NULL},
	{"torch_pass_end", prba_torch_pass_end, METH_VARARGS, NULL},
	{"torch_pass", prba_torch_pass, METH_VARARGS, NULL},
	{"torch_loading", prba_torch_loading, METH_VARARGS, NULL},
	{"torch_gpu_waits", prba_torch_gpu_waits, METH_VARARGS, NULL},
	{"torch_root", prba_torch_root, METH_VARARGS, NULL},
	{"torch_rooted", prba_torch_rooted, METH_VARARGS, NULL},
	{"torch_communicating", prba_torch_communicating, METH_VARARGS, NULL},
	{"torch_saving", prba_torch_saving, METH_VARARGS, NULL},
	{"torch_op_rows", prba_torch_op_rows, METH_VARARGS, NULL},
	{"torch_nan", checks_nan, METH_VARARGS, NULL},
	{"torch_log", prba_torch_log_row, METH_VARARGS, NULL},
	{"torch_hush", prba_torch_hush, METH_VARARGS, NULL},
};
