/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A suspended generator keeps what it awaits on top of its value stack. Whether it awaits (rather
 * than yields) is in its state from 3.13 on, before that in the instruction that it will resume at.
 */
#include "python/repr/builtin/coroutine.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	CHAIN_MAX = 100000,
	SLOTS_MAX = 65536,
	NAME_MAX_LENGTH = 4096,
	YIELD_FROM = 72,     /* the opcode, up to 3.10 */
	RESUME_AWAITING = 2, /* argument of RESUME after a yield from; 3 after an await */
};

/* Values of gi_frame_state; what lies between `suspended` and `executing` awaits. */
static const struct states {
	uint16_t since;
	int8_t created, suspended, executing;
	bool by_instruction; /* one state for both kinds of suspension */
} states[] = {
	{0x030b, -2, -1, 0, true},
	{0x030d, -3, -2, 0, false},
	{0x030f, 0, 1, 4, false},
};

static const struct states *states_find(uint16_t version)
{
	const struct states *found = &states[0];

	for (size_t i = 1; i < PRB_ARRAY_SIZE(states); i++)
		if (version >= states[i].since)
			found = &states[i];
	return found;
}

/* Up to 3.10 the code is a bytes object; the unit behind the position says how it goes on. */
static struct prb_error *next_is_yield_from(struct prb_repr *r, const struct prb_py_frame *frame,
					    bool *ret)
{
	uint64_t bytes;
	int64_t position;
	uint8_t opcode;

	PRB_TRY(prb_python_position(r->py, r->mem, frame, &position));
	PRB_TRY(prb_repr_word(r, frame->code + (uint64_t)r->layout->code_bytes, &bytes));
	PRB_TRY(prb_mem_read_u8(
		r->mem, bytes + (uint64_t)r->layout->bytes_data + (uint64_t)position + 2, &opcode));
	*ret = opcode == YIELD_FROM;
	return NULL;
}

/* The slot above the topmost item of a suspended PyFrameObject; 0 while it runs. */
static struct prb_error *pyframe_stack_end(struct prb_repr *r, uint64_t frame, uint64_t *ret)
{
	const struct prb_layout *l = r->layout;
	uint32_t depth;

	if (l->pyframe_stack_top >= 0) /* up to 3.9 */
		return prb_repr_word(r, frame + (uint64_t)l->pyframe_stack_top, ret);
	PRB_TRY(prb_repr_word(r, frame + (uint64_t)l->pyframe_value_stack, ret));
	PRB_TRY(prb_mem_read_u32(r->mem, frame + (uint64_t)l->pyframe_stack_depth, &depth));
	if (depth > SLOTS_MAX)
		*ret = 0; /* -1 while it runs */
	else
		*ret += (uint64_t)depth * 8;
	return NULL;
}

static struct prb_error *read_slot(struct prb_repr *r, uint64_t start, uint64_t end, uint64_t *ret)
{
	uint64_t slot;

	*ret = 0;
	/* From 3.15 on an empty slot or a plain number may lie above what is awaited. */
	for (unsigned i = 1; i <= 2; i++) {
		if (end < start + 8 * i || end - start > 8 * SLOTS_MAX || (end - start) % 8)
			return prb_repr_bad(end, "not the value stack of a suspended generator");
		PRB_TRY(prb_repr_word(r, end - 8 * i, &slot));
		if ((slot & 3) != 3)
			*ret = slot & ~3ULL;
		if (*ret)
			return NULL;
	}
	return prb_repr_bad(end, "a generator that awaits nothing");
}

static struct prb_error *read_pyframe(struct prb_repr *r, uint64_t address,
				      struct prb_coroutine *ret, uint64_t *awaited)
{
	uint64_t end;
	bool awaits;

