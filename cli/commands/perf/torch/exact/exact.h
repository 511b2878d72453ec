/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file `performance --torch --exact`: calls of modules, timed by hooks of the agent in some steps.
 */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_EXACT_EXACT_H
#define PRB_CLI_COMMANDS_PERF_TORCH_EXACT_EXACT_H

#include "cli/commands/perf/show/performance.h"
#include "profile/recording/recording.h"
#include "rings/torch_rings.h"

enum { PRB_EXACT_NONE = UINT32_MAX };

/** A module at one place of the tree of calls. Times are sums over all steps, in milliseconds. */
struct prb_exact_node {
	uint32_t parent, first, last, next; /**< in the list; PRB_EXACT_NONE */
	const char *path, *class;
	unsigned depth;
	uint64_t calls;
	double forward, backward, recompute;
	double self_forward, self_backward; /**< without the modules that were called */
	double gpu_forward, gpu_backward;   /**< of the GPU, over gpu_steps; forward of both */
	double memory;			    /**< bytes of the GPU that forward has allocated */
};

/** What the sampled steps were made of; milliseconds. */
struct prb_exact {
	PRB_VEC(struct prb_exact_node) nodes; /**< each after its parent, by first calls */
	uint32_t first, last;		      /**< outermost ones; PRB_EXACT_NONE */
	uint64_t steps, micro;		      /**< sampled steps, and the passes in them */
	uint64_t others;		      /**< steps between them */
	uint64_t cut;			      /**< sampled, and left out: calls are missing */
	uint64_t unnamed; /**< calls that are in no node: the agent or we have no room for more */
	double duration, data, forward, backward, optimizer;
	uint64_t gpu_steps; /**< sampled steps for which the GPU's times are known */
	double gpu, gpu_optimizer;
	bool gpu_memory; /**< bytes of nodes are known */
	bool gpu_seen;	 /**< there are times of the GPU, of some calls at least */
	/** Medians of a sampled step, of one that is not, and of what hooks took; NaN: none. */
	double sampled, unsampled, own;
	double p50, p99; /**< of all steps */
};

/** Sums up; PRB_ERROR_NOT_FOUND if no step was sampled, or none is whole. */
struct prb_error *prb_exact_make(const struct prb_torch_rings *rings,
				 struct prb_exact *ret) PRB_MUST_CHECK;
void prb_exact_deinit(struct prb_exact *exact);

/** Who it is about, for a head. */
struct prb_exact_about {
	int pid;
	const char *command, *python;
};
struct prb_error *prb_exact_text(const struct prb_exact *exact, const struct prb_exact_about *about,
				 struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_exact_json(const struct prb_exact *exact, const struct prb_exact_about *about,
				 struct prb_str *s) PRB_MUST_CHECK;

/** The steps that were timed, one after the other, for the formats of files. */
struct prb_error *prb_exact_recording(const struct prb_torch_rings *rings,
				      const struct prb_exact_about *about,
				      struct prb_recording **ret) PRB_MUST_CHECK;

/** Has the agent sample steps, and prints the tree or writes a file. */
struct prb_error *prb_performance_exact(const struct prb_cli *cli,
					const struct prb_performance_settings *settings,
					const struct prb_profile_format *format) PRB_MUST_CHECK;

#endif
