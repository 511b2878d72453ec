/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The items of a container in a target's memory, without running any code there: of list,
 * tuple, dict, set, frozenset, deque, SimpleQueue, and of classes derived from them, whatever these
 * make of their items.
 *
 * Threading: as repr.h. Errors: PRB_ERROR_NOT_FOUND for objects without readable items;
 * PRB_ERROR_FAULT or PRB_ERROR_BAD_DATA for what is no object or makes no sense.
 */
#ifndef PRB_PYTHON_REPR_CORE_ITEMS_H
#define PRB_PYTHON_REPR_CORE_ITEMS_H

#include "base/error.h"
#include "python/python.h"

/** @p key is 0 unless it is a dict. False: that is enough. */
typedef bool prb_item_visit(void *context, uint64_t key, uint64_t value);

/** @p secrets: also of an object whose class hides them. @p torn may be NULL; true: a table had
 * fewer entries than it says, as while it is changed. */
struct prb_error *prb_object_items(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				   bool secrets, prb_item_visit *visit, void *context,
				   bool *torn) PRB_MUST_CHECK;

#endif