	if (!address) {
		ret->state = PRB_COROUTINE_FINISHED;
		return NULL;
	}
	PRB_TRY(prb_python_frame_at(r->py, r->mem, address, &ret->frame));
	PRB_TRY(pyframe_stack_end(r, address, &end));
	if (!end) {
		ret->state = PRB_COROUTINE_RUNNING;
		return NULL;
	}
	if ((int64_t)ret->frame.position < 0) {
		ret->state = PRB_COROUTINE_CREATED;
		return NULL;
	}
	PRB_TRY(next_is_yield_from(r, &ret->frame, &awaits));
	ret->state = awaits ? PRB_COROUTINE_AWAITING : PRB_COROUTINE_YIELDED;
	if (!awaits)
		return NULL;
	return read_slot(r, address + (uint64_t)r->layout->pyframe_localsplus, end, awaited);
}

/* The unit behind the one that yielded is RESUME, in whatever form; its argument says why. */
static struct prb_error *resumes_await(struct prb_repr *r, const struct prb_py_frame *frame,
				       bool *ret)
{
	uint8_t argument;

	PRB_TRY(prb_mem_read_u8(r->mem, frame->position + 3, &argument));
	*ret = argument >= RESUME_AWAITING;
	return NULL;
}

static bool is_finished(const struct states *s, int8_t value)
{
	return value > s->executing; /* completed or cleared */
}

static struct prb_error *set_state(struct prb_repr *r, const struct states *s, int8_t value,
				   struct prb_coroutine *ret)
{
	bool awaits = value != s->suspended;

	if (value < s->created)
		return prb_repr_bad(ret->object, "a generator in no known state");
	if (value == s->created) {
		ret->state = PRB_COROUTINE_CREATED;
		return NULL;
	}
	if (value == s->executing) {
		ret->state = PRB_COROUTINE_RUNNING;
		return NULL;
	}
	if (s->by_instruction)
		PRB_TRY(resumes_await(r, &ret->frame, &awaits));
	ret->state = awaits ? PRB_COROUTINE_AWAITING : PRB_COROUTINE_YIELDED;
	return NULL;
}

/* The slot above the topmost item: a count of slots up to 3.13, a pointer since then. */
static struct prb_error *interp_stack_end(struct prb_repr *r, uint64_t frame, uint64_t *ret)
{
	const struct prb_layout *l = r->layout;
	uint32_t count;

	if (l->behaviour->tagged_refs)
		return prb_repr_word(r, frame + (uint64_t)l->frame_stack_top, ret);
	PRB_TRY(prb_mem_read_u32(r->mem, frame + (uint64_t)l->frame_stack_top, &count));
	*ret = count > 2 * SLOTS_MAX /* -1 while it runs */
		       ? 0
		       : frame + (uint64_t)l->frame_localsplus + (uint64_t)count * 8;
	return NULL;
}

struct prb_error *prb_frame_stack_end(struct prb_repr *r, uint64_t frame, uint64_t *ret)
{
	const struct prb_layout *l = r->layout;

	*ret = 0;
	if (l->behaviour->chain != PRB_CHAIN_PYFRAME)
		return l->frame_stack_top > 0 ? interp_stack_end(r, frame, ret) : NULL;
	return l->pyframe_stack_top > 0 || l->pyframe_stack_depth > 0
		       ? pyframe_stack_end(r, frame, ret)
		       : NULL;
}

static struct prb_error *read_interp_frame(struct prb_repr *r, struct prb_coroutine *ret,
					   uint64_t *awaited)
{
	const struct prb_layout *l = r->layout;
	const struct states *s = states_find(l->version);
	uint64_t frame = ret->object + (uint64_t)l->generator_frame, end;
	uint8_t value;

	PRB_TRY(prb_mem_read_u8(r->mem, ret->object + (uint64_t)l->generator_frame_state, &value));
	if (is_finished(s, (int8_t)value)) {
		ret->state = PRB_COROUTINE_FINISHED;
		return NULL;
	}
	PRB_TRY(prb_python_frame_at(r->py, r->mem, frame, &ret->frame));
	PRB_TRY(set_state(r, s, (int8_t)value, ret));
	if (ret->state != PRB_COROUTINE_AWAITING)
		return NULL;
	PRB_TRY(interp_stack_end(r, frame, &end));
	return read_slot(r, frame + (uint64_t)l->frame_localsplus, end, awaited);
}

