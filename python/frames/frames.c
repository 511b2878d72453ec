/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walking the frames of a thread state: one strategy per way that frames hang together. */
#include "python/python.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/frames/lines.h"

enum {
	MAX_FRAMES = 4000000,	/* 3.11+ has no limit of its own; this one is 400 MB of frames */
	MAX_STRUCT = 256,	/* we read at most so much of one frame */
	LEAST_CHUNK = 16 << 10, /* what CPython allocates for frames */
	MAX_CHUNK = 256 << 10,
	MAX_CHUNKS = 1 << 10,
};

struct walk {
	struct prb_python *py;
	struct prb_mem *mem;
	struct prb_py_frames *frames;
	size_t size; /* bytes that are read of a frame */
};

static bool inside(int32_t offset, size_t width, size_t size)
{
	return offset >= 0 && prb_inside((uint64_t)offset, width, size);
}

/*
 * Layouts may come from the target, too. Says how much of a frame has to be read; 0 if the members
 * that are taken out of that do not lie within it.
 */
static size_t frame_size(const struct prb_layout *l)
{
	bool pyframe = l->behaviour->chain == PRB_CHAIN_PYFRAME;
	bool has_shims = l->behaviour->owner_interpreter >= 0;
	int64_t end = pyframe ? (int64_t)l->pyframe_position + (int64_t)sizeof(int32_t)
			      : l->frame_localsplus;
	size_t size = (size_t)end;

	if (end <= 0 || end > MAX_STRUCT)
		return 0;
	if (pyframe)
		return inside(l->pyframe_position, 4, size) && inside(l->pyframe_code, 8, size) &&
				       inside(l->pyframe_back, 8, size)
			       ? size
			       : 0;
	return inside(l->frame_code, 8, size) && inside(l->frame_previous, 8, size) &&
			       inside(l->frame_position, 8, size) &&
			       inside(l->frame_owner, 1, size) &&
			       (has_shims || inside(l->frame_is_entry, 1, size))
		       ? size
		       : 0;
}

static uint64_t member64(const uint8_t *data, int32_t offset)
{
	uint64_t value;

	memcpy(&value, data + offset, sizeof(value));
	return value;
}

/* Addresses of frames are aligned and never in the first page. */
static bool plausible(uint64_t address)
{
	return address >= 4096 && address % 8 == 0;
}

static struct prb_error *read_struct(struct walk *w, uint64_t address, uint8_t *data)
{
	if (!plausible(address))
		return prb_error_create(PRB_ERROR_BAD_DATA, "%#llx is no frame",
					(unsigned long long)address);
	return prb_mem_read(w->mem, address, data, w->size);
}

static struct prb_error *read_pyframe(struct walk *w, struct prb_py_frame *frame, uint64_t *back)
{
	const struct prb_layout *l = &w->py->layout;
	uint8_t data[MAX_STRUCT];
	int32_t lasti;

	PRB_TRY(read_struct(w, frame->address, data));
	frame->code = member64(data, l->pyframe_code);
	*back = member64(data, l->pyframe_back);
	memcpy(&lasti, data + l->pyframe_position, sizeof(lasti));
	frame->position = (uint64_t)(int64_t)lasti;
	frame->owner = -1;
	frame->entry = true; /* one C eval frame each */
	return NULL;
}

/*
 * A frame that has not reached its first traceable instruction is none yet for Python, and the
 * trampoline behind a call of a class never is one: its first traceable instruction lies past its
 * end. Only positions close to the start can be meant, so code is hardly ever read for this.
 */
static struct prb_error *mark_hidden(struct walk *w, struct prb_py_frame *frame)
{
	enum { NEAR_START = 64 };
	const struct prb_layout *l = &w->py->layout;
	uint32_t first;
	int64_t position;

	frame->hidden = frame->shim;
	if (frame->hidden || frame->owner == l->behaviour->owner_generator ||
	    l->code_firsttraceable <= 0)
		return NULL;
	PRB_TRY(prb_python_position(w->py, w->mem, frame, &position));
	if (position < -2 || position >= NEAR_START)
		return NULL;
	PRB_TRY(prb_mem_read_u32(w->mem, frame->code + (uint64_t)l->code_firsttraceable, &first));
	frame->hidden = position < 2 * (int64_t)first;
	return NULL;
}

