/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decodes the raw frames of a thread: names, lines, variables.
 *
 * A decoder caches code objects and values by address. Addresses stay valid only while nothing
 * runs, so each instant of a view needs its own decoder.
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
 * Appends the Python frames of @p frames to thread->frames. A frame's `error` says what could not
 * be read; the only error returned is PRB_ERROR_NOMEM.
 */
struct prb_error *prb_decode_frames(struct prb_decoder *decoder, const struct prb_py_frames *frames,
				    struct prb_dump_thread *thread) PRB_MUST_CHECK;

#endif
