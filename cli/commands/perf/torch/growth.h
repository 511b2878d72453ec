/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Whether the memory of a process grows while its steps are sampled, and what holds it: for
 * the verdicts of `perf --torch`. The objects are walked a second time only if it does.
 */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_GROWTH_H
#define PRB_CLI_COMMANDS_PERF_TORCH_GROWTH_H

#include "base/error.h"
#include "base/str.h"
#include "judge/holder.h"
#include "judge/series.h"
#include "target/target.h"
#include "values/census/census.h"

/** Starts as {}. */
struct prb_torch_growth {
	struct prb_census *before; /**< NULL: nothing is compared */
	double read;		   /**< when that was, seconds of CLOCK_MONOTONIC */
	struct prb_memory_rows rows;
	struct prb_memory_series series;
	struct prb_holding held; /**< `name` is NULL if nothing is to be said */
};

/** Takes over *census, the objects before the sampling, and leaves NULL; or a large one alone. */
void prb_torch_growth_begin(struct prb_torch_growth *growth, struct prb_target *target,
			    struct prb_census **census);
/** Notes the memory; to be called often. Does nothing if that was done a moment ago. */
void prb_torch_growth_look(struct prb_torch_growth *growth, struct prb_target *target);
/** Finds the holder. @p py and @p interp as for prb_census_create(). */
struct prb_error *prb_torch_growth_find(struct prb_torch_growth *growth, struct prb_target *target,
					struct prb_python *py, uint64_t interp) PRB_MUST_CHECK;
void prb_torch_growth_deinit(struct prb_torch_growth *growth);

/** Appends "memory grows 2.0 MiB a step, held by `__main__.history`". @p step: seconds; 0: unknown.
 */
void prb_torch_growth_text(const struct prb_torch_growth *growth, double step, struct prb_str *s);
/** Appends what was seen. */
void prb_torch_growth_evidence(const struct prb_torch_growth *growth, struct prb_str *s);

#endif
