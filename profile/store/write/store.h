/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Writing a recording to a .profile file while it is made.
 *
 * A .profile is an SQLite database (docs/profile-format.md). A thread of its own writes it, about
 * once a second, in one transaction each, so that a recording that is killed is a whole database
 * up to its last second. The recorder hands over copies and never waits for the disk. The runs
 * of a chunk leave the recording when it is complete, so that memory stays bounded however long it
 * takes.
 *
 * Threading: all functions are for the thread that records. Errors of the disk come back from the
 * next call; what was written before is whole.
 */
#ifndef PRB_PROFILE_STORE_WRITE_STORE_H
#define PRB_PROFILE_STORE_WRITE_STORE_H

#include "base/error.h"
#include "profile/recording/recording.h"

struct prb_store;

#define PRB_STORE_EXTENSION ".profile"

/** True if a file of that name is to be a recording. */
bool prb_store_is_path(const char *path);

/**
 * Makes an empty database beside @p path, under another name. PRB_ERROR_USAGE if something that is
 * no regular file, or another user's journal, is in its place.
 */
struct prb_error *prb_store_create(const char *path, struct prb_store **ret) PRB_MUST_CHECK;

/** Steps that a process records by itself. */
struct prb_store_step {
	int64_t number; /**< of the last one */
	int64_t ended;	/**< when, in nanoseconds since the epoch */
	double longest; /**< ms, of those that ended after @p since; 0: none did */
};

/** Called by the thread that writes; false if the process records none, or it is not known. */
typedef bool prb_store_steps_fn(pid_t pid, int64_t since, struct prb_store_step *ret);

/** Before it begins: only what is within @p around seconds of moments at which @p condition holds
 * stays in the file (condition.h). PRB_ERROR_USAGE if the condition cannot be understood. */
struct prb_error *prb_store_keep_when(struct prb_store *store, const char *condition, double around,
				      prb_store_steps_fn *steps) PRB_MUST_CHECK;

/** Gives the file its name, replacing a file that had it, and begins to write. */
struct prb_error *prb_store_begin(struct prb_store *store,
				  const struct prb_recording *recording) PRB_MUST_CHECK;

/** True if what prb_store_begin() was given is in the file, so that it is a recording. */
bool prb_store_is_there(struct prb_store *store);

/** True if it is time to hand something over. */
bool prb_store_is_due(const struct prb_store *store, const struct prb_recording *recording,
		      int64_t now);

/**
 * Between two rounds of samples: hands over what is new. *ret_cut is true when the recording has no
 * runs any more: they are written, and the next sample begins new ones.
 */
struct prb_error *prb_store_put(struct prb_store *store, const struct prb_recording *recording,
				int64_t now, bool *ret_cut) PRB_MUST_CHECK;

/** Writes all samples that there are, waits for that, and lets no chunk grow any more. */
struct prb_error *prb_store_put_rest(struct prb_store *store,
				     const struct prb_recording *recording) PRB_MUST_CHECK;

/**
 * After prb_store_put_rest(), when the recording has got another tree: prb_store_finish() writes
 * that one in place of the old, of which it had @p count stacks. Stack i is now @p renamed[i].
 * Takes
 * @p renamed over.
 */
void prb_store_rename(struct prb_store *store, uint32_t *renamed, size_t count);

/** Writes the rest, with how the recording ended, and waits until all is on the disk. */
struct prb_error *prb_store_finish(struct prb_store *store,
				   const struct prb_recording *recording) PRB_MUST_CHECK;

/** Stops writing: what the recording owns is not looked at any more. The file is consistent. */
void prb_store_stop(struct prb_store *store);

/** Ends it. A file that never got its name goes away. */
void prb_store_destroy(struct prb_store *store);

static inline void prb_store_guard(struct prb_store **store)
{
	prb_store_destroy(*store);
}
#define prb_auto_store __attribute__((cleanup(prb_store_guard)))

#endif
