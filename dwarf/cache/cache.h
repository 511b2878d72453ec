/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The disk cache: what is derived from a file with a build-id is derived once.
 *
 * One file per build-id and purpose under $XDG_CACHE_HOME/probing (or ~/.cache/probing; else
 * /tmp/probing-UID, made 0700 and refused when another user owns it): a header (magic, format
 * version, our version), then key–value records, each with a checksum. Written to a temporary file
 * and renamed, or appended under a lock, so that two writers and a SIGKILL leave nothing half
 * written; whatever does not check out is ignored and rewritten. No writable home: works, uncached.
 *
 * A build-id is what a file says of itself, and the facts are used for all files that say so. So
 * what comes from files that others can change is kept under another name
 * (prb_module_cache_id()), or not at all (prb_module_may_keep()).
 *
 * A reader maps the file and searches it in place; opening costs some microseconds.
 */
#ifndef PRB_DWARF_CACHE_CACHE_H
#define PRB_DWARF_CACHE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct prb_cache;

/** Opens our cache folder, creating it if needed; -1 if no folder is safely ours. */
int prb_cache_folder(void);

/**
 * Opens the cache for @p build_id (hex and "-", not "") and @p purpose ("layout", "lines"). Always
 * gives an object (unless out of memory); an unreadable or unwritable cache is just empty.
 */
struct prb_error *prb_cache_open(const char *build_id, const char *purpose,
				 struct prb_cache **ret) PRB_MUST_CHECK;

/** Writes what was put since, then frees. Failures to write are logged, never reported. */
void prb_cache_close(struct prb_cache *cache);

/** The value of @p key, valid until close or the next put; false if there is none. */
bool prb_cache_get(struct prb_cache *cache, const void *key, size_t key_length, const void **value,
		   size_t *length);

/** Sets a value (copied). */
void prb_cache_put(struct prb_cache *cache, const void *key, size_t key_length, const void *value,
		   size_t length);

#endif
