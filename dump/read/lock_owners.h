/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finds the holder of a lock that records no owner: the thread with a frame inside a `with`
 * statement of that lock. Internal to dump/.
 *
 * A holder is named only if nothing else can explain what was read.
 */
#ifndef PRB_DUMP_READ_LOCK_OWNERS_H
#define PRB_DUMP_READ_LOCK_OWNERS_H

#include "base/str.h"
#include "dump/read/reader.h"

/** Frames of all threads that are inside of a `with` statement. */
struct prb_lock_owners;

/** Looks through the frames of all threads. */
struct prb_error *prb_lock_owners_create(struct prb_reader *r, struct prb_view *view,
					 struct prb_lock_owners **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_lock_owners_destroy(struct prb_lock_owners *owners);

/**
 * Appends " held by 4251 loader-2, in transfer bank.py:31", or who may hold it, or nothing.
 * @p thread waits for it. *owner is the holder's number, or 0.
 */
struct prb_error *prb_lock_owners_put(struct prb_lock_owners *owners,
				      const struct prb_reader_thread *thread, uint64_t lock,
				      pid_t *owner, struct prb_str *s) PRB_MUST_CHECK;

/** Notes the locks of multiprocessing that each thread of the dump surely holds by `with`. */
struct prb_error *prb_lock_owners_note_shared(struct prb_lock_owners *owners) PRB_MUST_CHECK;

/**
 * If @p thread waits for a semaphore of `threading` that is used as a lock, appends that, and the
 * threads inside it, as above.
 */
struct prb_error *prb_lock_owners_put_semaphore(struct prb_lock_owners *owners,
						const struct prb_reader_thread *thread,
						struct prb_str *s) PRB_MUST_CHECK;

/** True if the thread @p pthread has a frame inside of a `with` statement of the lock. */
bool prb_lock_owners_is_inside(const struct prb_lock_owners *owners, uint64_t lock,
			       uint64_t pthread);

/** Appends ", in transfer bank.py:31": where the thread @p pthread, its owner, is inside of it. */
struct prb_error *prb_lock_owners_put_place(struct prb_lock_owners *owners, uint64_t lock,
					    uint64_t pthread, struct prb_str *s) PRB_MUST_CHECK;

#endif
