/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Names of code that a process makes at run time, from the file that it writes for perf:
 * `/tmp/perf-PID.map`, with a line "START SIZE NAME" in hexadecimal for each function.
 *
 * The file is the target's word and nothing is believed of it but names. It is looked for where the
 * target sees it, opened with the rights of its user, and must be a regular file that belongs to
 * that user or to root and that no other user may write to. Reading is bounded.
 *
 * Threading: one thread at a time. Internal to profile/native/.
 */
#ifndef PRB_PROFILE_NATIVE_PERF_MAP_H
#define PRB_PROFILE_NATIVE_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/target.h"

struct prb_perf_symbol {
	uint64_t start, size;
	uint32_t number; /**< of its line: later ones take the place of earlier ones */
	uint32_t name;	 /**< offset in the text */
};

struct prb_perf_map {
	char *path;    /**< as the target names it; NULL if it was not looked for yet */
	int fd;	       /**< -1: there is none */
	uint64_t read; /**< bytes of it */
	PRB_VEC(struct prb_perf_symbol) symbols; /**< by start */
	PRB_VEC(char) text;			 /**< names, each with its NUL */
	PRB_VEC(char) rest;			 /**< a line whose end is not there yet */
};

void prb_perf_map_init(struct prb_perf_map *map);
void prb_perf_map_deinit(struct prb_perf_map *map);

/**
 * Takes in @p length more bytes of a map. Lines that make no sense are left out, names are cut
 * after some hundred bytes.
 */
struct prb_error *prb_perf_map_feed(struct prb_perf_map *map, const char *text,
				    size_t length) PRB_MUST_CHECK;

/**
 * Adds one function from another source; those of size 0 and beyond a bound are left out.
 * prb_perf_map_sort() is to follow before a search.
 */
struct prb_error *prb_perf_map_add(struct prb_perf_map *map, uint64_t start, uint64_t size,
				   const char *name, size_t length) PRB_MUST_CHECK;

/** The same for a function that shares a name, which is at @p name in the text. */
struct prb_error *prb_perf_map_add_named(struct prb_perf_map *map, uint64_t start, uint64_t size,
					 uint32_t name) PRB_MUST_CHECK;
void prb_perf_map_sort(struct prb_perf_map *map);

/**
 * Reads what has been added to the target's file since the last time, which it opens if there is
 * one. A missing or untrusted file is no error.
 */
struct prb_error *prb_perf_map_update(struct prb_perf_map *map,
				      struct prb_target *target) PRB_MUST_CHECK;

/** PRB_ERROR_PERMISSION if others than the target's user and root can have written such a file. */
struct prb_error *prb_perf_map_check(struct prb_target *target, const char *path,
				     int fd) PRB_MUST_CHECK;

/** The name of the code at @p address, the map's; NULL if there is none. */
const char *prb_perf_map_find(const struct prb_perf_map *map, uint64_t address);

#endif