static struct prb_error *read_interp_frame(struct walk *w, struct prb_py_frame *frame,
					   uint64_t *back)
{
	const struct prb_layout *l = &w->py->layout;
	const struct prb_behaviour *b = l->behaviour;
	uint8_t data[MAX_STRUCT];

	PRB_TRY(read_struct(w, frame->address, data));
	frame->code = member64(data, l->frame_code);
	if (b->tagged_refs)
		frame->code &= ~3ULL;
	*back = member64(data, l->frame_previous);
	frame->position = member64(data, l->frame_position);
	frame->owner = (int8_t)data[l->frame_owner];
	if (b->owner_interpreter >= 0)
		frame->shim = frame->owner >= b->owner_interpreter;
	else
		frame->entry = data[l->frame_is_entry] != 0;
	if (frame->owner < 0 || frame->owner > 8)
		return prb_error_create(PRB_ERROR_BAD_DATA, "frame %#llx has owner %d",
					(unsigned long long)frame->address, frame->owner);
	return mark_hidden(w, frame);
}

/*
 * 3.11 and 3.12: each eval loop has a cframe on the C stack. One that is just being entered has
 * linked its own already, and has put no frame into it: Python is where the one before says.
 */
static struct prb_error *frame_of_cframe(struct walk *w, uint64_t tstate, uint64_t *ret)
{
	const struct prb_layout *l = &w->py->layout;
	uint64_t cframe, place;

	*ret = 0;
	PRB_TRY(prb_mem_read_u64(w->mem, tstate + (uint64_t)l->thread_cframe, &cframe));
	for (int i = 0; i < 2 && cframe && !*ret; i++) {
		place = cframe + (uint64_t)l->cframe_current_frame;
		PRB_TRY(prb_mem_read_u64(w->mem, place, ret));
		if (*ret || cframe - tstate < (uint64_t)l->thread_size)
			return NULL; /* the state's own one ends the chain */
		PRB_TRY(prb_mem_read_u64(w->mem, place + sizeof(place), &cframe));
	}
	return NULL;
}

static struct prb_error *first_frame(struct walk *w, uint64_t tstate, uint64_t *ret)
{
	const struct prb_layout *l = &w->py->layout;

	switch (l->behaviour->chain) {
	case PRB_CHAIN_PYFRAME:
		return prb_mem_read_u64(w->mem, tstate + (uint64_t)l->thread_frame, ret);
	case PRB_CHAIN_CFRAME:
		return frame_of_cframe(w, tstate, ret);
	case PRB_CHAIN_INTERP:
		break;
	}
	return prb_mem_read_u64(w->mem, tstate + (uint64_t)l->thread_current_frame, ret);
}

/* Brent's cycle guard: a second finger that jumps to the first at each power of two. */
struct guard {
	uint64_t finger;
	size_t steps, next;
};

static bool goes_round(struct guard *guard, uint64_t address)
{
	if (guard->finger == address)
		return true;
	if (++guard->steps >= guard->next) {
		guard->finger = address;
		guard->next = guard->next ? guard->next * 2 : 1;
	}
	return false;
}

/*
 * A frame may just be being made: its code is there already, its position still its predecessor's.
 * In a stopped thread only the innermost frame can be so.
 */
static struct prb_error *check_position(struct walk *w, const struct prb_py_frame *frame)
{
	const struct prb_layout *l = &w->py->layout;
	int64_t position;
	uint64_t units;

	if (l->behaviour->chain == PRB_CHAIN_PYFRAME || frame->shim)
		return NULL;
	PRB_TRY(prb_python_position(w->py, w->mem, frame, &position));
	PRB_TRY(prb_mem_read_u64(w->mem, frame->code + (uint64_t)l->var_size, &units));
	if (position >= -2 && (uint64_t)(position + 2) <= 2 * units)
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA, "frame %#llx is just being made",
				(unsigned long long)frame->address);
}

static struct prb_error *walk_chain(struct walk *w, uint64_t address)
{
	bool pyframe = w->py->layout.behaviour->chain == PRB_CHAIN_PYFRAME;
	struct guard guard = {};

