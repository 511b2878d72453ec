/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The form of a cache file, and how it comes to disk. Internal to dwarf/cache/.
 *
 * header | heads[PRB_CACHE_HEADS] | records…
 *
 * A head is the offset of the newest record of its hash, 0 for none; each record leads to the one
 * before it, so offsets along a chain only fall. Records are appended first and the heads set
 * afterwards: a reader or a killed writer never sees (or leaves) a chain to something unwritten.
 * Bytes that no chain reaches are dead. Numbers are in the machine's byte order, which the header
 * identifies.
 */
#ifndef PRB_DWARF_CACHE_CACHE_FILE_H
#define PRB_DWARF_CACHE_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
	PRB_CACHE_FORMAT = 2,
	PRB_CACHE_HEADS = 4096,
	PRB_CACHE_ALIGN = 8,
	PRB_CACHE_MAX_FILE = 16 << 20, /* a larger one is begun anew */
};

struct prb_cache_header {
	char magic[8];
	uint32_t format; /* also identifies the byte order */
	uint32_t heads;
	char version[48]; /* of ours: what we derive can change with it */
};

struct prb_cache_record {
	uint32_t next; /* offset of the next older record with the same head, or 0 */
	uint32_t hash; /* of the key */
	uint32_t key_length, value_length;
	uint64_t checksum; /* of the lengths, key and value */
			   /* then the key, the value, and zeros up to PRB_CACHE_ALIGN */
};

enum {
	PRB_CACHE_FIRST = sizeof(struct prb_cache_header) + PRB_CACHE_HEADS * sizeof(uint32_t),
};

/** The header of a usable file. */
struct prb_cache_header prb_cache_header(void);

/** Opens the file @p name of @p folder if it is a plain file of ours; -1 otherwise. */
int prb_cache_open_file(int folder, const char *name, int flags, uint64_t *size);

/**
 * Writes @p records (a run of records as they lie in a file, whose `next` is filled in here) into
 * the file @p name, after what is in it.
 */
struct prb_error *prb_cache_write(int folder, const char *name, void *records,
				  size_t length) PRB_MUST_CHECK;

#endif
