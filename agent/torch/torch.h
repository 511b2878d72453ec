/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Training steps of torch and the calls of its modules, as rows of python.torch_calls,
 * python.torch_gpu and python.torch_step_timing.
 *
 * An optimizer's step ends a training step; torch calls us before and after it. In a sampled step,
 * torch also calls us before and after each call of a module, and when gradients arrive. These
 * hooks exist only during sampled steps: outside of them torch takes its fast path.
 * agent/torch/torch.py installs and removes them, and names modules.
 *
 * The time of our own functions is measured and subtracted from a call's duration.
 *
 * Threading: the caller holds the GIL. Errors: nothing is ever raised into the program: what fails
 * costs a row.
 */
#ifndef PRB_AGENT_TORCH_TORCH_H
#define PRB_AGENT_TORCH_TORCH_H

#include <stdint.h>

#include "agent/inside/export.h"
#include "agent/inside/python_table.h"

enum { PRBA_TORCH_METHODS = 27 };

/** For the names of agent/torch/torch.py, which says what they are. */
extern struct prba_method prba_torch_methods[PRBA_TORCH_METHODS];

/**
 * probing.step(): the step that rows of events get from now on; INT64_MIN: none. From now on it
 * ends steps of training, and optimizers do not.
 */
PRBA_EXPORT void probing_recorder_step(int64_t step);

/** In a child after fork(): its parent's steps are not its own. */
void prba_torch_forked(void);

#endif
