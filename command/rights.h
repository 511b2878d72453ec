/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Detects setuid, setgid and file capabilities of our own executable. */
#ifndef PRB_COMMAND_RIGHTS_H
#define PRB_COMMAND_RIGHTS_H

#include "base/error.h"

/**
 * PRB_ERROR_PERMISSION if the file has a setuid or setgid bit or capabilities that gave us more
 * rights than our caller has: any user could read and change any process through it.
 */
struct prb_error *prb_rights_check(void) PRB_MUST_CHECK;

#endif
