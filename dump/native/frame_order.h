/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The order of the Python frames and the C frames of one thread on its stack.
 *
 * The Python frames that an eval loop runs replace its C frame: one up to 3.10, from 3.11 on all up
 * to the next call from C. From 3.12 on such a group ends in a shim frame, which lies on the C
 * stack within the C frame of its eval loop, so its address identifies the loop. Before 3.12 the
 * loop is known by its symbol.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_DUMP_NATIVE_FRAME_ORDER_H
#define PRB_DUMP_NATIVE_FRAME_ORDER_H

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "python/python.h"
#include "dump/native/c_stack.h"

/** Up to 3.11 the loop of the innermost Python frames can be in doubt. */
enum prb_native_doubt {
	PRB_NATIVE_SURE,
	PRB_NATIVE_BARE_LOOP, /**< the thread seems to enter or leave a loop at this moment */
	PRB_NATIVE_SWITCHED,  /**< a bare loop at several moments: its Python stack is switched */
};

/** Cache of properties of code, valid while the modules stay the same. Starts as {.modules = …}. */
struct prb_interleaver {
	struct prb_modules *modules; /**< borrowed */
	struct prb_number_map loops; /**< by pc: true if within an eval loop */
};

void prb_interleaver_deinit(struct prb_interleaver *interleaver);

/** One frame of the merged stack. */
struct prb_place {
	bool python;
	size_t index; /**< in the list of Python frames, or of C frames */
};

struct prb_places {
	PRB_VEC(struct prb_place) list; /**< innermost first; hidden Python frames are not in it */
	size_t placed; /**< so many come before the Python frames that match no C frame, which are
			  the outermost ones; all if there are none */
};

/** True if the code at @p pc is part of the eval loop of @p py. */
bool prb_interleave_is_loop(struct prb_interleaver *interleaver, const struct prb_python *py,
			    uint64_t pc);

/**
 * Merges @p frames of @p py (both NULL or empty if there are none) with @p stack. @p doubt: of the
 * thread; updated unless it is PRB_NATIVE_SWITCHED. The memory of @p ret is reused.
 */
struct prb_error *prb_interleave(struct prb_interleaver *interleaver, const struct prb_python *py,
				 const struct prb_py_frames *frames,
				 const struct prb_c_stack *stack, enum prb_native_doubt *doubt,
				 struct prb_places *ret) PRB_MUST_CHECK;
void prb_places_deinit(struct prb_places *places);

#endif
