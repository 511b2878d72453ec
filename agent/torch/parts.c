/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parts of every step, from calls that agent/torch/torch.py and comm.py wrap. */
#include <string.h>

#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

enum { DEEPEST = 32 };

/** A part that begins within another one interrupts it, so the parts add up. */
static struct {
	uint8_t open[DEEPEST]; /* enum prba_torch_part, outermost first */
	unsigned depth;
	unsigned over;	    /* parts that were too deep */
	int64_t since, own; /* since when the innermost one runs, and what was ours then */
	unsigned long thread;
} now;

#define step (&prba_torch.step)

void prba_torch_parts_begin(int64_t at)
{
	unsigned long thread = py->PyThread_get_thread_ident();

	if (now.thread != thread)
		now.depth = now.over = 0;
	now.thread = thread;
	now.since = at;
	now.own = step->own;
	step->rooted = prba_torch.rooted;
}

void prba_torch_parts_forget(void)
{
	memset(&now, 0, sizeof(now));
}

/** The time since the last turn belongs to the innermost part. */
static void turn(int64_t at)
{
	int64_t passed = at - now.since - (step->own - now.own);

	now.since = at;
	now.own = step->own;
	if (!now.depth)
		return;
	step->parts[now.open[now.depth - 1]] += passed;
	if (now.open[now.depth - 1] != PRBA_TORCH_COMMUNICATING)
		return;
	if (now.depth > 1)
		step->waits_in[now.open[now.depth - 2]] += passed;
	else if (prba_torch_in_optimizer())
		step->waits_in_optimizer += passed;
}

static void enter(enum prba_torch_part part, int64_t at)
{
	turn(at);
	if (now.depth == DEEPEST)
		now.over++;
	else
		now.open[now.depth++] = part;
	if (part == PRBA_TORCH_LOADING)
		step->loads = true;
	if (part == PRBA_TORCH_LOADING || part == PRBA_TORCH_PASSING || part == PRBA_TORCH_CALLING)
		prba_torch_closure_enter(at);
}

static void leave(int64_t at)
{
	enum prba_torch_part part;

	turn(at);
	if (now.over) {
		now.over--;
	} else if (now.depth) {
		part = now.open[--now.depth];
		if (!now.depth && part != PRBA_TORCH_COMMUNICATING && part != PRBA_TORCH_SAVING)
			prba_torch_closure_left(at);
		if (!now.depth && part == PRBA_TORCH_PASSING)
			prba_torch_closure_leave(at);
	}
}

/** What an outermost call of a module is: within another part it is of that one. */
static enum prba_torch_part kind_of_call(int64_t at)
{
	object *told;
	bool evaluates;

	if (now.depth)
		return now.open[now.depth - 1];
	told = prba_torch_call(prba_torch.helpers.gradients, NULL, NULL);
	evaluates = told && told != py->_Py_TrueStruct;
	py->Py_DecRef(told);
	if (step->data < 0)
		step->data = at - step->began - step->own;
	return evaluates ? PRBA_TORCH_EVALUATING : PRBA_TORCH_CALLING;
}

/** A wrapped call begins, or ends: part(begins). */
static object *tell(enum prba_torch_part part, object *arguments)
{
	int64_t at;

	if (!prba_torch_is_on() || !step->began || py->PyThread_get_thread_ident() != now.thread)
		return prba_torch_none();
	at = prba_torch_now();
	if (prba_torch_integer(prba_torch_argument(arguments, 0)) <= 0)
		leave(at);
	else
		enter(part == PRBA_TORCH_CALLING ? kind_of_call(at) : part, at);
	prba_torch_leave(at);
	return prba_torch_none();
}

object *prba_torch_loading(object *self, object *arguments)
{
	(void)self;
	py->Py_DecRef(tell(PRBA_TORCH_LOADING, arguments));
	return prba_torch_loading_sampled(arguments);
}

object *prba_torch_pass(object *self, object *arguments)
{
	(void)self;
	py->Py_DecRef(tell(PRBA_TORCH_PASSING, arguments));
	return prba_torch_pass_sampled(arguments);
}

object *prba_torch_root(object *self, object *arguments)
{
	(void)self;
	return tell(PRBA_TORCH_CALLING, arguments);
}

object *prba_torch_communicating(object *self, object *arguments)
{
	(void)self;
	return tell(PRBA_TORCH_COMMUNICATING, arguments);
}

object *prba_torch_saving(object *self, object *arguments)
{
	(void)self;
	return tell(PRBA_TORCH_SAVING, arguments);
}

object *prba_torch_rooted(object *self, object *arguments)
{
	(void)self;
	prba_torch.rooted = prba_torch_integer(prba_torch_argument(arguments, 0)) > 0;
	if (!prba_torch.rooted)
		step->rooted = false;
	return prba_torch_none();
}
