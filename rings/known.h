/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Registry of recordings that keep the last minutes (`perf --ring`), by the process that they
 * are of.
 *
 * A recorder has a file `perf-PID-RECORDER` in its user's runtime folder (own_file.h), which no
 * other user can write to, and holds its lock: the file has the path of the recording. A file whose
 * lock is free is what an ended recorder has left: its recording is still found, for a day.
 *
 * Threading: one thread at a time. Errors: PRB_ERROR_NOT_FOUND where there is no such folder.
 */
#ifndef PRB_RINGS_KNOWN_H
#define PRB_RINGS_KNOWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/vec.h"

/** The note of a recorder about itself. Starts as PRB_KNOWN_NOTHING. */
struct prb_known {
	char *path;
	int fd;
};
#define PRB_KNOWN_NOTHING \
	{                 \
		.fd = -1  \
	}

/** A recording that is noted. */
struct prb_known_recording {
	pid_t pid; /**< of the recorded process */
	pid_t recorder;
	uint64_t start_ticks; /**< when the recorded process started; 0 if unknown */
	bool background, running;
	double noted; /**< when its recorder began, or ended: seconds since the epoch */
	char *path;   /**< absolute */
	char *failed; /**< what ended the recorder, or NULL */
};

struct prb_known_list {
	PRB_VEC(struct prb_known_recording) list; /**< the newest first, running ones before */
};

/** Our folder for it, made where it is missing; the caller's to close, *ret_path to be freed. */
struct prb_error *prb_known_folder(int *ret_fd, char **ret_path) PRB_MUST_CHECK;

/** Notes that we record the process @p pid, to the absolute @p path. Forgets what is old. */
struct prb_error *prb_known_add(pid_t pid, const char *path, bool background,
				struct prb_known *ret) PRB_MUST_CHECK;
/** The recording has ended, with @p err, which stays the caller's, or well. */
void prb_known_end(struct prb_known *known, const struct prb_error *err);

/** All that our user's recorders have noted of the process @p pid, and that are of the process
 * which has this number now, if there is one; of all processes if @p pid is 0. */
struct prb_error *prb_known_find(pid_t pid, struct prb_known_list *ret) PRB_MUST_CHECK;
void prb_known_list_deinit(struct prb_known_list *list);

/** Has the running recorder end, as Ctrl-C does. None is there any more: no error. */
struct prb_error *prb_known_stop(const struct prb_known_recording *recording,
				 pid_t pid) PRB_MUST_CHECK;

/**
 * Waits until the recorder has ended; *ret_ended is false if it still runs after @p seconds. The
 * error is the cause of an early end.
 */
struct prb_error *prb_known_await(const struct prb_known_recording *recording, pid_t pid,
				  double seconds, bool *ret_ended) PRB_MUST_CHECK;

#define prb_auto_known_list __attribute__((cleanup(prb_known_list_deinit)))

#endif
