/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Sampled allocations of Python objects, for `probing memory --sites`.
 *
 * While sampling is on, the allocators of Python's domains "mem" and "obj" are ours. Each counts
 * bytes and calls the allocator that it replaced. Allocations are sampled at exponentially
 * distributed distances in bytes, whose mean the client sets. A sample goes to a buffer
 * (sites_format.h) with its Python stack; when the block is freed, that is recorded too.
 *
 * The allocators allocate nothing and call nothing of Python but what reads the current thread
 * state, and counts references. They take no lock, but in free-threaded builds one of their own for
 * samples. Their context is that of the allocator below, so that a thread that reads the structure
 * half written does no harm. The domain "raw", which is used without the GIL, stays as it is: there
 * is no way to know when the last thread has left our code.
 *
 * They are removed if they are still on top. Else another allocator calls them, and they stay as a
 * way through; the library must not be unmapped then.
 *
 * Threading: the caller of what is not an allocator holds the GIL, or is attached to the
 * interpreter in a build without one. Errors: nothing is raised into the program.
 */
#ifndef PRB_AGENT_SITES_SITES_H
#define PRB_AGENT_SITES_SITES_H

#include <stdbool.h>

#include "agent/inside/python_table.h"

enum { PRBA_SITES_METHODS = 5 };

/** For the names of agent/sites/sites.py, which says what they are. */
extern struct prba_method prba_sites_methods[PRBA_SITES_METHODS];

/** Removes the allocators and releases what is held. */
void prba_sites_stop(void);

/** True if it was on once: a thread may have just left our allocators. Any thread. */
bool prba_sites_was_on(void);
/** True if others call our allocators: the library has to stay. Any thread. */
bool prba_sites_stays(void);

/** In a child after fork(): the allocators are a way through there. */
void prba_sites_forked(void);

#endif
