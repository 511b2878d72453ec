/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Classes of C++ objects in a target, from the run-time type information behind their
 * vtables (Itanium C++ ABI). It is there in stripped libraries, too.
 *
 * Threading: that of the target. An object is the target's word: it may lie.
 */
#ifndef PRB_DUMP_ZEROMQ_CLASSES_H
#define PRB_DUMP_ZEROMQ_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "target/mem/mem.h"

enum { PRB_CLASS_NAME = 64 };

struct prb_class {
	uint64_t vtable;
	int64_t to_top; /**< what to add to the address of such a part for that of its object */
	char name[PRB_CLASS_NAME]; /**< mangled, "N3zmq6pipe_tE"; "": it is no class */
};

/** What is known about vtables; begins as {mem}. */
struct prb_classes {
	struct prb_mem *mem;
	PRB_VEC(struct prb_class) list;
	bool failed; /**< memory ran out */
};

void prb_classes_deinit(struct prb_classes *classes);

/**
 * The class whose vtable @p vtable is; NULL if it is none, or one outside of namespace zmq. Valid
 * until the next call.
 */
const struct prb_class *prb_class_of_vtable(struct prb_classes *classes, uint64_t vtable);

/** The class of the object, one part of which is at @p part; *object is where it begins. */
const struct prb_class *prb_class_of(struct prb_classes *classes, uint64_t part, uint64_t *object);

#endif
