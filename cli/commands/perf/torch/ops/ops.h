/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `performance --torch --ops`: operators and kernels, as torch's own profiler (Kineto)
 * records them in some steps.
 */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_OPS_OPS_H
#define PRB_CLI_COMMANDS_PERF_TORCH_OPS_OPS_H

#include "cli/commands/perf/show/performance.h"
#include "control/client.h"
#include "profile/kineto/gpu.h"
#include "profile/kineto/trace.h"

enum { PRB_OPS_STEPS = 3, PRB_OPS_MOST_STEPS = 100 };

/** Calls of the same operator or kernel at the same place; sums over all steps, in ns. */
struct prb_ops_group {
	const char *name;
	const struct prb_kineto_module *module; /**< NULL: none */
	enum prb_kineto_part part;
	enum prb_kineto_kind kind;
	const char *shapes; /**< of the inputs; NULL: none, or they differ */
	uint64_t calls;
	int64_t self, total, flops;
};

struct prb_ops_groups {
	PRB_VEC(struct prb_ops_group) list; /**< by self, descending */
};

/** What was recorded. */
struct prb_ops {
	int pid;
	char *command, *python; /**< owned */
	struct prb_str trace_text;
	char *note;	       /**< of the agent; empty: nothing special */
	int64_t before, after; /**< ns, a step before and after those recorded; < 0: unknown */
	int64_t began, ended, wrote; /**< ns that the process waited for the profiler */
	PRB_VEC(int64_t) steps;	     /**< ns, each step recorded */
	struct prb_kineto trace;
	struct prb_kineto_gpus gpus;
	struct prb_ops_groups operators, kernels;
	int64_t duration;    /**< ns, of all steps on the profile's clock */
	int64_t outside;     /**< ns of these in which the training thread was in no operator */
	uint64_t operations; /**< operators called in the steps */
};
void prb_ops_deinit(struct prb_ops *ops);

/** Sums up ops->trace. */
struct prb_error *prb_ops_sum(struct prb_ops *ops) PRB_MUST_CHECK;
struct prb_error *prb_ops_text(const struct prb_ops *ops, struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_ops_json(const struct prb_ops *ops, struct prb_str *s) PRB_MUST_CHECK;

/** Has the agent keep the rows of torch.ops and torch.kernels. */
struct prb_error *prb_ops_keep_rows(struct prb_agent *agent,
				    const struct prb_ops *ops) PRB_MUST_CHECK;

struct prb_error *prb_performance_ops(const struct prb_cli *cli,
				      const struct prb_performance_settings *settings,
				      const struct prb_profile_format *format) PRB_MUST_CHECK;

#endif
