/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Reading a .profile file back: the recording that it was written from.
 *
 * The file is an SQLite database that anybody may have made. It is opened read-only; it must have
 * the very tables that probing writes, nothing of its schema is run, and every number is checked.
 * The journal of a killed recording is taken into account without writing.
 *
 * Threading: one thread at a time. PRB_ERROR_BAD_DATA says what is wrong with a file.
 */
#ifndef PRB_PROFILE_STORE_LOAD_LOAD_H
#define PRB_PROFILE_STORE_LOAD_LOAD_H

#include "base/error.h"
#include "profile/recording/recording.h"

struct prb_load;

struct prb_error *prb_load_open(const char *path, struct prb_load **ret) PRB_MUST_CHECK;
/** As above; with @p tasks, those of asyncio are in place of the event loop (tasks_view.h). */
struct prb_error *prb_load_open_view(const char *path, bool tasks,
				     struct prb_load **ret) PRB_MUST_CHECK;
/** Of the bytes that @p fd has, a file without a name: they are read at once. */
struct prb_error *prb_load_open_copy(int fd, struct prb_load **ret) PRB_MUST_CHECK;
void prb_load_destroy(struct prb_load *load);

/** All but the runs, which it has none of; borrowed until the end of @p load. */
const struct prb_recording *prb_load_about(const struct prb_load *load);

/** The version of probing that wrote it, and the system that it ran on; each may be NULL. */
const char *prb_load_writer(const struct prb_load *load);
const char *prb_load_system(const struct prb_load *load);

/** A way through the chunks of a recording, which it borrows. */
struct prb_load_cursor;

struct prb_error *prb_load_cursor_create(struct prb_load *load,
					 struct prb_load_cursor **ret) PRB_MUST_CHECK;
void prb_load_cursor_destroy(struct prb_load_cursor *cursor);

/** Before the first chunk is read: begins with number @p chunk, or the next one that exists. */
void prb_load_cursor_skip(struct prb_load_cursor *cursor, int64_t chunk);
/** Number of the chunk that was read last. */
int64_t prb_load_cursor_chunk(const struct prb_load_cursor *cursor);

/** Numbers of the first and behind the last chunk of the file; both 0 if it has none. */
struct prb_error *prb_load_chunks(struct prb_load *load, int64_t *ret_first,
				  int64_t *ret_end) PRB_MUST_CHECK;

/**
 * The runs of the next chunk, valid until the next call; *ret_count is 0 after the last one. They
 * come in the order in which they began, within each thread.
 */
struct prb_error *prb_load_next(struct prb_load_cursor *cursor, const struct prb_run **ret,
				size_t *ret_count) PRB_MUST_CHECK;

/** Reads all runs into the recording; without @p in_order, those of the same thread, stack and
 * state become one, which takes little memory however long the recording is. */
struct prb_error *prb_load_runs(struct prb_load *load, bool in_order) PRB_MUST_CHECK;

/** A whole recording at once; the caller's. */
struct prb_error *prb_profile_load(const char *path, bool in_order,
				   struct prb_recording **ret) PRB_MUST_CHECK;

/** As above, in order, from the nameless file @p fd. */
struct prb_error *prb_profile_load_copy(int fd, struct prb_recording **ret) PRB_MUST_CHECK;

/** As above; with @p tasks, those of asyncio are in place of the event loop (tasks_view.h). */
struct prb_error *prb_profile_load_view(const char *path, bool in_order, bool tasks,
					struct prb_recording **ret) PRB_MUST_CHECK;

/**
 * The same in the order of time, for viewers: of a long recording with steps of so much time that
 * it has some 300,000 runs, as its `step` says. Sums stay exact.
 */
struct prb_error *prb_profile_load_steps(const char *path,
					 struct prb_recording **ret) PRB_MUST_CHECK;

#endif