	while (address) {
		struct prb_py_frame frame = {.address = address};
		uint64_t back;

		if (goes_round(&guard, address) || w->frames->list.count >= MAX_FRAMES)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"the chain of frames is cyclic after %zu frames",
						w->frames->list.count);
		PRB_TRY(pyframe ? read_pyframe(w, &frame, &back)
				: read_interp_frame(w, &frame, &back));

		struct prb_py_frame *slot = prb_vec_push(&w->frames->list);
		if (!slot)
			return prb_error_nomem();
		*slot = frame;
		PRB_TRY(check_position(w, &frame));
		address = back;
	}
	return NULL;
}

/* Where shims mark the way into C, the frame just inside of one is the first of its eval loop. */
static void mark_entries(struct walk *w)
{
	struct prb_py_frame *frames = w->frames->list.items;

	if (w->py->layout.behaviour->owner_interpreter < 0)
		return;
	for (size_t i = 0; i + 1 < w->frames->list.count; i++)
		frames[i].entry = !frames[i].shim && frames[i + 1].shim;
}

/*
 * The resumer of a generator follows it in the chain. A chain that ends in a generator was read
 * while the generator yielded, its link already cut. Compilers such as Nuitka mark all frames as
 * owned by generators: the code object knows better.
 */
static struct prb_error *check_end(struct walk *w)
{
	enum { GENERATOR = 0x20, COROUTINE = 0x80, ASYNC_GENERATOR = 0x200 }; /* of co_flags */
	const struct prb_behaviour *b = w->py->layout.behaviour;
	size_t count = w->frames->list.count;
	uint32_t flags;

	if (b->owner_generator < 0 || !count ||
	    w->frames->list.items[count - 1].owner != b->owner_generator)
		return NULL;
	PRB_TRY(prb_mem_read_u32(
		w->mem, w->frames->list.items[count - 1].code + (uint64_t)w->py->layout.code_flags,
		&flags));
	if (!(flags & (GENERATOR | COROUTINE | ASYNC_GENERATOR)))
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA,
				"the chain of frames ends in a generator after %zu frames", count);
}

/* Reads the chunks in which frames lie: the last one up to @end, and each one before it. */
static struct prb_error *fetch_chunks(struct prb_mem *mem, uint64_t chunk, uint64_t end)
{
	prb_auto_free uint64_t *buffer = malloc(MAX_CHUNK);

	if (!buffer)
		return prb_error_nomem();
	for (size_t n = 0; chunk && n < MAX_CHUNKS; n++) {
		size_t length = (size_t)(end - chunk);

		if (chunk >= end || length > MAX_CHUNK || length < sizeof(*buffer))
			break;
		PRB_TRY(prb_mem_read(mem, chunk, buffer, length));
		chunk = buffer[0]; /* struct _stack_chunk: previous */
		end = chunk + LEAST_CHUNK;
	}
	return NULL;
}

/* Where each call has a price, frames are read many at once. Those that are elsewhere are not. */
static struct prb_error *read_ahead(const struct walk *w, uint64_t tstate, uint64_t first)
{
	int64_t offset = w->py->layout.thread_datastack_chunk;
	uint64_t chunk;

	if (!w->mem->kept || offset < 0)
		return NULL;
	struct prb_error *err = prb_mem_read_u64(w->mem, tstate + (uint64_t)offset, &chunk);
	if (!err)
		err = fetch_chunks(w->mem, chunk, first);
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
}

struct prb_error *prb_python_frames(struct prb_python *py, struct prb_mem *mem, uint64_t tstate,
				    struct prb_py_frames *ret)
{
	struct walk w = {.py = py, .mem = mem, .frames = ret, .size = frame_size(&py->layout)};
	uint64_t first;

	*ret = (struct prb_py_frames){};
	if (!w.size)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the layout of frames is implausible");
	PRB_TRY(first_frame(&w, tstate, &first));
	PRB_TRY(read_ahead(&w, tstate, first));

	struct prb_error *err = walk_chain(&w, first);
	mark_entries(&w);
	return err ? err : check_end(&w);
}

