/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file `performance --torch`: time of training steps, by module. */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_TORCH_H
#define PRB_CLI_COMMANDS_PERF_TORCH_TORCH_H

#include "cli/commands/perf/show/performance.h"
#include "cli/commands/perf/torch/ranks.h"
#include "cli/commands/perf/torch/verdict.h"
#include "profile/recording/by_module.h"

/** A node of the tree: a part of the step, or a module. */
struct prb_torch_node {
	uint32_t parent;     /**< index in the list, UINT32_MAX */
	uint32_t order;	     /**< among its siblings */
	const char *name;    /**< "forward", or the path relative to the parent's */
	const char *path;    /**< of a module; NULL for a part */
	const char *class;   /**< class of a module, without its Python module */
	int64_t self, total; /**< ns */
	uint64_t samples;    /**< samples in it */
	unsigned depth;
	bool recomputed; /**< a module that checkpointing calls again in backward */
};

struct prb_torch_tree {
	PRB_VEC(struct prb_torch_node)
	list;			  /**< each node before its children, siblings in order */
	struct prb_report report; /**< of the same recording, for bounds */
	uint64_t steps;
	bool steps_exact; /**< the optimizer counts them */
	int64_t unknown;
	struct prb_torch_verdicts verdicts;
	const struct prb_torch_ranks *ranks; /**< of its job; NULL: not looked at */
};

void prb_torch_tree_deinit(struct prb_torch_tree *tree);

/** @p names are sorted by address; @p orders: the position of each in the model. */
struct prb_error *prb_torch_tree_make(const struct prb_by_module *by,
				      const struct prb_module_name *names, const uint32_t *orders,
				      size_t count, const struct prb_profile_choice *choice,
				      struct prb_torch_tree *ret) PRB_MUST_CHECK;

struct prb_error *prb_torch_tree_text(const struct prb_recording *recording,
				      const struct prb_torch_tree *tree,
				      const struct prb_profile_choice *choice,
				      struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_torch_tree_json(const struct prb_recording *recording,
				      const struct prb_torch_tree *tree,
				      const struct prb_profile_choice *choice,
				      struct prb_str *s) PRB_MUST_CHECK;

/** Records, and prints the tree or writes a file. */
struct prb_error *prb_performance_torch(const struct prb_cli *cli,
					const struct prb_performance_settings *settings,
					const struct prb_profile_format *format) PRB_MUST_CHECK;

/**
 * What the steps of a process wait for, after sampling it for @p seconds: nothing if it has no
 * torch, or no module ran. @p target: as typed. *ret starts as {}, and is the caller's.
 */
struct prb_error *prb_torch_verdicts_take(const struct prb_cli *cli, const char *target,
					  double seconds,
					  struct prb_torch_verdicts *ret) PRB_MUST_CHECK;

#endif
