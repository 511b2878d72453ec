/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The known facts of a runtime in a snapshot: addresses and layout.
 */
#ifndef PRB_PYTHON_RUNTIME_RECORD_H
#define PRB_PYTHON_RUNTIME_RECORD_H

#include "base/error.h"
#include "python/python.h"

/** Notes @p py as the @p index-th runtime of the snapshot being recorded, if there is one. */
void prb_python_remember(struct prb_python *py, unsigned index);

/** Appends the runtimes that a snapshot holds; none for other targets. */
struct prb_error *prb_pythons_recall(struct prb_modules *modules,
				     struct prb_pythons *ret) PRB_MUST_CHECK;

#endif
