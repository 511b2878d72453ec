/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Describes a thread besides its frames: names, state, what it waits for; and about the
 * target as a whole. Internal to dump/.
 */
#ifndef PRB_DUMP_READ_DESCRIBE_H
#define PRB_DUMP_READ_DESCRIBE_H

#include "dump/read/reader.h"
#include "target/ptrace/stop.h"

/** Reads the system call that a thread sleeps in, and the registers that it shows. */
struct prb_error *prb_read_call(struct prb_reader *r,
				struct prb_reader_thread *thread) PRB_MUST_CHECK;

/**
 * Fills waits_for from the call that was read. @p mem: the target's memory, or a view of an instant
 * at which the thread slept in that call.
 */
struct prb_error *prb_read_wait(struct prb_reader *r, struct prb_reader_thread *thread,
				struct prb_mem *mem) PRB_MUST_CHECK;

/**
 * The two together, where the thread's state is newer than the call that was read: of a thread that
 * sleeps (or, in the registers of @p stop, slept) in the same one, nothing is read twice. @p stop:
 * NULL if it is not stopped.
 */
struct prb_error *prb_read_moment(struct prb_reader *r, struct prb_reader_thread *thread,
				  const struct prb_stop *stop) PRB_MUST_CHECK;

/** Fills state, os_name and idle_seconds; notes for a snapshot how the thread was read. */
struct prb_error *prb_read_thread_state(struct prb_reader *r,
					struct prb_reader_thread *thread) PRB_MUST_CHECK;

/** In a snapshot: takes over how the thread was read, and the frames of an unstable one. */
struct prb_error *prb_read_recorded(struct prb_reader *r,
				    struct prb_reader_thread *thread) PRB_MUST_CHECK;

/** Fills the names that `threading` of each interpreter of @p py gives. */
struct prb_error *prb_read_thread_names(struct prb_reader *r, struct prb_python *py,
					struct prb_view *view) PRB_MUST_CHECK;

/** The name of a thread that is none of the dump's; *ret is NULL if it has none; caller frees. */
struct prb_error *prb_read_thread_name(struct prb_python *py, struct prb_view *view,
				       uint64_t interp, uint64_t pthread,
				       char **ret) PRB_MUST_CHECK;

/** Fills the target part of the dump. */
struct prb_error *prb_read_process(struct prb_reader *r,
				   struct prb_pythons *pythons) PRB_MUST_CHECK;

#endif
