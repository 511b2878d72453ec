/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The variables of frames, with their values as text. Internal to dump/read/.
 *
 * Many frames hold the same objects: the `self` of methods that call each other, what all threads
 * of a pool share. Each is read once. That holds for as long as the decoder does: for one instant.
 */
#ifndef PRB_DUMP_READ_LOCALS_H
#define PRB_DUMP_READ_LOCALS_H

#include "base/error.h"
#include "base/pool.h"
#include "python/python.h"
#include "dump/model/dump.h"

struct prb_local_decoder;

/** Borrows everything but @p options, as prb_decoder_create() does. */
struct prb_error *prb_local_decoder_create(struct prb_python *py, struct prb_mem *mem,
					   const struct prb_dump_options *options,
					   struct prb_pool *pool,
					   struct prb_local_decoder **ret) PRB_MUST_CHECK;
/** NULL is allowed. */
void prb_local_decoder_destroy(struct prb_local_decoder *decoder);

/** Appends those of the frame's code to frame->locals. What cannot be read is said in frame->error.
 */
struct prb_error *prb_local_decode(struct prb_local_decoder *decoder,
				   const struct prb_py_frame *raw,
				   const struct prb_py_variables *variables,
				   struct prb_dump_frame *frame) PRB_MUST_CHECK;

/** An error becomes that of a frame or code; only what concerns ourselves goes further. */
struct prb_error *prb_decode_keep_error(struct prb_error *err, char **ret) PRB_MUST_CHECK;

#endif
