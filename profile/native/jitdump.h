/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Names of code that a process makes at run time, from the jitdump file that it writes for
 * perf: CPython with `-X perf_jit`, V8, LLVM, the JVM. The process maps the file's first page as
 * executable, so that tools find it: a mapping of a file that is called `jit-PID.dump`.
 *
 * As of a perf map, nothing is believed of the file but names, it must be written by the process's
 * user or root alone (prb_perf_map_open()), and reading is bounded. Its copies of code are not
 * read.
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
	struct prb_number_map places; /**< of the names of functions, by their index */
	uint64_t records;	      /**< that were looked at */
	bool bad;		      /**< it is no such file: not read any more */
};

void prb_jitdump_init(struct prb_jitdump *dump);
void prb_jitdump_deinit(struct prb_jitdump *dump);

/** Reads what was added since, to a file that is found in the present mappings. PRB_ERROR_NOMEM
 * only. */
struct prb_error *prb_jitdump_update(struct prb_jitdump *dump,
				     struct prb_target *target) PRB_MUST_CHECK;

/** Reads the whole records that were added to the file `names.fd`. PRB_ERROR_NOMEM only. */
struct prb_error *prb_jitdump_read(struct prb_jitdump *dump) PRB_MUST_CHECK;

#endif
