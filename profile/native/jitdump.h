/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Names of code that a process makes at run time, from the jitdump file that it writes for
 * perf: CPython with `-X perf_jit`, V8, LLVM, the JVM. The process maps the file's first page as
 * executable, so that tools find it: a mapping of a file that is called `jit-PID.dump`.
 *
 * As with a perf map, only names are taken from the file. It must be writable by the process's user
 * or root alone, and reading is bounded.
 *
 * Threading: one thread at a time. Internal to profile/native/.
 */
#ifndef PRB_PROFILE_NATIVE_JITDUMP_H
#define PRB_PROFILE_NATIVE_JITDUMP_H

#include "base/error.h"
#include "base/map.h"
#include "profile/native/perf_map.h"
#include "target/target.h"

struct prb_jitdump {
	struct prb_perf_map names;    /**< with the file's path and descriptor */
	struct prb_number_map places; /**< of the names of functions, by the hash of their index */
	uint64_t key[2];	      /**< of that hash */
	pid_t pid;		      /**< of the process in its own namespace; 0: not known yet */
	uint64_t records;	      /**< number of records read */
	bool bad;		      /**< not a jitdump file; it is not read again */
	PRB_VEC(uint64_t) refused;    /**< inodes of files with such a name that are none */
};

void prb_jitdump_init(struct prb_jitdump *dump);
void prb_jitdump_deinit(struct prb_jitdump *dump);

/** Reads what was added since, to a file that is found in the present mappings. PRB_ERROR_NOMEM
 * only. */
struct prb_error *prb_jitdump_update(struct prb_jitdump *dump,
				     struct prb_target *target) PRB_MUST_CHECK;

/** Reads whole records that were added to the file `names.fd`, the rest next time if there are
 * many. PRB_ERROR_NOMEM only. */
struct prb_error *prb_jitdump_read(struct prb_jitdump *dump) PRB_MUST_CHECK;

#endif
