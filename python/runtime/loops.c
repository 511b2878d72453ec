/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/runtime/loops.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	UNIT = 2,
	MOST_BYTES = 1 << 20, /* of code */
	CACHES = 0x0f,
	/* Beside the number of caches. */
	OTHER = 0,
	PLAIN = 0x10,
	STORE = 0x20,
	BACK = 0x30,
	ABSOLUTE = 0x40,
	ARGUMENT = 0x50,
};

static const struct opcodes {
	uint16_t version;
	uint8_t what[256];
} opcodes[] = {
#include "python/runtime/opcodes.inc"
};

struct instruction {
	int64_t at, end;
	int64_t target; /* of a jump; negative: it is none */
	uint8_t what;
};

struct scan {
	const struct opcodes *opcodes;
	const uint8_t *bytes;
	int64_t size, next;
	bool in_units; /* absolute jumps count units */
};

/* The instruction at `next`, with what it is about to jump to; false at the end. */
static bool step(struct scan *s, struct instruction *ret)
{
	uint32_t argument = 0;
	uint8_t what = OTHER;

	ret->at = s->next;
	for (; s->next + UNIT <= s->size; s->next += UNIT) {
		what = s->opcodes->what[s->bytes[s->next]];
		argument = argument << 8 | s->bytes[s->next + 1];
		if ((what & ~CACHES) != ARGUMENT)
			break;
	}
	if (s->next + UNIT > s->size)
		return false;
	s->next += UNIT * (1 + (what & CACHES));
	ret->end = s->next;
	ret->what = what & (uint8_t)~CACHES;
	ret->target = ret->what == BACK	      ? s->next - UNIT * (int64_t)argument
		      : ret->what == ABSOLUTE ? (int64_t)argument * (s->in_units ? UNIT : 1)
					      : -1;
	return true;
}

static bool is_back(const struct instruction *i)
{
	return i->target >= 0 && i->target < i->end;
}

/* The loop that begins last, and contains both positions. */
static void find(struct scan s, int64_t first, int64_t last, struct prb_py_loop *ret)
{
	struct instruction i;

	s.next = 0;
	while (step(&s, &i)) {
		if (!is_back(&i) || i.target > first || i.end <= last)
			continue;
		if (ret->found && i.target < ret->first)
			continue;
		*ret = (struct prb_py_loop){.found = true, .first = i.target, .end = i.end};
	}
}

/* All ways back to the same place belong to it. */
static void widen(struct scan s, struct prb_py_loop *ret)
{
	struct instruction i;

	s.next = 0;
	while (step(&s, &i))
		if (is_back(&i) && i.target == ret->first)
			ret->end = PRB_MAX(ret->end, i.end);
}

/* No other code belongs to it, and none of its own code is unknown. */
static bool is_closed(struct scan s, const struct prb_py_loop *loop)
{
	struct instruction i;

	s.next = 0;
	while (step(&s, &i)) {
		bool inside = i.at >= loop->first && i.at < loop->end;

		if (inside && i.what == OTHER)
			return false;
		if (!is_back(&i))
			continue;
		if (inside && i.target < loop->first)
			return false;
		if (!inside && i.target > loop->first && i.target < loop->end)
			return false;
	}
	return true;
}

/* Where the instructions of a code object are, and how many bytes. */
static struct prb_error *find_bytes(struct prb_python *py, struct prb_mem *mem, uint64_t code,
				    uint64_t *ret, uint64_t *size)
{
	const struct prb_layout *l = &py->layout;
	uint64_t object = code;

	if (l->behaviour->chain == PRB_CHAIN_PYFRAME) {
		PRB_TRY(prb_mem_read_u64(mem, code + (uint64_t)l->code_bytes, &object));
		*ret = object + (uint64_t)l->bytes_data;
		return prb_mem_read_u64(mem, object + (uint64_t)l->var_size, size);
	}
	*ret = code + (uint64_t)l->code_bytes;
	PRB_TRY(prb_mem_read_u64(mem, code + (uint64_t)l->var_size, size));
	*size = *size < MOST_BYTES ? *size * UNIT : *size;
	return NULL;
}

struct prb_error *prb_python_loop(struct prb_python *py, struct prb_mem *mem, uint64_t code,
				  int64_t first, int64_t last, struct prb_py_loop *ret)
{
	prb_auto_free uint8_t *bytes = NULL;
	struct scan s = {.in_units = py->layout.behaviour->position == PRB_POSITION_UNITS};
	uint64_t address, size;

	*ret = (struct prb_py_loop){};
	for (size_t i = 0; i < PRB_ARRAY_SIZE(opcodes); i++)
		if (opcodes[i].version == py->layout.version)
			s.opcodes = &opcodes[i];
	if (!s.opcodes)
		return NULL;
	PRB_TRY(find_bytes(py, mem, code, &address, &size));
	if (!size || size > MOST_BYTES)
		return prb_error_create(PRB_ERROR_BAD_DATA, "code %#llx has an impossible length",
					(unsigned long long)code);
	bytes = malloc(size);
	if (!bytes)
		return prb_error_nomem();
	PRB_TRY(prb_mem_read(mem, address, bytes, size));
	s.bytes = bytes;
	s.size = (int64_t)size;
	find(s, first, last, ret);
	if (!ret->found)
		return NULL;
	widen(s, ret);
	ret->closed = is_closed(s, ret);
	return NULL;
}
