/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/runtime/entered.h"

#include <string.h>

#include "base/cleanup.h"
#include "python/frames/exception_table.h"
#include "python/repr/core/repr.h"

enum {
	MAX_TABLE = 1 << 20, /* bytes of a table of handlers */
	MAX_DEPTH = 1 << 16, /* slots of a value stack */
	MAX_BLOCKS = 20,     /* CO_MAXBLOCKS */
	MAX_HANDLERS = 128,  /* around one instruction: some three for each block */
};

struct search {
	struct prb_python *py;
	struct prb_mem *mem;
	const struct prb_py_frame *frame;
	uint64_t stack; /* first slot of the value stack */
	struct prb_py_entered *ret;
};

static struct prb_error *bad(const struct search *s, const char *what)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "frame %#llx has %s",
				(unsigned long long)s->frame->address, what);
}

/* A method that is bound to an object: of a type in C, or in Python; both begin alike. */
static struct prb_error *add_bound(struct search *s, uint64_t callable)
{
	prb_auto_str struct prb_str type = {};
	uint64_t members[2] = {}; /* m_ml and m_self, or im_func and im_self */
	bool in_python;

	PRB_TRY(prb_object_type_name(s->py, s->mem, callable, &type));
	in_python = !strcmp(prb_str_text(&type), "method");
	if (in_python || !strcmp(prb_str_text(&type), "builtin_function_or_method") ||
	    !strcmp(prb_str_text(&type), "builtin_method"))
		PRB_TRY(prb_mem_read(s->mem, callable + (uint64_t)s->py->layout.object_size,
				     members, sizeof(members)));
	s->ret->list[s->ret->count].leave = members[0];
	s->ret->list[s->ret->count].object = members[1];
	s->ret->list[s->ret->count++].in_python = in_python || !members[0];
	return NULL;
}

/* 3.14+: the function that is to be called, and below the handler's depth what it is called with.
 */
static struct prb_error *add_pair(struct search *s, uint64_t function, uint64_t self)
{
	prb_auto_str struct prb_str type = {};

	PRB_TRY(prb_object_type_name(s->py, s->mem, function, &type));
	s->ret->list[s->ret->count].leave = function;
	s->ret->list[s->ret->count].object = self;
	s->ret->list[s->ret->count++].in_python =
		strcmp(prb_str_text(&type), "method_descriptor") != 0;
	return NULL;
}

/* The value stack is @p depth slots high where an exception leaves the statement. */
static struct prb_error *add(struct search *s, uint32_t depth)
{
	bool tagged = s->py->layout.behaviour->tagged_refs;
	uint64_t slots[2] = {};
	unsigned count = tagged ? 2 : 1;

	if (s->ret->count == PRB_ENTERED_MAX || depth < count || depth > MAX_DEPTH)
		return bad(s, "more blocks than Python allows");
	PRB_TRY(prb_mem_read(s->mem, s->stack + 8 * (uint64_t)(depth - count), slots,
			     count * sizeof(*slots)));
	if (tagged)
		for (unsigned i = 0; i < count; i++)
			slots[i] &= ~3ULL;
	return slots[1] ? add_pair(s, slots[0], slots[1]) : add_bound(s, slots[0]);
}

/* Up to 3.10 */

static struct prb_error *find_in_blocks(struct search *s)
{
	const struct prb_layout *l = &s->py->layout;
	struct {
		int32_t type, handler, level;
	} blocks[MAX_BLOCKS];
	uint64_t bytes;
	int32_t count;

