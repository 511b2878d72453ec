/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls of modules in a sampled step, forward and backward. */
#include <string.h>

#include "agent/inside/config.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

enum {
	LANES = 32,	  /* threads that run modules in one step; further threads are not seen */
	DEEPEST = 200,	  /* calls within calls */
	NEAR = 512,	  /* bytes of C stack that calls at the same place differ by at most */
	NUMBER_BITS = 24, /* of a call's number, beside its step's number */
};

/** A call that has not returned. */
struct open_call {
	uintptr_t place; /* on the C stack */
	const void *module;
	int64_t began, own;
	int64_t memory; /* before it */
	uint32_t call;
	uint32_t mark; /* of the GPU */
};

/** The calls that one thread is in. */
struct lane {
	unsigned long thread;
	uint32_t depth;
	uint32_t over;	/* calls that were too deep */
	bool evaluates; /* the outermost call is without gradients */
	struct open_call calls[DEEPEST];
};

/** A call, kept until its backward has ended. */
struct call {
	int64_t began, own; /* backward; 0: no gradient has arrived */
	int64_t parent;
	uint32_t module, micro;
	uint32_t mark; /* of the GPU, backward */
	uint16_t depth;
	int16_t waits; /* gradients of inputs that have not arrived; -1: backward is not followed */
	bool to_end;   /* it lasts until the end of the backward pass */
	bool done, root;
};

static struct {
	struct lane lanes[LANES];
	uint32_t lane_count;
	struct call calls[PRBA_TORCH_CALLS];
	uint32_t open;	  /* calls whose backward has begun and not ended */
	const void *root; /* the outermost module of the step; only compared */
	bool end_is_told; /* of the backward pass that runs */
	int64_t pass_began, pass_own;
	unsigned pass_depth;	   /* calls of torch.autograd.backward(); 0: it is not known */
	unsigned long pass_thread; /* which runs it */
	uintptr_t pass_place;	   /* on its C stack */
	/* The optimizer's step() that runs. */
	struct {
		bool runs, called;	  /* called: a closure of it has ended */
		int64_t began, own;	  /* of step() */
		int64_t since, since_own; /* a closure, 0: none runs */
		int64_t left, left_own;	  /* when the last outermost call of a module ended */
	} in;
	unsigned long loading_thread; /* which runs the steps */
	unsigned loading_depth;
	int64_t loading_began, loading_own;
} now;

#define step (&prba_torch.step)

void prba_torch_calls_begin(void)
{
	now.lane_count = 0;
	now.open = 0;
	now.root = NULL;
	now.end_is_told = false;
	memset(&now.in, 0, sizeof(now.in));
	now.loading_thread = py->PyThread_get_thread_ident();
	now.loading_depth = now.pass_depth = 0;
}

void prba_torch_closure_begin(int64_t at)
{
	memset(&now.in, 0, sizeof(now.in));
	now.in.runs = true;
	now.in.began = at;
	now.in.own = step->own;
}

/**
 * Only a closure loads data, calls modules or runs backward within step(). Before the first one the
 * optimizer has done nothing yet.
 */
void prba_torch_closure_enter(int64_t entered)
{
	if (!now.in.runs || now.in.since)
		return;
	now.in.since = now.in.called ? entered : now.in.began;
	now.in.since_own = now.in.called ? step->own : now.in.own;
}

static void leave_closure(int64_t at, int64_t own)
{
	if (!now.in.runs || !now.in.since)
		return;
	step->closures += at - now.in.since - (own - now.in.since_own);
	now.in.since = 0;
	now.in.called = true;
}

void prba_torch_closure_leave(int64_t at)
{
	leave_closure(at, step->own);
}

void prba_torch_closure_left(int64_t at)
{
	now.in.left = at;
	now.in.left_own = step->own;
}

bool prba_torch_in_optimizer(void)
{
	return now.in.runs && !now.in.since;
}

void prba_torch_closure_end(void)
{
	if (now.in.left > now.in.since)
		leave_closure(now.in.left, now.in.left_own);
	now.in.runs = false;
}

/** loading(begins): the next batch is asked for, or is there. */
object *prba_torch_loading_sampled(object *arguments)
{
	int64_t entered;
	bool begins;

	if (!prba_torch_is_on() || !step->sampled ||
	    py->PyThread_get_thread_ident() != now.loading_thread)
		return prba_torch_none();
	entered = prba_torch_now();
	begins = prba_torch_integer(prba_torch_argument(arguments, 0)) > 0;
	if (begins && !now.loading_depth++) {
		prba_torch_closure_enter(entered);
		now.loading_began = entered;
		now.loading_own = step->own;
	} else if (!begins && now.loading_depth && !--now.loading_depth) {
		struct prba_torch_row row = {.stage = PRBA_TORCH_DATA,
					     .name = "data loading",
					     .seq = step->calls,
					     .parent = -1,
					     .micro = step->micro,
					     .began = now.loading_began,
					     .own = now.loading_own,
					     .duration = entered - now.loading_began -
							 (step->own - now.loading_own)};

		step->loading = (step->loading < 0 ? 0 : step->loading) + row.duration;
		prba_torch_rows_put(&row);
	}
	prba_torch_leave(entered);
	return prba_torch_none();
}

