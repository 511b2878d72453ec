/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The locks of suspended greenlets. Internal to values/. */
#ifndef PRB_VALUES_GREENLET_LOCKS_H
#define PRB_VALUES_GREENLET_LOCKS_H

#include "values/greenlets.h"

/**
 * Fills `lock` and `held` of a greenlet whose stack is @p frames, and whose `frames` are filled.
 * PRB_ERROR_NOMEM is the only error: what cannot be read is not known.
 */
struct prb_error *prb_greenlet_note_locks(struct prb_python *py, struct prb_mem *mem,
					  const struct prb_py_frames *frames,
					  struct prb_greenlet *greenlet) PRB_MUST_CHECK;

#endif