struct prb_error *prb_coroutine_read(struct prb_repr *r, struct prb_coroutine *ret,
				     uint64_t *awaited)
{
	const struct prb_layout *l = r->layout;
	bool pyframe = l->behaviour->chain == PRB_CHAIN_PYFRAME;
	uint64_t frame;

	*awaited = 0;
	if (l->generator_frame <= 0 || (!pyframe && l->generator_frame_state <= 0) ||
	    (pyframe && l->pyframe_stack_top <= 0 && l->pyframe_stack_depth <= 0))
		return prb_error_create(
			PRB_ERROR_UNSUPPORTED,
			"the memory layout of generators of this Python is unknown");
	if (!pyframe)
		return read_interp_frame(r, ret, awaited);
	PRB_TRY(prb_repr_word(r, ret->object + (uint64_t)l->generator_frame, &frame));
	return read_pyframe(r, frame, ret, awaited);
}

static bool is_one_of(const struct prb_type *type, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (prb_type_is(type, names[i]))
			return true;
	return false;
}

bool prb_coroutine_is(const struct prb_type *type)
{
	static const char *const names[] = {"coroutine", "generator", "async_generator"};

	return is_one_of(type, names, PRB_ARRAY_SIZE(names));
}

/* Objects that only pass on to their first member. */
static bool passes_on(const struct prb_type *type)
{
	static const char *const names[] = {
		"coroutine_wrapper", "async_generator_asend", "async_generator_athrow",
		"anext_awaitable",   "_asyncio.FutureIter",
	};

	return is_one_of(type, names, PRB_ARRAY_SIZE(names));
}

static struct prb_error *follow(struct prb_repr *r, struct prb_await_chain *chain, uint64_t *object)
{
	struct prb_coroutine *link;
	struct prb_type *type;

	PRB_TRY(prb_repr_type_of(r, *object, &type));
	if (passes_on(type))
		return prb_repr_member(r, *object, 0, object);
	if (!prb_coroutine_is(type)) {
		chain->end = *object;
		*object = 0;
		return NULL;
	}
	link = prb_vec_push(&chain->list);
	if (!link)
		return prb_error_nomem();
	link->object = *object;

	struct prb_error *err = prb_coroutine_read(r, link, object);

	if (err || link->state == PRB_COROUTINE_FINISHED)
		chain->list.count--;
	return err;
}

struct prb_error *prb_await_chain_read(struct prb_repr *r, uint64_t object,
				       struct prb_await_chain *ret)
{
	uint64_t finger = 0, steps = 0, next = 1;

	*ret = (struct prb_await_chain){};
	while (object) {
		if (object == finger || steps >= CHAIN_MAX)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"the chain of awaits is cyclic after %zu frames",
						ret->list.count);
		if (++steps >= next) { /* Brent's cycle guard */
			finger = object;
			next *= 2;
		}
		PRB_TRY(follow(r, ret, &object));
	}
	return NULL;
}

void prb_await_chain_deinit(struct prb_await_chain *chain)
{
	prb_vec_free(&chain->list);
}

struct prb_error *prb_coroutine_name(struct prb_repr *r, uint64_t object, struct prb_str *ret)
{
	struct prb_type *type;
	uint64_t name;

	PRB_TRY(prb_repr_type_of(r, object, &type));
	if (prb_coroutine_is(type) && r->layout->generator_qualname >= 0) {
		PRB_TRY(prb_repr_word(r, object + (uint64_t)r->layout->generator_qualname, &name));
		return prb_object_str(r->py, r->mem, name, NAME_MAX_LENGTH, ret);
	}
	return prb_object_type_name(r->py, r->mem, object, ret);
}
