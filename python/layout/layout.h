/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The layout of one CPython build: where the members of its structures lie, and which named
 * strategies read them.
 *
 * Offsets come, in this order of trust, from the process itself (_Py_DebugOffsets, 3.13+), from the
 * interpreter's DWARF (kept in the disk cache by build-id), or from the built-in table of that
 * version (layouts/). Fields that one source lacks are filled in from the next. A field that a
 * version does not have is PRB_ABSENT.
 *
 * To add a CPython version: docs/howto/add-python-version.md.
 */
#ifndef PRB_PYTHON_LAYOUT_LAYOUT_H
#define PRB_PYTHON_LAYOUT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "python/layout/fields.h"

enum { PRB_ABSENT = -1 };

enum prb_layout_source {
	PRB_LAYOUT_DEBUG_OFFSETS,
	PRB_LAYOUT_DWARF,
	PRB_LAYOUT_TABLE,
};

/** How the frames of a thread hang together. */
enum prb_frame_chain {
	PRB_CHAIN_PYFRAME, /**< ≤3.10: PyFrameObject.f_back from tstate->frame */
	PRB_CHAIN_CFRAME, /**< 3.11–3.12: _PyInterpreterFrame from tstate->cframe->current_frame */
	PRB_CHAIN_INTERP, /**< 3.13+: from tstate->current_frame */
};

/** The meaning of a frame's instruction position. */
enum prb_position {
	PRB_POSITION_BYTES,	 /**< ≤3.9: f_lasti counts bytes */
	PRB_POSITION_UNITS,	 /**< 3.10: f_lasti counts 2-byte units */
	PRB_POSITION_PREV_INSTR, /**< 3.11–3.12: pointer to the last executed unit */
	PRB_POSITION_INSTR_PTR,	 /**< 3.13+: pointer to the executing (or next) unit */
};

/** How lines are encoded. */
enum prb_line_format {
	PRB_LINES_LNOTAB_UNSIGNED, /**< 3.4–3.5: co_lnotab, deltas 0–255 */
	PRB_LINES_LNOTAB_SIGNED,   /**< 3.6–3.9: co_lnotab, line deltas signed */
	PRB_LINES_LINETABLE,	   /**< 3.10: co_linetable of (byte delta, line delta) */
	PRB_LINES_LOCATIONS,	   /**< 3.11+: location table with columns */
};

/** Where the locked flag and the last holder of the GIL are. */
enum prb_gil_place {
	PRB_GIL_STATICS,     /**< 3.4–3.6: statics of ceval.c */
	PRB_GIL_RUNTIME,     /**< 3.7–3.11: in _PyRuntime */
	PRB_GIL_INTERPRETER, /**< 3.12+: interp->ceval.gil points to it */
};

/** Properties of all builds of a minor version; one row each in versions.c. */
struct prb_behaviour {
	uint16_t version; /**< 0x030b for 3.11 */
	enum prb_frame_chain chain;
	enum prb_position position;
	enum prb_line_format lines;
	enum prb_gil_place gil;
	int8_t owner_generator; /**< frame.owner value of generator frames; -1 if no such member */
	int8_t owner_interpreter; /**< of shim frames that belong to the C eval loop; -1 if none */
	bool tagged_refs;	  /**< 3.14+: f_executable and locals carry tag bits (mask 3) */
	bool inline_eval;	  /**< 3.11+: one C eval frame runs many Python frames */
	bool has_qualname;	  /**< 3.11+: code objects have co_qualname */
	bool names_in_front;	  /**< 3.10+: functions begin with globals, builtins and names */
	bool mutex_locks;	  /**< 3.14+: locks are mutexes of one byte, not semaphores */
	bool byte_waits;	  /**< 3.13+: locks and queues may be waited for by a byte */
	bool interned_byte;   /**< 3.14+: free-threaded str keep `interned` in a byte of its own */
	bool asyncio;	      /**< 3.7+: asyncio's tasks can be read */
	bool rebinds;	      /**< 3.12+: a thread that takes a state over keeps it as its own */
	uint8_t with_handler; /**< opcode that begins the way out of a `with` by an exception */
	bool state_in_variable; /**< 3.15+: threads keep their state in thread-local variables,
				     not under autoTSSkey */
};

struct prb_layout {
	const struct prb_behaviour *behaviour;
	uint16_t version; /**< 0x030b for 3.11 */
	uint8_t micro;	  /**< 7 for 3.11.7; 255 if unknown */
	bool free_threaded;
	bool debug_build;
	enum prb_layout_source source; /**< of the offsets that frames depend on */

#define PRB_LAYOUT_MEMBER(name, path) int32_t name;
	PRB_LAYOUT_FIELDS(PRB_LAYOUT_MEMBER)
#undef PRB_LAYOUT_MEMBER
};

/** A field's name, DWARF path (see types.h) and place in struct prb_layout; for tools and tables.
 */
struct prb_layout_field {
	const char *name, *path;
	uint16_t place; /**< offsetof in struct prb_layout */
};
extern const struct prb_layout_field prb_layout_fields[];
extern const unsigned prb_layout_field_count;

/** The behaviour of a minor version, or NULL if we do not know it. */
const struct prb_behaviour *prb_behaviour_find(uint16_t version);

/** The built-in table for a minor version and kind of build, or NULL. */
const struct prb_layout *prb_layout_table(uint16_t version, bool free_threaded, bool debug_build);

#endif
