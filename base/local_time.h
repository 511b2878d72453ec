/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Moments as a person on this machine reads them: in local time. Any thread. */
#ifndef PRB_BASE_LOCAL_TIME_H
#define PRB_BASE_LOCAL_TIME_H

#include <time.h>

enum prb_local_form {
	PRB_LOCAL_DAY,	 /**< 2026-11-30 14:02:07. */
	PRB_LOCAL_CLOCK, /**< 14:02:07. */
	PRB_LOCAL_STAMP, /**< 20261130-140207, for names of files. */
};

/** A moment as text. A value, so that it can be made within the call that prints it. */
struct prb_local_time {
	char text[32];
};

/** @p seconds since the epoch as @p form has it; "?" if no calendar has that moment. */
struct prb_local_time prb_local_time(time_t seconds, enum prb_local_form form);

#endif
