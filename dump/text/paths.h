/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Short names for the files of a dump.
 *
 * A file is shown by its last part. If that is ambiguous (another file of the dump has the same, or
 * it is __init__.py or __main__.py), its folder is shown in front.
 */
#ifndef PRB_DUMP_TEXT_PATHS_H
#define PRB_DUMP_TEXT_PATHS_H

#include "base/error.h"
#include "base/vec.h"
#include "dump/model/dump.h"

struct prb_paths {
	bool full;
	PRB_VEC(const char *) list; /**< different paths, sorted by their last part */
};

/** Collects the files of @p dump, whose strings are borrowed; @p full: never shorten. */
struct prb_error *prb_paths_init(struct prb_paths *paths, const struct prb_dump *dump,
				 bool full) PRB_MUST_CHECK;
void prb_paths_deinit(struct prb_paths *paths);

/** The end of @p path that is shown. */
const char *prb_paths_short(const struct prb_paths *paths, const char *path);

/** The part after the last slash. */
const char *prb_path_last(const char *path);

#endif
