/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Which of a few named classes objects are of, by themselves or by a base class.
 *
 * Threading: as python/repr/core/repr.h. Memory that cannot be read is no class.
 */
#ifndef PRB_INFERENCE_CLASSES_H
#define PRB_INFERENCE_CLASSES_H

#include "base/error.h"
#include "python/python.h"

struct prb_classes;

enum { PRB_CLASSES_MAX = 32 };

/** @p names: "module.Class"; borrowed, @p count of them, at most PRB_CLASSES_MAX. */
struct prb_error *prb_classes_create(struct prb_python *py, struct prb_mem *mem,
				     const char *const *names, size_t count,
				     struct prb_classes **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_classes_destroy(struct prb_classes *classes);

/** Bit N of *ret: objects of the type at that address are of class N. */
struct prb_error *prb_classes_of_type(struct prb_classes *classes, uint64_t type,
				      uint32_t *ret) PRB_MUST_CHECK;
/** The same for an object. */
struct prb_error *prb_classes_of(struct prb_classes *classes, uint64_t object,
				 uint32_t *ret) PRB_MUST_CHECK;

/** Appends "module.Class" of the object's own type; nothing if it cannot be read. */
struct prb_error *prb_classes_put_name(struct prb_classes *classes, uint64_t object,
				       struct prb_str *out) PRB_MUST_CHECK;

#endif
