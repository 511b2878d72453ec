/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `performance --torch --exact`: calls of modules, timed by the agent's hooks in some steps.
 */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_EXACT_EXACT_H
#define PRB_CLI_COMMANDS_PERF_TORCH_EXACT_EXACT_H

#include "cli/commands/perf/show/performance.h"
#include "profile/recording/recording.h"
#include "rings/torch_rings.h"

enum { PRB_EXACT_NONE = UINT32_MAX };

/** A module at one place in the tree of calls. Times are sums over all steps, in milliseconds. */
struct prb_exact_node {
	uint32_t parent, first, last, next; /**< in the list; PRB_EXACT_NONE */
	const char *path, *class;
	unsigned depth;
	uint64_t calls;
	bool evaluation; /**< without gradients; such nodes have a tree of their own */
	double forward, backward, recompute;
	double overlap; /**< of recompute, what lies within the module's own backward */
	double pending, pending_from; /**< recompute of this step whose backward has not ended */
	int64_t pending_step;
	double self_forward, self_backward; /**< without the called modules */
	double gpu_forward, gpu_backward;   /**< of the GPU, over gpu_steps; forward of both */
	double memory;			    /**< bytes of GPU memory allocated by forward */
};

/** Sums of the sampled steps; milliseconds. */
struct prb_exact {
	PRB_VEC(struct prb_exact_node) nodes; /**< each after its parent, by first calls */
	uint32_t first, last;		      /**< outermost ones; PRB_EXACT_NONE */
	uint64_t steps, micro;		      /**< sampled steps, and the passes in them */
	uint64_t others;		      /**< steps between them */
	uint64_t cut;	  /**< sampled steps that are left out, since calls are missing */
	uint64_t unnamed; /**< calls without a node: no room in the agent or here */
	double duration, data, forward, evaluation, backward, optimizer, communication;
	bool loader; /**< `data` is what loaders took, else all until the first call of a module */
	uint64_t gpu_steps; /**< sampled steps with known GPU times */
	double gpu, gpu_optimizer;
	bool gpu_memory; /**< bytes of nodes are known */
	bool gpu_seen;	 /**< some calls have GPU times */
	/** Medians of a sampled step, an unsampled step, and the hooks' own time; NaN: none. */
	double sampled, unsampled, own;
	double p50, p99; /**< of all steps */
};

/** With all that it called, forward and backward; milliseconds. */
double prb_exact_total(const struct prb_exact_node *node);
/** Sums up; PRB_ERROR_NOT_FOUND if no complete step was sampled. */
struct prb_error *prb_exact_make(const struct prb_torch_rings *rings,
				 struct prb_exact *ret) PRB_MUST_CHECK;
void prb_exact_deinit(struct prb_exact *exact);

/** The process, for a head. */
struct prb_exact_about {
	int pid;
	const char *command, *python;
};
struct prb_error *prb_exact_text(const struct prb_exact *exact, const struct prb_exact_about *about,
				 struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_exact_json(const struct prb_exact *exact, const struct prb_exact_about *about,
				 struct prb_str *s) PRB_MUST_CHECK;

/** The timed steps in order, for file formats. */
struct prb_error *prb_exact_recording(const struct prb_torch_rings *rings,
				      const struct prb_exact_about *about,
				      struct prb_recording **ret) PRB_MUST_CHECK;

/** Makes the agent sample steps, and prints the tree or writes a file. */
struct prb_error *prb_performance_exact(const struct prb_cli *cli,
					const struct prb_performance_settings *settings,
					const struct prb_profile_format *format) PRB_MUST_CHECK;

#endif
