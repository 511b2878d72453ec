/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How a thread was read, as a snapshot notes it. Internal to dump/.
 */
#ifndef PRB_DUMP_READ_RECORDED_H
#define PRB_DUMP_READ_RECORDED_H

#include "dump/read/reader.h"

/** In a snapshot: takes over how the thread was read, and the frames of an unstable one. */
struct prb_error *prb_read_recorded(struct prb_reader *r,
				    struct prb_reader_thread *thread) PRB_MUST_CHECK;

/** The same of what went wrong when it was read, which replay cannot know. */
struct prb_error *prb_read_recorded_error(struct prb_reader *r,
					  const struct prb_reader_thread *thread) PRB_MUST_CHECK;

/** Notes for a snapshot how the thread was read. */
void prb_note_recorded(struct prb_reader *r, const struct prb_reader_thread *thread);

#endif
