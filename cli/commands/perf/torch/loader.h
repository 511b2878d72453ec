/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the workers of torch's DataLoaders do, for the verdicts of `perf --torch`: they are
 * looked at from outside, some hundred times.
 */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_LOADER_H
#define PRB_CLI_COMMANDS_PERF_TORCH_LOADER_H

#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/** Starts as {}. */
struct prb_torch_loader {
	unsigned workers;	 /**< 0: none, or not looked at */
	long looks, busy;	 /**< at workers; of these, making a batch */
	struct prb_str function; /**< of the program's, that is most often in these; escaped */
	long in_function;	 /**< looks in it */
};

/** Does nothing for a client elsewhere, who may learn of the served process alone. */
struct prb_error *prb_torch_loader_look(pid_t pid, struct prb_torch_loader *ret) PRB_MUST_CHECK;
void prb_torch_loader_deinit(struct prb_torch_loader *loader);

/** Appends what follows "waits for the data loader". @p step: seconds; 0: unknown. */
void prb_torch_loader_text(const struct prb_torch_loader *loader, double step, struct prb_str *s);

#endif
