/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Names for the C functions of a recording that have none, from files with the same build-id.
 *
 * Threading: one thread at a time. The files are hostile; libelf's checks and our own apply.
 */
#ifndef PRB_PROFILE_NATIVE_SYMBOLIZE_H
#define PRB_PROFILE_NATIVE_SYMBOLIZE_H

#include "base/error.h"
#include "base/vec.h"
#include "profile/recording/recording.h"

struct prb_symbolized {
	size_t lacking; /**< functions without a name, before */
	size_t named;	/**< of them */
	size_t files;	/**< that were used */
	size_t without; /**< functions whose file has no build-id */
	bool cut_short; /**< the folder has more files than were looked at */
};

/**
 * Looks at all ELF files under @p folder, debug files as well as libraries, and takes names from
 * their symbols. Symbolic links to folders are not followed.
 */
struct prb_error *prb_symbolize(struct prb_recording *recording, const char *folder,
				struct prb_symbolized *ret) PRB_MUST_CHECK;

/** A file whose symbols a recording lacks. */
struct prb_symbols_wanted {
	const char *build_id; /**< the recording's: 8 to 128 lower-case hex digits */
	const char *path;     /**< the recording's, of the file that ran */
	size_t functions;     /**< without a name */
};
struct prb_symbols_wanted_list {
	PRB_VEC(struct prb_symbols_wanted) list; /**< each build-id once; most functions first */
	size_t left_out;			 /**< others, as there are too many */
};

/** The build-ids of the files of functions without a name; the caller frees the list. Counts
 * `lacking` and `without` of @p counts, and begins the rest at 0. */
struct prb_error *prb_symbols_wanted(const struct prb_recording *recording,
				     struct prb_symbolized *counts,
				     struct prb_symbols_wanted_list *ret) PRB_MUST_CHECK;

/**
 * Takes names from the file @p fd, which becomes ours, if it has that build-id; @p name is for
 * messages. PRB_ERROR_BAD_DATA if it is no such file.
 */
struct prb_error *prb_symbolize_by(struct prb_recording *recording, const char *build_id, int fd,
				   const char *name, struct prb_symbolized *ret) PRB_MUST_CHECK;

#endif
