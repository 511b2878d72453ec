/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Behaviour shared by all builds of a minor version of CPython: one row each. */
#include "python/layout/layout.h"

#include <stddef.h>

#include "base/checked.h"

#define PYFRAME(minor, position_kind, line_kind, gil_kind)                                        \
	{                                                                                         \
		.version = 0x0300 | minor, .chain = PRB_CHAIN_PYFRAME, .position = position_kind, \
		.lines = line_kind, .gil = gil_kind, .owner_generator = -1,                       \
		.owner_interpreter = -1, .names_in_front = minor >= 10, .asyncio = minor >= 7,    \
		.with_handler = minor >= 9 ? 49 : 81,                                             \
	}

static const struct prb_behaviour behaviours[] = {
	PYFRAME(4, PRB_POSITION_BYTES, PRB_LINES_LNOTAB_UNSIGNED, PRB_GIL_STATICS),
	PYFRAME(5, PRB_POSITION_BYTES, PRB_LINES_LNOTAB_UNSIGNED, PRB_GIL_STATICS),
	PYFRAME(6, PRB_POSITION_BYTES, PRB_LINES_LNOTAB_SIGNED, PRB_GIL_STATICS),
	PYFRAME(7, PRB_POSITION_BYTES, PRB_LINES_LNOTAB_SIGNED, PRB_GIL_RUNTIME),
	PYFRAME(8, PRB_POSITION_BYTES, PRB_LINES_LNOTAB_SIGNED, PRB_GIL_RUNTIME),
	PYFRAME(9, PRB_POSITION_BYTES, PRB_LINES_LNOTAB_SIGNED, PRB_GIL_RUNTIME),
	PYFRAME(10, PRB_POSITION_UNITS, PRB_LINES_LINETABLE, PRB_GIL_RUNTIME),
	{
		.version = 0x030b,
		.chain = PRB_CHAIN_CFRAME,
		.position = PRB_POSITION_PREV_INSTR,
		.lines = PRB_LINES_LOCATIONS,
		.gil = PRB_GIL_RUNTIME,
		.owner_generator = 1,
		.owner_interpreter = -1, /* no shims: the entry frame itself is marked */
		.inline_eval = true,
		.has_qualname = true,
		.names_in_front = true,
		.asyncio = true,
		.with_handler = 49,
	},
	{
		.version = 0x030c,
		.chain = PRB_CHAIN_CFRAME,
		.position = PRB_POSITION_PREV_INSTR,
		.lines = PRB_LINES_LOCATIONS,
		.gil = PRB_GIL_INTERPRETER,
		.owner_generator = 1,
		.owner_interpreter = 3, /* FRAME_OWNED_BY_CSTACK */
		.inline_eval = true,
		.has_qualname = true,
		.names_in_front = true,
		.asyncio = true,
		.rebinds = true,
		.with_handler = 49,
	},
	{
		.version = 0x030d,
		.chain = PRB_CHAIN_INTERP,
		.position = PRB_POSITION_INSTR_PTR,
		.lines = PRB_LINES_LOCATIONS,
		.gil = PRB_GIL_INTERPRETER,
		.owner_generator = 1,
		.owner_interpreter = 3, /* FRAME_OWNED_BY_CSTACK */
		.inline_eval = true,
		.has_qualname = true,
		.names_in_front = true,
		.asyncio = true,
		.byte_waits = true,
		.rebinds = true,
		.with_handler = 44,
	},
	{
		.version = 0x030e,
		.chain = PRB_CHAIN_INTERP,
		.position = PRB_POSITION_INSTR_PTR,
		.lines = PRB_LINES_LOCATIONS,
		.gil = PRB_GIL_INTERPRETER,
		.owner_generator = 1,
		.owner_interpreter =
			3, /* FRAME_OWNED_BY_INTERPRETER; 4 is the C stack's sentinel */
		.tagged_refs = true,
		.inline_eval = true,
		.has_qualname = true,
		.names_in_front = true,
		.asyncio = true,
		.byte_waits = true,
		.mutex_locks = true,
		.interned_byte = true,
		.rebinds = true,
		.with_handler = 43,
	},
	{
		.version = 0x030f,
		.chain = PRB_CHAIN_INTERP,
		.position = PRB_POSITION_INSTR_PTR,
		.lines = PRB_LINES_LOCATIONS,
		.gil = PRB_GIL_INTERPRETER,
		.owner_generator = 1,
		.owner_interpreter = 3,
		.tagged_refs = true,
		.inline_eval = true,
		.has_qualname = true,
		.names_in_front = true,
		.asyncio = true,
		.byte_waits = true,
		.mutex_locks = true,
		.interned_byte = true,
		.rebinds = true,
		.state_in_variable = true,
		.with_handler = 41,
	},
};

const struct prb_behaviour *prb_behaviour_find(uint16_t version)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(behaviours); i++)
		if (behaviours[i].version == version)
			return &behaviours[i];
	return NULL;
}
