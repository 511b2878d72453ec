/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Has the agent of a process write a crash record when the process dies
 * (agent/crash/crash.h), and says where such records are.
 *
 * Threading: one thread at a time for one connection.
 */
#ifndef PRB_CONTROL_CRASH_H
#define PRB_CONTROL_CRASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "control/client.h"

struct prb_crash_settings {
	double hold;	    /**< seconds that the dying process is kept; 0: not at all */
	uint64_t size;	    /**< bytes of a record, at most; 0: as before, or 64 MiB */
	uint64_t count;	    /**< records in the folder; 0: as before, or 16 */
	const char *folder; /**< an absolute path as the process sees it, or NULL */
};

/**
 * Takes one "key=value" whose key begins with "crash.": size, count, folder, hold. PRB_ERROR_USAGE
 * names the keys there are, or the values that one may have.
 */
struct prb_error *prb_crash_set(struct prb_crash_settings *s, const char *word) PRB_MUST_CHECK;

/**
 * Whether its seccomp filters allow all calls that the agent and a record of a crash take: to be
 * asked before the agent is loaded for that.
 */
struct prb_error *prb_crash_allowed(struct prb_target *t) PRB_MUST_CHECK;

/**
 * Installs the handlers, or changes their settings. *ret gets the folder. *ret_hooks is false if
 * the main thread has not run Python code yet: until it does, exceptions and overflows of its stack
 * are not recorded.
 */
struct prb_error *prb_crash_install(struct prb_agent *agent, const struct prb_crash_settings *s,
				    struct prb_str *ret, bool *ret_hooks) PRB_MUST_CHECK;

#endif
