/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The versions of listed processes, as they say themselves: file names give at most the minor
 * version. Processes that have mapped the same file are of the same version: one of them is asked.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_LIST_VERSION_H
#define PRB_CLI_COMMANDS_LIST_VERSION_H

#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/proc/process.h"
#include "target/target.h"

/** What a file is: "3.12.1", "3.13.0t". */
struct prb_list_version {
	uint64_t inode;
	uint32_t major, minor;
	char *version;
};

/** Starts as {}. */
struct prb_list_versions {
	PRB_VEC(struct prb_list_version) list;
};
void prb_list_versions_deinit(struct prb_list_versions *versions);

/** Replaces p->version; after an error it is as before. */
struct prb_error *prb_list_version(struct prb_list_versions *versions, struct prb_target *target,
				   struct prb_python_process *p) PRB_MUST_CHECK;

#endif
