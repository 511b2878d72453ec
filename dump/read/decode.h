/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decodes the raw frames of a thread: names, lines, variables.
 *
 * A decoder belongs to one instant of one view (code objects are looked up once per address, and
 * an address means something only as long as nothing runs), so it is made anew for each. The same
 * holds for the values of variables: many frames hold the same objects, and each is read once.
 */
#ifndef PRB_DUMP_READ_DECODE_H
#define PRB_DUMP_READ_DECODE_H

#include "base/error.h"
#include "python/python.h"
#include "dump/model/dump.h"

struct prb_decoder;

/** Borrows everything. @p mem is where the frames were read from, @p pool holds the names. */
struct prb_error *prb_decoder_create(struct prb_python *py, struct prb_mem *mem,
				     const struct prb_dump_options *options, struct prb_pool *pool,
				     struct prb_decoder **ret) PRB_MUST_CHECK;
void prb_decoder_destroy(struct prb_decoder *decoder);

/**
 * Appends the Python frames of @p frames to thread->frames. What cannot be read of a frame is
 * said in its `error`; errors returned are about memory of ours only.
 */
struct prb_error *prb_decode_frames(struct prb_decoder *decoder, const struct prb_py_frames *frames,
				    struct prb_dump_thread *thread) PRB_MUST_CHECK;

#endif
