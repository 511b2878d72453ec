/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The source lines that a recording is about, as the process sees its files.
 *
 * Threading: one thread at a time. Errors: memory; a file that cannot be read is left out.
 */
#ifndef PRB_PROFILE_SAMPLER_SOURCE_TEXT_H
#define PRB_PROFILE_SAMPLER_SOURCE_TEXT_H

#include "base/error.h"
#include "profile/recording/recording.h"
#include "target/target.h"

/**
 * Puts into @p recording the lines that ran, and some around them. Only files that end with .py are
 * read; no file whose path has a word like "secret" or "password", and none that was changed after
 * the recording began. Of a program that we @p started, and that has ended (@p target may be NULL
 * then), the files are where we see them, and only world-readable files if we have more rights than
 * our user.
 */
struct prb_error *prb_profile_add_source(struct prb_recording *recording, struct prb_target *target,
					 bool started) PRB_MUST_CHECK;

#endif