static void begin_pass(int64_t entered)
{
	now.pass_began = entered;
	now.pass_own = step->own;
	prba_torch_closure_enter(entered);
}

static void end_pass(int64_t entered)
{
	step->backward += entered - now.pass_began - (step->own - now.pass_own);
	leave_closure(entered, step->own);
}

/** pass(begins): torch.autograd.backward(), which may be called from within itself. */
object *prba_torch_pass_sampled(object *arguments)
{
	int64_t entered;
	bool begins;

	if (!prba_torch_is_on() || !step->sampled ||
	    py->PyThread_get_thread_ident() != now.loading_thread)
		return prba_torch_none();
	entered = prba_torch_now();
	begins = prba_torch_integer(prba_torch_argument(arguments, 0)) > 0;
	if (begins && !now.pass_depth++)
		begin_pass(entered);
	else if (!begins && now.pass_depth && !--now.pass_depth)
		end_pass(entered);
	prba_torch_leave(entered);
	return prba_torch_none();
}

/** The calling thread's; NULL: there are too many. */
static struct lane *find_lane(void)
{
	unsigned long thread = py->PyThread_get_thread_ident();
	struct lane *lane;

	for (uint32_t i = 0; i < now.lane_count; i++)
		if (now.lanes[i].thread == thread)
			return &now.lanes[i];
	if (now.lane_count == LANES)
		return NULL;
	lane = &now.lanes[now.lane_count++];
	lane->thread = thread;
	lane->depth = lane->over = 0;
	return lane;
}

/** The module's number; 0: it has none. */
static uint32_t number_of(object *module, const struct lane *lane)
{
	const struct prba_torch_helpers *h = &prba_torch.helpers;
	object *address = py->PyLong_FromVoidPtr(module), *found, *told;
	int64_t number;

	if (!address)
		return 0;
	found = py->PyDict_GetItem(h->known, address);
	py->Py_DecRef(address);
	if (found) {
		number = prba_torch_integer(found);
	} else {
		object *root = lane->depth ? (object *)lane->calls[0].module : module;

		py->Py_IncRef(module);
		py->Py_IncRef(root);
		told = prba_torch_call(h->name, module, root);
		number = told ? prba_torch_integer(told) : 0;
		py->Py_DecRef(told);
	}
	return number > 0 && number < PRBA_TORCH_MODULES ? (uint32_t)number : 0;
}

/** Calls that an exception has left lie deeper than this one, or at its place. */
static void drop_left(struct lane *lane, uintptr_t place, const void *module)
{
	while (lane->depth) {
		const struct open_call *top = &lane->calls[lane->depth - 1];

		if (top->place + NEAR < place ||
		    (top->place <= place + NEAR && top->module == module))
			lane->depth--;
		else
			break;
	}
}

static struct call *call_of(int64_t id)
{
	uint32_t number = (uint32_t)id & ((1u << NUMBER_BITS) - 1);

	if ((uint64_t)id >> NUMBER_BITS != step->generation || !step->sampled ||
	    number >= PRBA_TORCH_CALLS)
		return NULL;
	return &now.calls[number];
}

static object *id_of(uint32_t call)
{
	return py->PyLong_FromVoidPtr((void *)((uintptr_t)step->generation << NUMBER_BITS | call));
}

/** The inputs' gradients mark the end of backward: see inputs() in agent/torch/torch.py. */
static void watch_inputs(struct call *call, uint32_t number, object *inputs)
{
	object *told;
	int64_t count;

	py->Py_IncRef(inputs);
	told = prba_torch_call(prba_torch.helpers.inputs, id_of(number), inputs);
	count = told ? prba_torch_integer(told) : -1;
	py->Py_DecRef(told);
	call->waits = (int16_t)(count < -1 || count > 1000 ? -1 : count);
	/* No input needs a gradient: nothing comes after it in the pass. */
	call->to_end = !count || (count < 0 && !call->depth);
	if (call->to_end)
		call->waits = 0;
}

/**
 * A backward pass that raised has no end of its own. Its thread goes on at a place of the stack
 * that is outside of it, or, of one that ran in a thread of autograd, the thread of the step goes
 * on.
 */
static bool is_left(const struct lane *lane, uintptr_t place)
{
	if (!now.open || lane->depth)
		return false;
	return lane->thread == now.pass_thread ? place > now.pass_place + NEAR : lane == now.lanes;
}

