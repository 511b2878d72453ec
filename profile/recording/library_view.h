/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A recording by library: each frame stands for the file, or the Python package, that its
 * code belongs to.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_PROFILE_RECORDING_LIBRARY_VIEW_H
#define PRB_PROFILE_RECORDING_LIBRARY_VIEW_H

#include "base/error.h"
#include "profile/recording/recording.h"

/**
 * Replaces the tree. Calls within one library become one frame. Native code is named by its file,
 * Python code by the package under site-packages, or as that of Python or the program.
 */
struct prb_error *prb_library_view(struct prb_recording *recording) PRB_MUST_CHECK;

#endif
