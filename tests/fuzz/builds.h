/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file A layout of CPython chosen by a fuzzer's input, and members of it that lie elsewhere. */
#ifndef PRB_TESTS_FUZZ_BUILDS_H
#define PRB_TESTS_FUZZ_BUILDS_H

#include "tests/fuzz/input.h"

#include "python/python.h"

/** In the same order as in make-corpus. */
static const struct {
	uint16_t version;
	bool free_threaded;
} builds[] = {{0x0304, false}, {0x0305, false}, {0x0306, false}, {0x0307, false}, {0x0308, false},
	      {0x0309, false}, {0x030a, false}, {0x030b, false}, {0x030c, false}, {0x030d, false},
	      {0x030d, true},  {0x030e, false}, {0x030f, false}};

enum { BAD_FIELDS_MAX = 8 };

/** The layout whose number is next in the input. */
static inline struct prb_layout input_layout(struct input *input)
{
	unsigned build = input_u8(input) % PRB_ARRAY_SIZE(builds);
	struct prb_layout layout =
		*prb_layout_table(builds[build].version, builds[build].free_threaded, false);

	layout.behaviour = prb_behaviour_find(builds[build].version);
	return layout;
}

/** Moves @p count members, as a _Py_DebugOffsets, debug information or a snapshot may claim. */
static inline void input_move_fields(struct input *input, struct prb_layout *layout, unsigned count)
{
	for (unsigned i = 0; i < PRB_MIN(count, BAD_FIELDS_MAX); i++) {
		unsigned field = input_u8(input) % prb_layout_field_count;

		*(int32_t *)((char *)layout + prb_layout_fields[field].place) =
			(int32_t)input_u32(input);
	}
}

#endif
