/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Identity-keyed cache of Python objects for hot callbacks.
 *
 * Holds a reference to each key, so an address cannot be reused. Cleared when full.
 *
 * Threading: the caller holds the GIL.
 */
#ifndef PRB_AGENT_INSIDE_IDENTITY_CACHE_H
#define PRB_AGENT_INSIDE_IDENTITY_CACHE_H

#include "agent/inside/python_table.h"

enum { PRBA_KNOWN = 4096 };

struct prba_cache {
	int used;
	struct prba_cache_row {
		object *key;
		int value;
	} rows[PRBA_KNOWN];
};

/** The value stored for the object; 0: none. */
int prba_cache_get(const struct prba_cache *table, const object *key);
/** Notes it; @p value is not 0. */
void prba_cache_put(struct prba_cache *table, object *key, int value);
/** Frees objects, and so may run code of the program, which finds the table empty. */
void prba_cache_clear(struct prba_cache *table);

#endif
