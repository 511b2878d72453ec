/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the parts of reading a recording. Internal to profile/store/load/. */
#ifndef PRB_PROFILE_STORE_LOAD_LOAD_PRIVATE_H
#define PRB_PROFILE_STORE_LOAD_LOAD_PRIVATE_H

#include "profile/store/load/load.h"
#include "profile/store/load/database.h"

struct prb_load {
	char *path;
	struct prb_load_file file;
	struct prb_recording *about;
	int64_t gone;	  /**< of a ring: how much of its beginning is not there, ns */
	int64_t totals_s; /**< 0: nothing was read yet */
	char *writer, *system;
	size_t stacks;	   /**< of the file */
	bool tasks;	   /**< the view that has them in place of the event loop */
	uint32_t *renamed; /**< the view's stacks by the file's; NULL: the same */
};

#endif
