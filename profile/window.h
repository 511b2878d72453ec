/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The last part of a recording.
 *
 * Threading: one thread at a time; nothing here keeps state.
 */
#ifndef PRB_PROFILE_WINDOW_H
#define PRB_PROFILE_WINDOW_H

#include "profile/recording.h"

/**
 * Leaves out what was before @p from, in ns from the start on. Of a run that began before, the part
 * of its weights that its time has is kept. The runs are to be as they were recorded, not summed
 * up. What processes used is not known of a part.
 */
void prb_recording_cut_before(struct prb_recording *recording, int64_t from);

#endif