/* True if the frame lies directly behind that one, as what it calls does. */
static struct prb_error *lies_behind(struct walk *w, const struct prb_py_frame *frame,
				     const struct prb_py_frame *caller, bool *ret)
{
	const struct prb_layout *l = &w->py->layout;
	uint32_t variables, depth;

	*ret = false;
	if (!caller->code)
		return NULL;
	PRB_TRY(prb_mem_read_u32(w->mem, caller->code + (uint64_t)l->code_nlocalsplus, &variables));
	PRB_TRY(prb_mem_read_u32(w->mem, caller->code + (uint64_t)l->code_stacksize, &depth));
	*ret = caller->address + (uint64_t)l->frame_localsplus +
		       8 * ((uint64_t)variables + depth) ==
	       frame->address;
	return NULL;
}

/*
 * A compiler may store the new frame as the innermost one before its link to the caller, which is
 * that of an earlier call then. The frame lies directly behind the last one that is not a
 * generator's, or an eval loop that is entered has taken it from the one outside.
 */
static struct prb_error *check_link(struct walk *w, uint64_t outside)
{
	const struct prb_behaviour *b = w->py->layout.behaviour;
	const struct prb_py_frame *frames = w->frames->list.items;
	size_t count = w->frames->list.count, caller = 1;
	bool behind = false;

	if (b->chain != PRB_CHAIN_CFRAME || count < 2 || !frames->hidden || frames->shim ||
	    frames[frames[1].shim && count > 2 ? 2 : 1].address == outside)
		return NULL;
	while (caller < count && frames[caller].owner == b->owner_generator)
		caller++;
	if (caller < count)
		PRB_TRY(lies_behind(w, frames, &frames[caller], &behind));
	if (behind)
		return NULL;
	return prb_error_create(PRB_ERROR_BAD_DATA, "frame %#llx has no caller yet",
				(unsigned long long)frames->address);
}

static struct prb_error *judge_frame(struct walk *w, struct prb_py_frame *frame, bool innermost)
{
	const struct prb_behaviour *b = w->py->layout.behaviour;

	if (!plausible(frame->address))
		return prb_error_create(PRB_ERROR_BAD_DATA, "%#llx is no frame",
					(unsigned long long)frame->address);
	if (b->chain == PRB_CHAIN_PYFRAME) {
		frame->entry = true;
		return NULL;
	}
	if (frame->owner < 0 || frame->owner > 8)
		return prb_error_create(PRB_ERROR_BAD_DATA, "frame %#llx has owner %d",
					(unsigned long long)frame->address, frame->owner);
	frame->shim = b->owner_interpreter >= 0 && frame->owner >= b->owner_interpreter;
	frame->hidden = frame->shim;
	/* Whether the innermost one has begun, only its code can tell. */
	if (!frame->code && innermost && !frame->shim)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the innermost code is gone");
	if (!frame->code)
		return NULL;
	PRB_TRY(mark_hidden(w, frame));
	return check_position(w, frame);
}

struct prb_error *prb_python_frames_judge(struct prb_python *py, struct prb_mem *mem,
					  uint64_t outside, struct prb_py_frames *frames)
{
	struct walk w = {.py = py, .mem = mem, .frames = frames};

	for (size_t i = 0; i < frames->list.count; i++)
		PRB_TRY(judge_frame(&w, &frames->list.items[i], !i));
	mark_entries(&w);
	PRB_TRY(check_link(&w, outside));
	return check_end(&w);
}

struct prb_error *prb_python_frames_from(struct prb_python *py, struct prb_mem *mem,
					 uint64_t address, struct prb_py_frames *ret)
{
	struct walk w = {.py = py, .mem = mem, .frames = ret, .size = frame_size(&py->layout)};

	*ret = (struct prb_py_frames){};
	if (!w.size)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the layout of frames is implausible");
	return walk_chain(&w, address);
}

struct prb_error *prb_python_frame_at(struct prb_python *py, struct prb_mem *mem, uint64_t address,
				      struct prb_py_frame *ret)
{
	struct walk w = {.py = py, .mem = mem, .size = frame_size(&py->layout)};
	bool pyframe = py->layout.behaviour->chain == PRB_CHAIN_PYFRAME;
	uint64_t back;

	*ret = (struct prb_py_frame){.address = address};
	if (!w.size)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the layout of frames is implausible");
	PRB_TRY(pyframe ? read_pyframe(&w, ret, &back) : read_interp_frame(&w, ret, &back));
	return check_position(&w, ret);
}

void prb_py_frames_deinit(struct prb_py_frames *frames)
{
	prb_vec_free(&frames->list);
}