	if (l->pyframe_iblock <= 0 || l->pyframe_blockstack <= 0 || l->pyframe_value_stack <= 0)
		return bad(s, "blocks at an unknown place");
	PRB_TRY(prb_mem_read_u32(s->mem, s->frame->address + (uint64_t)l->pyframe_iblock,
				 (uint32_t *)&count));
	if (!count)
		return NULL;
	if (count < 0 || count > MAX_BLOCKS)
		return bad(s, "an impossible number of blocks");
	PRB_TRY(prb_mem_read(s->mem, s->frame->address + (uint64_t)l->pyframe_blockstack, blocks,
			     (size_t)count * sizeof(*blocks)));
	PRB_TRY(prb_mem_read_u64(s->mem, s->frame->address + (uint64_t)l->pyframe_value_stack,
				 &s->stack));
	PRB_TRY(prb_mem_read_u64(s->mem, s->frame->code + (uint64_t)l->code_bytes, &bytes));
	for (int32_t i = count; i-- > 0;) {
		int64_t handler = blocks[i].handler;
		uint8_t opcode;

		if (handler < 0) /* the exception that is being handled */
			continue;
		if (l->behaviour->position == PRB_POSITION_UNITS)
			handler *= 2;
		PRB_TRY(prb_mem_read_u8(s->mem, bytes + (uint64_t)(l->bytes_data + handler),
					&opcode));
		if (opcode == l->behaviour->with_handler)
			PRB_TRY(add(s, (uint32_t)blocks[i].level));
	}
	return NULL;
}

/* 3.11+ */

/*
 * Follows an exception that nobody would catch out of the frame: from handler to handler, the
 * statement of each and then what is around it.
 */
static struct prb_error *follow_handlers(struct search *s, const uint8_t *table, size_t size)
{
	enum { UNIT = 2 };
	uint64_t code = s->frame->code + (uint64_t)s->py->layout.code_bytes;
	struct prb_exception_handler handler;
	int64_t position;

	PRB_TRY(prb_python_position(s->py, s->mem, s->frame, &position));
	for (unsigned n = 0; prb_exception_table_find(table, size, position, &handler); n++) {
		uint8_t opcode;

		if (n == MAX_HANDLERS)
			return bad(s, "handlers that lead to each other");
		/* PUSH_EXC_INFO is first. */
		PRB_TRY(prb_mem_read_u8(s->mem, code + (uint64_t)handler.position + UNIT, &opcode));
		if (opcode == s->py->layout.behaviour->with_handler)
			PRB_TRY(add(s, handler.depth));
		position = handler.position;
	}
	return NULL;
}

static struct prb_error *find_in_table(struct search *s)
{
	const struct prb_layout *l = &s->py->layout;
	uint64_t table, size;
	uint32_t variables;
	uint8_t small[512];

	if (l->code_exceptiontable <= 0)
		return bad(s, "handlers at an unknown place");
	PRB_TRY(prb_mem_read_u64(s->mem, s->frame->code + (uint64_t)l->code_exceptiontable,
				 &table));
	PRB_TRY(prb_mem_read_u64(s->mem, table + (uint64_t)l->var_size, &size));
	if (!size)
		return NULL;
	if (size > MAX_TABLE)
		return bad(s, "an impossible number of handlers");

	prb_auto_free uint8_t *large = size > sizeof(small) ? malloc(size) : NULL;
	uint8_t *data = size > sizeof(small) ? large : small;
	if (!data)
		return prb_error_nomem();
	PRB_TRY(prb_mem_read(s->mem, table + (uint64_t)l->bytes_data, data, size));
	PRB_TRY(prb_mem_read_u32(s->mem, s->frame->code + (uint64_t)l->code_nlocalsplus,
				 &variables));
	s->stack = s->frame->address + (uint64_t)l->frame_localsplus + 8 * (uint64_t)variables;
	return follow_handlers(s, data, size);
}

struct prb_error *prb_python_entered(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_py_frame *frame, struct prb_py_entered *ret)
{
	struct search s = {.py = py, .mem = mem, .frame = frame, .ret = ret};

	ret->count = 0;
	return py->layout.behaviour->chain == PRB_CHAIN_PYFRAME ? find_in_blocks(&s)
								: find_in_table(&s);
}