static void forget_pass(void)
{
	uint32_t count = step->calls < PRBA_TORCH_CALLS ? step->calls : PRBA_TORCH_CALLS;

	for (uint32_t i = 0; i < count; i++)
		now.calls[i].done |= now.calls[i].began != 0;
	now.open = 0;
	now.end_is_told = false;
}

/** An outermost call of training or evaluation begins. */
static void enter_outermost(struct lane *lane, object *module, int64_t entered)
{
	object *told = prba_torch_call(prba_torch.helpers.gradients, NULL, NULL);

	lane->evaluates = told && told != py->_Py_TrueStruct;
	py->Py_DecRef(told);
	prba_torch_closure_enter(entered);
	py->Py_IncRef(module);
	py->Py_DecRef(prba_torch_call(prba_torch.helpers.outermost, module, NULL));
	if (lane->evaluates)
		return;
	if (!now.root)
		now.root = module;
	if (module == now.root)
		step->micro++;
}

static void enter(object *module, object *inputs, int64_t entered, uintptr_t place)
{
	struct lane *lane = find_lane();
	struct open_call *open;
	struct call *call;
	uint32_t number;

	if (!lane)
		return;
	drop_left(lane, place, module);
	if (is_left(lane, place))
		forget_pass();
	if (lane->depth == DEEPEST) {
		lane->over++;
		return;
	}
	if (step->data < 0)
		step->data = entered - step->began - step->own;
	if (!lane->depth && !now.open)
		enter_outermost(lane, module, entered);
	open = &lane->calls[lane->depth];
	*open = (struct open_call){.place = place, .module = module, .call = step->calls++};
	number = number_of(module, lane);
	if (open->call < PRBA_TORCH_CALLS) {
		call = &now.calls[open->call];
		*call = (struct call){
			.parent = lane->depth ? (int64_t)lane->calls[lane->depth - 1].call : -1,
			.module = number,
			.micro = step->micro,
			.depth = (uint16_t)lane->depth,
			.root = !lane->depth,
		};
		if (now.open || lane->evaluates)
			call->waits = -1;
		else
			watch_inputs(call, open->call, inputs);
	}
	lane->depth++;
	open->memory = prba_torch_memory();
	open->mark = prba_torch_gpu_mark();
	open->began = prba_torch_now();
	/* The time of this call of ours will have been added by then. */
	open->own = step->own + (open->began - entered);
}

object *prba_torch_pre(object *self, object *arguments)
{
	object *module, *inputs;
	int64_t entered;

	(void)self;
	if (!prba_torch_is_on() || !step->sampled)
		return prba_torch_none();
	entered = prba_torch_now();
	module = prba_torch_argument(arguments, 0);
	inputs = prba_torch_argument(arguments, 1);
	if (module && inputs)
		enter(module, inputs, entered, (uintptr_t)__builtin_frame_address(0));
	prba_torch_leave(entered);
	return prba_torch_none();
}

static void end_on_gpu(uint32_t mark, enum prba_torch_stage stage, uint32_t module, int64_t seq)
{
	const struct prba_torch_span span = {stage, module, seq, step->number,
					     prba_torch_rows_local()};

	prba_torch_gpu_end(mark, &span);
}

static void put_forward(const struct lane *lane, const struct open_call *open, int64_t entered)
{
	const struct call *call = open->call < PRBA_TORCH_CALLS ? &now.calls[open->call] : NULL;
	int64_t duration = entered - open->began - (step->own - open->own);
	struct prba_torch_row row = {
		.stage = now.open	   ? PRBA_TORCH_RECOMPUTE
			 : lane->evaluates ? PRBA_TORCH_EVALUATION
					   : PRBA_TORCH_FORWARD,
		.module = call ? call->module : 0,
		.seq = open->call,
		.parent = lane->depth ? (int64_t)lane->calls[lane->depth - 1].call : -1,
		.depth = lane->depth,
		.micro = step->micro,
		.began = open->began,
		.own = open->own,
		.duration = duration < 0 ? 0 : duration,
		.memory = true,
		.before = open->memory,
	};

	end_on_gpu(open->mark, row.stage, row.module, row.seq);
	if (!lane->depth && !now.open) {
		*(lane->evaluates ? &step->evaluation : &step->forward) += row.duration;
		prba_torch_closure_left(entered);
	}
	prba_torch_rows_put(&row);
}

