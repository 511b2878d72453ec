/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Names of users, as this machine knows them. Any thread. */
#ifndef PRB_TARGET_PROC_USER_H
#define PRB_TARGET_PROC_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/str.h"

/** Appends the name of a user; false if it has none here. */
bool prb_user_name(uid_t uid, struct prb_str *ret);

#endif
