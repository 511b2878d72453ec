/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `probing list --dead`: processes that have ended and left rings. */
#ifndef PRB_CLI_COMMANDS_LIST_DEAD_H
#define PRB_CLI_COMMANDS_LIST_DEAD_H

#include <stdbool.h>

#include "base/error.h"

struct prb_error *prb_list_dead(bool as_json) PRB_MUST_CHECK;

#endif