static void leave(object *module, object *output, int64_t entered)
{
	struct lane *lane = find_lane();
	const struct open_call *open;
	uint32_t depth;
	object *told;

	if (!lane)
		return;
	if (lane->over) {
		lane->over--;
		return;
	}
	for (depth = lane->depth; depth && lane->calls[depth - 1].module != module; depth--)
		;
	/* It was entered before the hooks were there, or it is no call that we know of. */
	if (!depth)
		return;
	lane->depth = depth - 1;
	open = &lane->calls[lane->depth];
	put_forward(lane, open, entered);
	if (open->call >= PRBA_TORCH_CALLS || now.calls[open->call].waits < 0)
		return;
	py->Py_IncRef(output);
	told = prba_torch_call(prba_torch.helpers.outputs, id_of(open->call), output);
	py->Py_DecRef(told);
}

/** Looks for NaN in what a module gave: see agent/torch/nan.py. */
static void check(object *arguments)
{
	object *result = py->PyObject_Call
				 ? py->PyObject_Call(prba_torch.helpers.check, arguments, NULL)
				 : NULL;

	if (!result)
		py->PyErr_Clear();
	py->Py_DecRef(result);
}

object *prba_torch_post(object *self, object *arguments)
{
	object *module, *output;
	int64_t entered;

	(void)self;
	if (!prba_torch_is_on() || !step->sampled)
		return prba_torch_none();
	entered = prba_torch_now();
	module = prba_torch_argument(arguments, 0);
	output = prba_torch_argument(arguments, 2);
	if (module && output)
		leave(module, output, entered);
	if (prba_config_number(PRB_CONFIG_TORCH_NAN) > 0)
		check(arguments);
	prba_torch_leave(entered);
	return prba_torch_none();
}

static void put_backward(struct call *call, int64_t entered)
{
	int64_t duration = entered - call->began - (step->own - call->own);
	struct prba_torch_row row = {
		.stage = PRBA_TORCH_BACKWARD,
		.module = call->module,
		.seq = call - now.calls,
		.parent = call->parent,
		.depth = call->depth,
		.micro = call->micro,
		.began = call->began,
		.own = call->own,
		.duration = duration < 0 ? 0 : duration,
	};

	end_on_gpu(call->mark, row.stage, row.module, row.seq);
	call->done = true;
	now.open--;
	prba_torch_rows_put(&row);
}

/** The first gradient of its outputs: grad_begin(id, gradient). */
static void begin_backward(struct call *call, int64_t entered, uintptr_t place)
{
	if (!now.end_is_told) {
		object *told = prba_torch_call(prba_torch.helpers.at_end, id_of(0), NULL);

		now.end_is_told = told != NULL;
		now.pass_thread = py->PyThread_get_thread_ident();
		now.pass_place = place;
		if (!now.pass_depth)
			begin_pass(entered);
		py->Py_DecRef(told);
	}
	now.open++;
	call->mark = prba_torch_gpu_mark();
	call->began = prba_torch_now();
	call->own = step->own + (call->began - entered);
}

object *prba_torch_grad_begin(object *self, object *arguments)
{
	struct call *call;
	int64_t entered;

	(void)self;
	if (!prba_torch_is_on() || !step->sampled)
		return prba_torch_none();
	entered = prba_torch_now();
	call = call_of(prba_torch_integer(prba_torch_argument(arguments, 0)));
	if (call && !call->began && !call->done)
		begin_backward(call, entered, (uintptr_t)__builtin_frame_address(0));
	prba_torch_leave(entered);
	return prba_torch_none();
}

object *prba_torch_grad_end(object *self, object *arguments)
{
	struct call *call;
	int64_t entered;

	(void)self;
	if (!prba_torch_is_on() || !step->sampled)
		return prba_torch_none();
	entered = prba_torch_now();
	call = call_of(prba_torch_integer(prba_torch_argument(arguments, 0)));
	if (call && call->began && !call->done && call->waits > 0 && !--call->waits)
		put_backward(call, entered);
	prba_torch_leave(entered);
	return prba_torch_none();
}

/** The backward pass has ended: pass_end(id of any call of the step). */
object *prba_torch_pass_end(object *self, object *arguments)
{
	int64_t entered;

	(void)self;
	if (!prba_torch_is_on() || !step->sampled)
		return prba_torch_none();
	entered = prba_torch_now();
	if (call_of(prba_torch_integer(prba_torch_argument(arguments, 0)))) {
		uint32_t count = step->calls < PRBA_TORCH_CALLS ? step->calls : PRBA_TORCH_CALLS;

		for (uint32_t i = 0; i < count; i++) {
			struct call *call = &now.calls[i];

			if (!call->began || call->done)
				continue;
			/* Of one whose inputs got no gradient, the end was not seen. */
			if (call->to_end)
				put_backward(call, entered);
			call->done = true;
		}
		now.open = 0;
		now.end_is_told = false;
		if (!now.pass_depth)
			end_pass(entered);
	}
	prba_torch_leave(entered);
	return prba_torch_none();
}
