/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Snapshots: what a dump read, kept in a file that answers the same questions elsewhere.
 *
 * A recorder wraps a target: while it is attached, the target's ops are the recorder's, which hand
 * each question on and note the answer. prb_recorder_write() makes a file of it, and
 * prb_target_open_snapshot() makes a target of that file. Replay is exact: what was answered is
 * answered again with the same bytes, what failed fails again with the same code, message and hint,
 * and what was never asked is PRB_ERROR_NOT_FOUND (memory: PRB_ERROR_FAULT), never a guess.
 *
 * Memory has one shared image and, for threads that were read at another instant, an overlay each:
 * a thread's memory is its overlay and, where that has nothing, the shared image.
 *
 * The file is described in docs/snapshot-format.md. A reader treats it as hostile.
 *
 * Threading: a recorder belongs to one thread at a time, and so does a snapshot target.
 */
#ifndef PRB_TARGET_SNAPSHOT_SNAPSHOT_H
#define PRB_TARGET_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "target/mem/view.h"
#include "target/target.h"

struct prb_recorder;

/* Bounds of what a snapshot file may hold; going over one is PRB_ERROR_BAD_DATA that names it. */
enum {
	PRB_SNAPSHOT_MAX_BODY = 512 << 20, /**< bytes after decompression */
	PRB_SNAPSHOT_MAX_NAME = 64 << 10,  /**< bytes of a name */
	PRB_SNAPSHOT_MAX_RECORDS = 4 << 20,
};

struct prb_error *prb_recorder_create(struct prb_recorder **ret) PRB_MUST_CHECK;

/** Ends the recorder, which is detached before. */
void prb_recorder_destroy(struct prb_recorder *r);

/**
 * Has what is read of @p t recorded, until the recorder is detached or @p t ends. One target at a
 * time, and one recorder for each. Memory that keeps what it read does not meanwhile: it has to
 * pass through views, whose pages are noted by prb_target_note_pages().
 */
void prb_recorder_attach(struct prb_recorder *r, struct prb_target *t);

/** Gives the target its own ops back; what was noted stays. Nothing if it is not attached. */
void prb_recorder_detach(struct prb_recorder *r);

/**
 * Leaves values out of the file: the environment, arguments of the command line from the third on
 * (the second too if it holds a '='), and every word of memory that was not itself read.
 * May be set at any time before writing. A redacted snapshot should be made without reading locals.
 */
void prb_recorder_set_redact(struct prb_recorder *r, bool redact);

/**
 * Notes an answer, copied: @p kind is 'f' file text, 'l' link, 'd' listing of a folder or
 * 'k' derived fact; @p err is why there is none, or NULL, and stays the caller's. A later note of
 * the same kind and name replaces the earlier one. Never fails at once: when memory runs out, or a
 * bound is passed, prb_recorder_write() says so.
 */
void prb_recorder_note(struct prb_recorder *r, char kind, const char *name, const void *data,
		       size_t length, const struct prb_error *err);

/** Notes registers of thread @p tid. */
void prb_recorder_registers(struct prb_recorder *r, pid_t tid, const struct prb_regs *regs);

/**
 * Notes all pages that @p pages holds in its present epoch: @p view 0 is the shared image, else
 * the tid of the thread whose overlay they are. Can be called again: a page noted again gets its
 * new content.
 */
void prb_recorder_pages(struct prb_recorder *r, pid_t view, const struct prb_view *pages);

/** Notes one page, as prb_recorder_pages() does for each; @p read as in prb_view_each_page(). */
void prb_recorder_page(struct prb_recorder *r, pid_t view, uint64_t address, const void *data,
		       const struct prb_page_marks *read);

/**
 * Writes what was noted to the file @p path (mode 0600), which either is there whole afterwards or
 * as it was before. An existing file is replaced; PRB_ERROR_USAGE if it is not a regular file.
 * @p target gives pid, machine and time.
 */
struct prb_error *prb_recorder_write(struct prb_recorder *r, const struct prb_target *target,
				     const char *path) PRB_MUST_CHECK;

/** As above, to a file that is open, empty, and can be read and written at any place. */
struct prb_error *prb_recorder_write_to(struct prb_recorder *r, const struct prb_target *target,
					int fd, const char *name) PRB_MUST_CHECK;

/** Opens the snapshot that is @p size bytes of the open file @p fd, from @p offset on. */
struct prb_error *prb_target_open_snapshot_within(int fd, const char *name, uint64_t offset,
						  uint64_t size,
						  struct prb_target **ret) PRB_MUST_CHECK;

/** True if the file at @p path begins like a snapshot: one read of 8 bytes. */
bool prb_snapshot_probe(const char *path);

/** True if @p t is a snapshot from which values were left out. */
bool prb_snapshot_redacted(const struct prb_target *t);

/**
 * The memory of thread @p tid of a snapshot, borrowed until the target's end; NULL if @p t is no
 * snapshot or has no overlay for that thread (its memory then is prb_target.mem).
 */
struct prb_mem *prb_snapshot_thread_mem(struct prb_target *t, pid_t tid);

#endif
