/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The settings of this process: from the environment when they are first asked for, and
 * changed by clients and by the program.
 *
 * Threading: any thread may read; changes of texts are serialized, and a reader sees an old or a
 * new one. Errors: negative errno values.
 */
#ifndef PRB_AGENT_INSIDE_CONFIG_H
#define PRB_AGENT_INSIDE_CONFIG_H

#include <stdatomic.h>
#include <stddef.h>

#include "agent/config_keys.h"
#include "agent/inside/export.h"

/** Called after each change, by the thread that made it; may be NULL. */
extern _Atomic(void (*)(void)) prba_config_changed;

/**
 * Reads the environment, once. The first use does it, too, but takes the loader's lock: a thread
 * that may not wait for that is started after it.
 */
void prba_config_read(void);

/** A number or size. */
double prba_config_number(enum prb_config_index index);

/**
 * Sets "KEY=VALUE". 0, ENOENT for an unknown key, EINVAL for a value that makes no sense or is out
 * of bounds, ENAMETOOLONG.
 */
PRBA_EXPORT int probing_config_set(const char *text);

/** Writes the value of @p key; gives its length, or ENOENT, or ERANGE if @p size is too small. */
PRBA_EXPORT int probing_config_get(const char *key, char *ret, size_t size);

/** A number or size by its name; -1 for an unknown key. */
PRBA_EXPORT double probing_config_number(const char *key);

/** Counts changes. */
PRBA_EXPORT unsigned probing_config_changes(void);

#endif
