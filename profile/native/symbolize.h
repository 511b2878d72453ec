/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Names for the C functions of a recording that have none, from files with the same build-id.
 *
 * Threading: one thread at a time. The files are hostile; libelf's checks and our own apply.
 */
#ifndef PRB_PROFILE_NATIVE_SYMBOLIZE_H
#define PRB_PROFILE_NATIVE_SYMBOLIZE_H

#include "base/error.h"
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

#endif
