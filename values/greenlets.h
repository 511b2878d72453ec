/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The greenlets of an interpreter, with the stacks of suspended ones.
 *
 * The package describes its structures nowhere, and its versions differ. So frames are searched: an
 * object, or the structure of C++ behind it, holds the innermost frame of a greenlet exactly while
 * it is suspended. A word counts as that if it is the address of a frame object.
 *
 * A live process runs on meanwhile. The list of greenlets is read first, and then each stack, of
 * one instant if the caller sees to that (dump/tasks/consistent_read.h).
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_VALUES_GREENLETS_H
#define PRB_VALUES_GREENLETS_H

#include "base/error.h"
#include "base/vec.h"
#include "python/python.h"

struct prb_greenlet_frame {
	struct prb_py_code code;
	struct prb_py_location location;
	char *qualname; /**< NULL where it cannot be known */
};

struct prb_greenlet {
	uint64_t address, type_address;
	char *type;				   /**< "gevent._gevent_cgreenlet.Greenlet" */
	PRB_VEC(struct prb_greenlet_frame) frames; /**< innermost first; empty: not suspended */
	uint64_t waits_on; /**< in gevent: the object that will switch to it; 0 */
	char *linked;	   /**< that object in words; NULL */
	char *call;	   /**< of gevent or eventlet: the function that it called; NULL */
	char *error;	   /**< the caller's: why there is no stack; NULL */
	/** The lock or semaphore that acquire() or `with` waits for, of gevent or eventlet; or 0.
	 */
	uint64_t lock;
	bool limited; /**< it is inside of a Timeout */
	/** In gevent: the set of its own pool, if it waits for a free slot there, or until the pool
	 * is empty, and so do all greenlets of the pool; else 0. */
	uint64_t own_pool;
	/** Those that it is inside of, by `with`, and has surely not released since. */
	PRB_VEC(uint64_t) held;
};

struct prb_greenlets {
	PRB_VEC(struct prb_greenlet) list;
	const char *doubt; /**< why some may be missing; static; NULL */
};

/** Objects that are looked at where an answer has to come soon: about half a second. */
enum { PRB_GREENLETS_SOON = 100000 };

/** Walks the objects of the interpreter at @p interp, at most @p most, 0: all; all but the stacks
 * is filled. */
struct prb_error *prb_greenlets_read(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				     size_t most, struct prb_greenlets *ret) PRB_MUST_CHECK;

/**
 * Fills frames, call and locks anew; no frames if it is not suspended. PRB_ERROR_BAD_DATA or
 * PRB_ERROR_FAULT, and no frames, if it is gone or being changed.
 */
struct prb_error *prb_greenlet_stack(struct prb_python *py, struct prb_mem *mem,
				     struct prb_greenlet *greenlet) PRB_MUST_CHECK;
void prb_greenlets_deinit(struct prb_greenlets *greenlets);

#endif
