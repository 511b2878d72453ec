/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Recordings that a gateway makes: each is a child that writes a .profile into a folder of
 * the gateway's own, which goes away with it.
 */
#ifndef PRB_GATEWAY_TARGETS_RECORDINGS_H
#define PRB_GATEWAY_TARGETS_RECORDINGS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "base/vec.h"
#include "gateway/targets/child.h"
#include "target/proc/process.h"

enum {
	PRB_RECORDINGS_MAX = 32,
	PRB_RECORDINGS_MAX_RUNNING = 4,
	/* Characters. */
	PRB_RECORDINGS_MAX_NAME = 80,
	PRB_RECORDINGS_MAX_NOTE = 1000,
};

struct prb_profile_made {
	char id[16];	 /**< "p1" */
	char target[32]; /**< id of what is recorded */
	struct prb_process
		process; /**< what it is called, also once it has ended; of a file empty */
	char *path;
	char *name, *note; /**< by a client; NULL: none */
	double started;	   /**< since the epoch */
	double duration;   /**< seconds that were asked for */
	bool stopped;	   /**< before its time */
	struct prb_child child;
};

/** Starts as {}. */
struct prb_recordings {
	char *folder; /**< NULL: none was needed yet */
	unsigned made, files;
	PRB_VEC(struct prb_profile_made *) list;
};
/** Ends all, and removes the folder. */
void prb_recordings_deinit(struct prb_recordings *recordings);

/** Starts one: @p words are the words of `perf` without -o; @p pid is 0 for a file. */
struct prb_error *prb_recordings_start(struct prb_recordings *recordings, const char *target,
				       pid_t pid, double duration, double now,
				       struct prb_words *words,
				       struct prb_profile_made **ret) PRB_MUST_CHECK;
/** NULL if there is none. */
struct prb_profile_made *prb_recordings_find(const struct prb_recordings *recordings,
					     const char *id);
void prb_recordings_stop(struct prb_profile_made *made);
void prb_recordings_remove(struct prb_recordings *recordings, struct prb_profile_made *made);
void prb_recordings_tend(struct prb_recordings *recordings, double now);
/** True if one runs. */
bool prb_recordings_run(const struct prb_recordings *recordings);

/** Makes sure that there is a folder. */
struct prb_error *prb_recordings_prepare(struct prb_recordings *recordings) PRB_MUST_CHECK;

/** A name for a file in the folder, which does not exist; NULL if memory ran out. */
char *prb_recordings_file(struct prb_recordings *recordings, const char *ending);

void prb_recordings_put(const struct prb_profile_made *made, const char *key,
			struct prb_json *json);

#endif
