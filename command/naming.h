/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Ctrl-C while C functions get their names, which is when a recording is over, and may take
 * long where there is much debug information.
 *
 * Threading: the main thread, while it catches Ctrl-C.
 */
#ifndef PRB_COMMAND_NAMING_H
#define PRB_COMMAND_NAMING_H

#include <stdbool.h>

#include "profile/recording/recording.h"

/**
 * For the naming of symbols: from the first call on, Ctrl-C skips the remaining names, and a second
 * one ends us. @p context is not used.
 */
bool prb_naming_gives_up(void *context);

/** Warns of what has no name for that; NULL: no recording was made. */
void prb_naming_tell(const struct prb_recording *recording);

#endif
