/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file A snapshot's notes of how a thread was read. Internal to dump/. */
#ifndef PRB_DUMP_READ_RECORDED_H
#define PRB_DUMP_READ_RECORDED_H

#include "dump/read/reader.h"

/** In a snapshot: restores how the thread was read, and the frames of an unstable one. */
struct prb_error *prb_read_recorded(struct prb_reader *r,
				    struct prb_reader_thread *thread) PRB_MUST_CHECK;

/** Restores the error of the reading, which a replay cannot reproduce. */
struct prb_error *prb_read_recorded_error(struct prb_reader *r,
					  const struct prb_reader_thread *thread) PRB_MUST_CHECK;

/** Notes for a snapshot how the thread was read. */
void prb_note_recorded(struct prb_reader *r, const struct prb_reader_thread *thread);

#endif
